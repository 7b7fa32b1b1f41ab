#include "verbs_port/handshake.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::uint32_t kMagic = 0x77654674;
constexpr std::uint8_t kVersion = 1;

void put32(std::uint8_t* to, std::uint32_t v) {
  for (unsigned i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(v >> (24U - 8U * i));
}

std::uint32_t get32(const std::uint8_t* from) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < 4; ++i) v = v << 8U | from[i];
  return v;
}

}  // namespace

std::array<std::uint8_t, Hello::kBytes> Hello::encode() const {
  std::array<std::uint8_t, kBytes> b{};
  put32(&b[0], kMagic);
  b[4] = kVersion;
  b[5] = data.size;
  b[6] = static_cast<std::uint8_t>(mtu >> 8U);
  b[7] = static_cast<std::uint8_t>(mtu);
  put32(&b[8], qpn.v);
  put32(&b[12], psn.v);
  b[16] = reads;
  std::copy(data.bytes.begin(), data.bytes.end(), b.begin() + 20);
  return b;
}

std::optional<Hello> Hello::decode(const std::array<std::uint8_t, kBytes>& b) {
  Hello h;
  h.qpn = {get32(&b[8])};
  h.psn = {get32(&b[12])};
  h.mtu = std::uint32_t{b[6]} << 8U | b[7];
  h.reads = b[16];
  h.data.size = b[5];
  std::copy(b.begin() + 20, b.end(), h.data.bytes.begin());
  const bool mtu = h.mtu == 256 || h.mtu == 512 || h.mtu == 1024 || h.mtu == 2048 || h.mtu == 4096;
  if (get32(&b[0]) != kMagic || b[4] != kVersion || h.data.size > ConnectData::kMost || !mtu ||
      h.qpn.v >= 1U << 24U || h.psn.v >= 1U << 24U)
    return std::nullopt;
  return h;
}

}  // namespace weft
