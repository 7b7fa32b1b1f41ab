#include "wan/logic/hmac.h"

#include <algorithm>
#include <bit>

#include "core/wire/bytes.h"

namespace weft::wan {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::block(const std::uint8_t* p) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = wire::load_be32(p + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3U)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10U));
  }
  auto s = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                             ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const std::uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                             ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t at = bytes_ % 64;
    const std::size_t n = std::min(bytes.size(), 64 - at);
    std::copy_n(bytes.begin(), n, partial_.begin() + static_cast<std::ptrdiff_t>(at));
    bytes_ += n;
    bytes = bytes.subspan(n);
    if (bytes_ % 64 == 0) block(partial_.data());
  }
}

Digest Sha256::finish() {
  std::array<std::uint8_t, 72> pad{0x80};
  const std::size_t zeros = (119 - bytes_ % 64) % 64;  // behind the 0x80, so that eight bytes are left
  wire::store_be64(pad.data() + 1 + zeros, bytes_ * 8);
  update(std::span(pad).first(1 + zeros + 8));
  Digest d;
  for (std::size_t i = 0; i < 8; ++i) wire::store_be32(d.data() + 4 * i, state_[i]);
  return d;
}

Digest sha256(std::span<const std::uint8_t> bytes) {
  Sha256 h;
  h.update(bytes);
  return h.finish();
}

Hmac::Hmac(std::span<const std::uint8_t> key) {
  std::array<std::uint8_t, 64> k{};
  if (key.size() > k.size()) {
    const Digest d = sha256(key);
    std::copy(d.begin(), d.end(), k.begin());
  } else {
    std::copy(key.begin(), key.end(), k.begin());
  }
  for (std::uint8_t& b : k) b ^= 0x36;
  inner_.update(k);
  for (std::uint8_t& b : k) b ^= 0x36 ^ 0x5c;
  outer_.update(k);
}

Digest Hmac::of(std::span<const std::uint8_t> bytes) const {
  Sha256 inner = inner_;
  inner.update(bytes);
  Sha256 outer = outer_;
  outer.update(inner.finish());
  return outer.finish();
}

bool same(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (a.size() != b.size()) return false;
  std::uint8_t differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= static_cast<std::uint8_t>(a[i] ^ b[i]);
  return differ == 0;
}

}  // namespace weft::wan
