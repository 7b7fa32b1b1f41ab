// Big-endian integers at unaligned places in memory: load_be16 … load_be64 and store_be16 … store_be64,
// with a 24-bit pair for the many 24-bit fields of this protocol.
//
// memcpy and a byte swap instead of a pointer cast: defined for any address, and one instruction after
// optimisation. Callers check bounds: a parser checks the length of a header once and then reads it.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

namespace weft::wire {

static_assert(std::endian::native == std::endian::little, "load_be* and store_be* swap unconditionally");

inline std::uint16_t load_be16(const std::uint8_t* p) {
  std::uint16_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap16(v);
}
inline std::uint32_t load_be24(const std::uint8_t* p) {
  return (std::uint32_t{p[0]} << 16U) | (std::uint32_t{p[1]} << 8U) | p[2];
}
inline std::uint32_t load_be32(const std::uint8_t* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}
inline std::uint64_t load_be64(const std::uint8_t* p) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap64(v);
}

inline void store_be16(std::uint8_t* p, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, sizeof v);
}
// The low 24 bits of `v`.
inline void store_be24(std::uint8_t* p, std::uint32_t v) {
  p[0] = static_cast<std::uint8_t>(v >> 16U);
  p[1] = static_cast<std::uint8_t>(v >> 8U);
  p[2] = static_cast<std::uint8_t>(v);
}
inline void store_be32(std::uint8_t* p, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be64(std::uint8_t* p, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof v);
}
// The ICRC alone travels least significant byte first.
inline std::uint32_t load_le32(const std::uint8_t* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_le32(std::uint8_t* p, std::uint32_t v) { std::memcpy(p, &v, sizeof v); }

}  // namespace weft::wire
