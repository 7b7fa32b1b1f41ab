#include "pair/host.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace weft::pair {

wire::Address Host::address_of(HostId id) {
  return wire::Address::v4(10, 0, static_cast<std::uint8_t>(id.v >> 8U),
                           static_cast<std::uint8_t>(id.v + 1U));
}

Host::Host(HostId id, const DeviceConfig& config, check::Referee& referee)
    : device(config),
      id_(id),
      address_(address_of(id)),
      referee_(referee),
      next_address_(0x1000'0000ULL * (id.v + 1U) + 7U) {}

Buffer Host::allocate(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random) {
  const std::uint64_t address = next_address_;
  next_address_ += size + 4096U + random.below(4096);
  const auto mr = device.register_mr(pd, address, size, access);
  CHECK(mr.has_value());
  Memory& m = memory_[mr->region];
  m.bytes.resize(size);
  m.gone = false;
  for (std::uint8_t& b : m.bytes) b = static_cast<std::uint8_t>(random.next() >> 56U);
  check::Region known;
  known.key = mr->rkey;
  known.pd = pd;
  known.address = address;
  known.length = size;
  known.access = access;
  known.memory = m.bytes;
  referee_.region(id_, mr->region, known);
  return {*mr, address, m.bytes};
}

void Host::take_away(RegionId region) {
  memory_.at(region).gone = true;
  referee_.region_faults(id_, region);
}

void Host::keep_inline(Qpn qpn, std::uint32_t slot, std::uint32_t max_inline,
                       std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t>& area = inline_[qpn];
  const std::size_t at = static_cast<std::size_t>(slot) * max_inline;
  if (area.size() < at + max_inline) area.resize(at + max_inline);
  std::copy(bytes.begin(), bytes.end(), area.begin() + static_cast<std::ptrdiff_t>(at));
}

bool Host::gather(const wire::Burst& burst, const wire::TxPacket& packet,
                  std::vector<std::uint8_t>& payload) const {
  payload.clear();
  for (const wire::Segment& s : burst.segments.subspan(packet.first_segment, packet.segment_count)) {
    const std::vector<std::uint8_t>* from = nullptr;
    if (s.region == wire::kInlineRegion) {
      from = &inline_.at(burst.qpn);
    } else {
      const Memory& m = memory_.at(s.region);
      if (m.gone) return false;
      from = &m.bytes;
    }
    CHECK_OP(s.offset + s.length, <=, from->size());
    const auto begin = from->begin() + static_cast<std::ptrdiff_t>(s.offset);
    payload.insert(payload.end(), begin, begin + s.length);
  }
  CHECK_OP(payload.size(), ==, packet.payload);
  return true;
}

struct Host::Placer {
  Host& host;
  Time now;
  std::span<const wire::RxPacket> packets;
  std::span<const std::vector<std::uint8_t>> payloads;

  bool place(const Placement& p) {
    CHECK_OP(p.packet, <, packets.size());
    const std::vector<std::uint8_t>& payload = payloads[p.packet];
    CHECK_OP(p.payload_offset + p.length, <=, payload.size());
    const auto it = host.memory_.find(p.region);
    if (it != host.memory_.end() && it->second.gone) return false;
    const auto bytes = std::span(payload).subspan(p.payload_offset, p.length);
    host.referee_.placed({host.id_, p.qpn, p.region, p.offset, p.payload_offset, p.length},
                         packets[p.packet].header, bytes, now);
    // The referee has complained already if this does not fit.
    if (it == host.memory_.end() || p.offset + p.length > it->second.bytes.size()) return false;
    std::copy(bytes.begin(), bytes.end(), it->second.bytes.begin() + static_cast<std::ptrdiff_t>(p.offset));
    return true;
  }
  bool place_value(const ValuePlacement& v) {
    const auto it = host.memory_.find(v.region);
    if (it != host.memory_.end() && it->second.gone) return false;
    std::uint8_t value[8];
    std::memcpy(value, &v.value, 8);
    const auto bytes = std::span<const std::uint8_t>(value).subspan(v.value_offset, v.length);
    host.referee_.placed({host.id_, v.qpn, v.region, v.offset, v.value_offset, v.length},
                         packets[v.packet].header, bytes, now);
    if (it == host.memory_.end() || v.offset + v.length > it->second.bytes.size()) return false;
    std::copy(bytes.begin(), bytes.end(), it->second.bytes.begin() + static_cast<std::ptrdiff_t>(v.offset));
    return true;
  }
  AtomicResult execute(const AtomicRequest& a) {
    const auto it = host.memory_.find(a.region);
    if (it == host.memory_.end() || it->second.gone || a.offset + 8 > it->second.bytes.size()) {
      host.marks.hit(Mark::atomics_faulted);
      return {};
    }
    std::uint64_t old = 0;
    std::memcpy(&old, &it->second.bytes[a.offset], 8);
    host.referee_.executed(
        {host.id_, a.qpn, a.region, a.offset, a.compare_swap, a.compare, a.swap_or_add, old}, now);
    std::uint64_t next = a.compare_swap ? a.swap_or_add : old + a.swap_or_add;
    if (a.compare_swap && old != a.compare) next = old;
    host.marks.hit(!a.compare_swap    ? Mark::fetch_adds
                   : old == a.compare ? Mark::swaps_done
                                      : Mark::swaps_refused);
    std::memcpy(&it->second.bytes[a.offset], &next, 8);
    return {true, old};
  }
};

void Host::deliver(Time now, std::span<const wire::RxPacket> packets,
                   std::span<const std::vector<std::uint8_t>> payloads) {
  Placer placer{*this, now, packets, payloads};
  device.on_packets(now, packets, placer);
}

}  // namespace weft::pair
