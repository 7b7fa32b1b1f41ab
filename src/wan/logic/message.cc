#include "wan/logic/message.h"

#include <algorithm>

#include "core/wire/bytes.h"

namespace weft::wan {
namespace {

constexpr std::uint16_t kAttribute = 0xFF20;
constexpr std::uint8_t kAnswer = 1;
constexpr std::uint8_t kRefused = 2;
constexpr std::size_t kMac = 240;
constexpr std::size_t kMacBytes = wire::kMadBytes - kMac;

// Both directions walk the same rows: docs/protocol/boxes.md#the-message.
struct Reader {
  const std::uint8_t* at;
  void u8(std::uint8_t& v, std::size_t o) const { v = at[o]; }
  void u24(std::uint32_t& v, std::size_t o) const { v = wire::load_be24(at + o); }
  void u64(std::uint64_t& v, std::size_t o) const { v = wire::load_be64(at + o); }
  void address(wire::Address& a, std::size_t o) const {
    std::copy_n(at + o, a.bytes.size(), a.bytes.begin());
  }
};
struct Writer {
  std::uint8_t* at;
  void u8(std::uint8_t v, std::size_t o) const { at[o] = v; }
  void u24(std::uint32_t v, std::size_t o) const { wire::store_be24(at + o, v); }
  void u64(std::uint64_t v, std::size_t o) const { wire::store_be64(at + o, v); }
  void address(const wire::Address& a, std::size_t o) const {
    std::copy(a.bytes.begin(), a.bytes.end(), at + o);
  }
};

template <class M, class Rows>
void rows(M& m, std::uint8_t& say, std::uint8_t& flags, std::uint8_t& mode, const Rows& r) {
  r.u8(say, 40);
  r.u8(flags, 41);
  r.u8(m.syndrome, 42);
  r.u8(m.ahead_count, 43);
  r.u64(m.sender, 44);
  r.u64(m.receiver, 52);
  r.u64(m.number, 60);
  r.u64(m.lease, 68);
  r.u24(m.from.v, 76);
  r.u24(m.stored.v, 79);
  r.u24(m.delivered.v, 82);
  r.u24(m.half.responder_qpn.v, 85);
  r.u24(m.requester_qpn.v, 88);
  r.u8(mode, 91);
  r.address(m.half.requester, 96);
  r.address(m.half.responder, 112);
  for (std::size_t i = 0; i < kMostAhead; ++i) r.u24(m.ahead[i].v, 128 + 3 * i);
  r.u64(m.asked_at, 200);
  r.u64(m.patience_ns, 208);
  r.u8(m.parity.data, 216);
  r.u8(m.parity.repair, 217);
  r.u64(m.parity_wait_ns, 224);
}

}  // namespace

bool is_message(std::span<const std::uint8_t> mad) {
  wire::VendorHeader h;
  wire::MadError error{};
  return decode(mad, h, error) && h.method == wire::kMethodSend && h.attribute == kAttribute;
}

void encode(const Message& m, const Hmac& key, wire::Mad& out) {
  encode(wire::VendorHeader{wire::kMethodSend, 0, m.number, kAttribute}, out);
  auto say = static_cast<std::uint8_t>(m.say);
  auto flags = static_cast<std::uint8_t>((m.answer ? kAnswer : 0U) | (m.refused ? kRefused : 0U));
  auto mode = static_cast<std::uint8_t>(m.mode);
  rows(m, say, flags, mode, Writer{out.data()});
  const Digest d = key.of(std::span(out).first(kMac));
  std::copy_n(d.begin(), kMacBytes, out.begin() + kMac);
}

bool decode(std::span<const std::uint8_t> mad, const Hmac& key, Message& out) {
  if (!is_message(mad)) return false;
  const Digest d = key.of(mad.first(kMac));
  if (!same(std::span(d).first(kMacBytes), mad.subspan(kMac))) return false;
  std::uint8_t say = 0;
  std::uint8_t flags = 0;
  std::uint8_t mode = 0;
  Message m;
  rows(m, say, flags, mode, Reader{mad.data()});
  if (say < static_cast<std::uint8_t>(Say::kHello) || say > static_cast<std::uint8_t>(Say::kAnswered))
    return false;
  if (m.ahead_count > kMostAhead || flags > (kAnswer | kRefused) || m.sender == 0) return false;
  if (mode >= wire::kModeCount) return false;
  if (m.parity.data > ParityTerms::kMostData || m.parity.repair > ParityTerms::kMostRepair) return false;
  m.mode = static_cast<wire::Mode>(mode);
  m.say = static_cast<Say>(say);
  m.answer = (flags & kAnswer) != 0;
  m.refused = (flags & kRefused) != 0;
  out = m;
  return true;
}

}  // namespace weft::wan
