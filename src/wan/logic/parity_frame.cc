#include "wan/logic/parity_frame.h"

#include <algorithm>

#include "core/wire/bytes.h"
#include "wan/logic/config.h"

namespace weft::wan {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kRuns = 32;
constexpr std::size_t kMacBytes = 16;

// Everything but the row. No message between boxes has such a length, so neither passes for the other.
std::span<const std::uint8_t> signed_part(std::span<const std::uint8_t> bytes, std::size_t runs) {
  return bytes.subspan(1, kRuns + runs * kParityRunBytes - 1);
}

}  // namespace

std::uint32_t encode(const ParityHeader& h, const Hmac& key, ParityBytes& out) {
  std::uint8_t* p = out.data();
  p[0] = h.row;
  p[1] = kVersion;
  p[2] = h.repair;
  p[3] = h.runs;
  wire::store_be32(p + 4, 0);
  wire::store_be64(p + 8, h.sender);
  wire::store_be64(p + 16, h.receiver);
  wire::store_be64(p + 24, h.number);
  p += kRuns;
  for (std::uint32_t i = 0; i < h.runs; ++i, p += kParityRunBytes) {
    wire::store_be64(p, h.run[i].lease);
    wire::store_be24(p + 8, h.run[i].first.v);
    p[11] = h.run[i].count;
  }
  const Digest d = key.of(signed_part(out, h.runs));
  std::copy_n(d.begin(), kMacBytes, p);
  return parity_header_bytes(h.runs);
}

bool decode(std::span<const std::uint8_t> bytes, ParityHeader& out) {
  if (bytes.size() < parity_header_bytes(1) || bytes[1] != kVersion) return false;
  const std::uint8_t* p = bytes.data();
  const std::uint32_t runs = p[3];
  if (runs == 0 || runs > kMostRuns || bytes.size() < parity_header_bytes(runs)) return false;
  if (p[2] == 0 || p[2] > ParityTerms::kMostRepair || p[0] >= p[2]) return false;
  ParityHeader h;
  h.row = p[0];
  h.repair = p[2];
  h.runs = p[3];
  h.sender = wire::load_be64(p + 8);
  h.receiver = wire::load_be64(p + 16);
  h.number = wire::load_be64(p + 24);
  p += kRuns;
  std::uint32_t members = 0;
  for (std::uint32_t i = 0; i < runs; ++i, p += kParityRunBytes) {
    h.run[i] = {wire::load_be64(p), {wire::load_be24(p + 8)}, p[11]};
    if (p[11] == 0) return false;
    members += p[11];
  }
  if (members > ParityTerms::kMostData) return false;
  out = h;
  return true;
}

bool authentic(std::span<const std::uint8_t> bytes, const Hmac& key) {
  const std::size_t runs = bytes[3];
  const Digest d = key.of(signed_part(bytes, runs));
  return same(std::span(d).first(kMacBytes), bytes.subspan(kRuns + runs * kParityRunBytes, kMacBytes));
}

}  // namespace weft::wan
