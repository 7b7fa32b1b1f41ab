// The bytes of a fuzzing run as decisions: each read takes some from the front, and zeros follow the end.
#pragma once
#include <cstdint>
#include <span>

namespace weft::fuzz {

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t u8() {
    if (bytes_.empty()) return 0;
    const std::uint8_t b = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return b;
  }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::uint32_t below(std::uint32_t n) { return n <= 256 ? u8() % n : u16() % n; }
  bool flag() { return (u8() & 1U) != 0; }

 private:
  std::uint64_t number(int bytes) {  // the first byte is the highest
    std::uint64_t v = 0;
    while (bytes-- > 0) v = v << 8U | u8();
    return v;
  }
  std::span<const std::uint8_t> bytes_;
};

}  // namespace weft::fuzz
