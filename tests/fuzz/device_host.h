// One host of the Device target: a Device, what its user created, and a Sink that knows every region and will
// not have a byte land anywhere else.
//
// Registered memory is counted, not kept: the target asks where bytes go, not which. Whatever a Device emits
// is held to the contract of device.h: headers that encode, payload where the opcode has some, segments
// inside memory, one frame size a burst.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/base/check.h"
#include "core/transport/device.h"
#include "core/wire/codec.h"

namespace weft::fuzz {

struct Frame {
  wire::RxPacket packet;
};

struct Region {
  std::uint64_t length = 0;
  bool faulty = false;  // memory that the world cannot touch
};

struct Queue {
  Qpn qpn{};
  QpInit init;
};

struct Host {
  // Where every region begins: so high that an address which is taken for an offset lies outside.
  static constexpr std::uint64_t kBase = 0x1'0003;

  Host(std::uint8_t n, const DeviceConfig& config) : device(config), address(wire::Address::v4(10, 0, 0, n)) {
    pds.push_back(*device.alloc_pd());
    pds.push_back(*device.alloc_pd());
    cqs.push_back(*device.create_cq(64));
  }

  // --- the world's side of a burst ---
  void send(const wire::Burst& burst, std::vector<Frame>& out) {
    std::size_t frame_bytes = 0;
    for (std::size_t i = 0; i < burst.packets.size(); ++i) {
      const wire::TxPacket& p = burst.packets[i];
      const wire::Header h = checked(p);
      const std::size_t bytes = wire::header_bytes(h) + p.payload + wire::pad_bytes(p.payload);
      if (i == 0) frame_bytes = bytes;
      const bool is_last = i + 1 == burst.packets.size();
      CHECK(is_last ? bytes <= frame_bytes : bytes == frame_bytes);
      std::uint64_t gathered = 0;
      for (std::uint32_t s = 0; s < p.segment_count; ++s) {
        CHECK_OP(p.first_segment + s, <, burst.segments.size());
        const wire::Segment& segment = burst.segments[p.first_segment + s];
        readable(burst.qpn, segment);
        gathered += segment.length;
      }
      CHECK_OP(gathered, ==, p.payload);
      Frame f;
      f.packet.header = h;
      f.packet.source = address;
      f.packet.payload = p.payload;
      out.push_back(f);
    }
  }

  // --- Sink ---
  struct Placer {
    Host& host;
    std::span<const wire::RxPacket> packets;
    bool fault = false;
    bool place(const Placement& p) {
      CHECK_OP(p.packet, <, packets.size());
      CHECK_OP(p.payload_offset, <=, packets[p.packet].payload);
      CHECK_OP(p.length, <=, packets[p.packet].payload - p.payload_offset);
      CHECK(packets[p.packet].header.dest_qp == p.qpn);
      return host.inside(p.region, p.offset, p.length) && !fault;
    }
    bool place_value(const ValuePlacement& v) {
      CHECK_OP(v.value_offset + v.length, <=, 8U);
      return host.inside(v.region, v.offset, v.length) && !fault;
    }
    AtomicResult execute(const AtomicRequest& a) {
      const bool there = host.inside(a.region, a.offset, 8);
      CHECK_OP((kBase + a.offset) % 8, ==, 0U);
      return {there && !fault, a.compare};
    }
  };
  void receive(Time now, std::span<const wire::RxPacket> packets, bool fault) {
    Placer placer{*this, packets, fault};
    device.on_packets(now, packets, placer);
  }

  // --- the user's side ---
  void poll(CqId cq) {
    Completion got[16];
    const std::uint32_t n = device.poll_cq(cq, got);
    CHECK_OP(n, <=, std::size(got));
    for (std::uint32_t i = 0; i < n; ++i) {
      const Completion& c = got[i];
      CHECK_OP(static_cast<unsigned>(c.status), <=, static_cast<unsigned>(WcStatus::kRnrRetryExceeded));
      CHECK_OP(c.wr_id & ~kReceiveId, <, next_id);
      // A queue's completions come in the order of its work requests, none twice. Numbers only grow, so this
      // holds over resets and new owners of a queue pair's number, too.
      std::uint64_t& before = completed[{c.qpn, (c.wr_id & kReceiveId) != 0}];
      CHECK_OP(c.wr_id & ~kReceiveId, >, before);
      before = c.wr_id & ~kReceiveId;
    }
  }

  // Ends everything; what the Device lends must come back.
  void finish() {
    for (const Queue& q : queues) static_cast<void>(device.destroy_qp(q.qpn));
    CHECK_OP(device.loss_blocks_in_use(), ==, 0U);
    for (const SrqId s : srqs) static_cast<void>(device.destroy_srq(s));
    for (const Key w : windows) static_cast<void>(device.dealloc_window(w));
    for (const MrInfo& mr : mrs) static_cast<void>(device.deregister_mr(mr.lkey));
    for (const AhId ah : handles) static_cast<void>(device.destroy_ah(ah));
    for (const CqId cq : cqs) static_cast<void>(device.destroy_cq(cq));
    for (const PdId pd : pds) CHECK(device.dealloc_pd(pd).has_value());  // nothing is left in it
    device.check_invariants();
  }

  static constexpr std::uint64_t kReceiveId = 1ULL << 63U;

  Device device;
  wire::Address address;
  std::vector<PdId> pds;
  std::vector<CqId> cqs;
  std::vector<SrqId> srqs;
  std::vector<MrInfo> mrs;
  std::vector<Key> windows;
  std::vector<AhId> handles;
  std::vector<Queue> queues;
  std::map<RegionId, Region> regions;
  std::map<std::pair<Qpn, bool>, std::uint64_t> completed;
  std::uint64_t next_id = 1;

 private:
  bool inside(RegionId region, std::uint64_t offset, std::uint64_t length) const {
    const auto it = regions.find(region);
    CHECK(it != regions.end());
    CHECK_OP(offset, <=, it->second.length);
    CHECK_OP(length, <=, it->second.length - offset);
    return !it->second.faulty;
  }
  void readable(Qpn qpn, const wire::Segment& s) const {
    if (s.region != wire::kInlineRegion) {
      inside(s.region, s.offset, s.length);
      return;
    }
    for (const Queue& q : queues) {
      if (q.qpn != qpn) continue;
      const std::uint64_t area = std::uint64_t{q.init.caps.max_inline} * q.init.caps.max_send_wr;
      CHECK_OP(s.offset + s.length, <=, area);
      return;
    }
    CHECK(false);  // a burst of a queue pair that nobody has
  }
  // The header as the other side will decode it.
  static wire::Header checked(const wire::TxPacket& p) {
    const wire::ExtLayout& layout = wire::ext_layout(p.header.opcode, p.header.mode, p.header.syndrome);
    CHECK(layout.known);
    CHECK(p.payload == 0 || layout.payload);
    std::uint8_t bytes[wire::kMaxHeaderBytes + 4096 + 8] = {};
    CHECK_OP(p.payload, <=, 4096U);
    const std::size_t n = wire::encode(p.header, p.payload, bytes);
    wire::Decoded d;
    wire::DecodeError error{};
    CHECK(wire::decode(std::span(bytes).first(n + p.payload + wire::pad_bytes(p.payload) + wire::kIcrcBytes),
                       d, error));
    CHECK_OP(d.payload, ==, p.payload);
    CHECK(d.header.psn == p.header.psn && d.header.dest_qp == p.header.dest_qp);
    return d.header;
  }
};

}  // namespace weft::fuzz
