#include "pair/host.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace weft::pair {
namespace {

// One block of random bytes that fills all regions: drawing every byte anew took half of a world's time. The
// block's size is a prime number, so regions do not repeat it at equal offsets.
const std::vector<std::uint8_t>& random_bytes() {
  static const std::vector<std::uint8_t> bytes = [] {
    std::vector<std::uint8_t> b(65'537);
    Prng r(0x6279'7465);
    for (std::uint8_t& x : b) x = static_cast<std::uint8_t>(r.next() >> 56U);
    return b;
  }();
  return bytes;
}

}  // namespace

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

Buffer Host::reserve(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random) {
  const std::uint64_t address = next_address_;
  next_address_ += size + 4096U + random.below(4096);
  const auto mr = device.register_mr(pd, address, size, access);
  CHECK(mr.has_value());
  return {*mr, address, {}};
}

void Host::announce(const Buffer& b, PdId pd, std::uint32_t size, std::uint8_t access) {
  check::Region known;
  known.key = b.mr.rkey;
  known.pd = pd;
  known.address = b.address;
  known.length = size;
  known.access = access;
  known.memory = b.bytes;
  referee_.region(id_, b.mr.region, known);
}

Buffer Host::allocate(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random, bool watched) {
  Buffer b = reserve(pd, size, access, random);
  Memory& m = memory_[b.mr.region];
  m.gone = false;
  m.watched = watched;
  m.bytes.reserve(size);
  const std::vector<std::uint8_t>& noise = random_bytes();
  for (std::size_t from = random.below(noise.size()); m.bytes.size() < size; from = 0) {
    const auto begin = noise.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t n = std::min(size - m.bytes.size(), noise.size() - from);
    m.bytes.insert(m.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(n));
  }
  b.bytes = m.bytes;
  Buffer known = b;
  if (!watched) known.bytes = {};
  announce(known, pd, size, access);
  return b;
}

Buffer Host::allocate_gone(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random) {
  const Buffer b = reserve(pd, size, access, random);
  memory_[b.mr.region].gone = true;
  announce(b, pd, size, access);
  referee_.region_faults(id_, b.mr.region);
  return b;
}

Key Host::allocate_window(PdId pd) {
  const auto key = device.alloc_window(pd, WindowType::k2);
  CHECK(key.has_value());
  referee_.window(id_, *key, pd);
  return *key;
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
                         packets[p.packet].header, known(it, bytes), now);
    // If this does not fit, the referee has reported it already.
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
                         packets[v.packet].header, known(it, bytes), now);
    if (it == host.memory_.end() || v.offset + v.length > it->second.bytes.size()) return false;
    std::copy(bytes.begin(), bytes.end(), it->second.bytes.begin() + static_cast<std::ptrdiff_t>(v.offset));
    return true;
  }
  std::span<const std::uint8_t> known(std::map<RegionId, Memory>::const_iterator it,
                                      std::span<const std::uint8_t> bytes) const {
    return it != host.memory_.end() && !it->second.watched ? std::span<const std::uint8_t>() : bytes;
  }
  AtomicResult execute(const AtomicRequest& a) {
    const auto it = host.memory_.find(a.region);
    if (it == host.memory_.end() || it->second.gone || a.offset + 8 > it->second.bytes.size()) {
      host.coverage.hit(Covered::atomics_faulted);
      return {};
    }
    std::uint64_t old = 0;
    std::memcpy(&old, &it->second.bytes[a.offset], 8);
    host.referee_.executed(
        {host.id_, a.qpn, a.region, a.offset, a.compare_swap, a.compare, a.swap_or_add, old}, now);
    std::uint64_t next = a.compare_swap ? a.swap_or_add : old + a.swap_or_add;
    if (a.compare_swap && old != a.compare) next = old;
    host.coverage.hit(!a.compare_swap    ? Covered::fetch_adds
                      : old == a.compare ? Covered::swaps_done
                                         : Covered::swaps_refused);
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
