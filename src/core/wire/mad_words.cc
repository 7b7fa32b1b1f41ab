// What travels inside the fields of a MAD: RDMA-CM's addresses in the private data, and the modes in the
// two ECE words.
//
//   address header   version 1 | IP version 1 | source port 2 | source 16 | destination 16
//                    IPv4 addresses in the last four bytes, zeros before
//   ECE options      31-24 version | 15-8 log2 window | 4 DCQCN | 3 DCTCP | 2 ECN echo | 1 srnic | 0 irn
#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"
#include "core/wire/ip.h"
#include "core/wire/mad.h"

namespace weft::wire {
namespace {

constexpr std::uint8_t kIpVersion4 = 0x40;
constexpr std::uint8_t kIpVersion6 = 0x60;
constexpr std::uint32_t kEceVersion = 1;

}  // namespace

bool read_address_header(std::span<const std::uint8_t> private_data, AddressHeader& out) {
  if (private_data.size() < kAddressHeaderBytes) return false;
  const std::uint8_t* const p = private_data.data();
  const unsigned ip = p[1] & 0xF0U;
  if (p[0] >> 4U != 0 || (ip != kIpVersion4 && ip != kIpVersion6)) return false;
  out = {};
  out.source_port = load_be16(p + 2);
  for (const auto& [at, address] : {std::pair{p + 4, &out.source}, std::pair{p + 20, &out.destination}}) {
    if (ip == kIpVersion4) {
      *address = Address::v4(at[12], at[13], at[14], at[15]);
    } else {
      std::copy_n(at, 16, address->bytes.begin());
    }
  }
  return true;
}

void write_address_header(const AddressHeader& h, std::span<std::uint8_t> out) {
  CHECK_OP(out.size(), >=, kAddressHeaderBytes);
  const bool v4 = is_v4_mapped(h.source) && is_v4_mapped(h.destination);
  std::uint8_t* const p = out.data();
  std::fill_n(p, kAddressHeaderBytes, std::uint8_t{0});
  p[1] = v4 ? kIpVersion4 : kIpVersion6;
  store_be16(p + 2, h.source_port);
  const std::size_t skip = v4 ? 12 : 0;
  std::copy(h.source.bytes.begin() + static_cast<std::ptrdiff_t>(skip), h.source.bytes.end(), p + 4 + skip);
  std::copy(h.destination.bytes.begin() + static_cast<std::ptrdiff_t>(skip), h.destination.bytes.end(),
            p + 20 + skip);
}

std::uint32_t encode_ece(const EceOptions& o) {
  return (kEceVersion << 24U) | (std::uint32_t{o.window_log2} << 8U) | (o.dcqcn ? 16U : 0U) |
         (o.dctcp ? 8U : 0U) | (o.ecn_echo ? 4U : 0U) | (o.srnic ? 2U : 0U) | (o.irn ? 1U : 0U);
}

EceOptions decode_ece(std::uint32_t vendor_id, std::uint32_t options) {
  if (vendor_id != kEceVendor || options >> 24U != kEceVersion) return {};
  return {.irn = (options & 1U) != 0,
          .srnic = (options & 2U) != 0,
          .ecn_echo = (options & 4U) != 0,
          .dctcp = (options & 8U) != 0,
          .dcqcn = (options & 16U) != 0,
          .window_log2 = static_cast<std::uint8_t>(options >> 8U)};
}

}  // namespace weft::wire
