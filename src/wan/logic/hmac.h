// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104 §2): what two boxes know each other's messages by. Written
// here because nothing that weft links has it, and because messages are few: one for dozens of packets.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::wan {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  void update(std::span<const std::uint8_t> bytes);
  Digest finish();

 private:
  void block(const std::uint8_t* p);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> partial_{};
  std::uint64_t bytes_ = 0;
};

Digest sha256(std::span<const std::uint8_t> bytes);

// A key, ready for use: both of its padded blocks are hashed already.
class Hmac {
 public:
  explicit Hmac(std::span<const std::uint8_t> key);
  Digest of(std::span<const std::uint8_t> bytes) const;

 private:
  Sha256 inner_;
  Sha256 outer_;
};

// In a time that does not tell where two digests differ.
bool same(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

}  // namespace weft::wan
