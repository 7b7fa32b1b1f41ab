#include "live/engine/shard.h"

#include "core/base/check.h"
#include "core/cm/route.h"
#include "core/wire/codec.h"
#include "core/wire/mad.h"
#include "live/engine/placement.h"
#include "live/wires/neighbours.h"

namespace weft::live {
namespace {

constexpr std::size_t kMostPieces = 64;
constexpr std::size_t kBeforeMad = 12 + 8;  // BTH, DETH
constexpr unsigned kSlotBits = 8;
// A timer found overdue by more than this means that we were not running, not that the peer is dead.
// It is the floor of the retransmission time-outs (sizing.cc).
constexpr Duration kStall = milliseconds(1);
// Data that leaves between two looks at the wire: what comes in meanwhile may be a NAK, and then the rest of
// the window is not worth sending. One system call that finds nothing costs little beside two that send.
constexpr std::uint64_t kTrainsATurn = 2;
// The least that the kernel charges a socket for a datagram beside its bytes.
constexpr std::uint64_t kDatagramCost = 768;

}  // namespace

Shard::Shard(const DeviceConfig& config, const WireFacts& facts, bool icrc, const cm::CmConfig& cm,
             const cm::DiscoveryConfig& discovery)
    : device_(config),
      services_(cm, discovery),
      own_(facts.own),
      slot_(facts.slot),
      qpn_mask_((1U << config.qpn_bits) - 1U),
      regions_(config.max_mr),
      inline_areas_(std::size_t{qpn_mask_} + 1U),
      unpacker_(facts, icrc),
      socket_bytes_(facts.receive_buffer != 0 ? facts.receive_buffer : UINT64_MAX) {
  for (auto& p : packers_) p = std::make_unique<Packer>(facts, icrc);
}

void Shard::deliver(Time now, Wire& wire, const RxTrain& train) {
  if (batch_.for_services) take_services(now, wire, train);
  if (batch_.size == 0) return;
  MemorySink sink{regions_, {batch_.payloads.data(), batch_.size}};
  device_.on_packets(now, batch_.view(), sink);
  batch_.size = 0;
}

// Takes the host's own datagrams out of the batch. What else is addressed to queue pair 1 stays, and the
// Device drops it: it has no such queue pair.
void Shard::take_services(Time now, Wire& wire, const RxTrain& train) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch_.size; ++i) {
    const wire::RxPacket& p = batch_.packets[i];
    if (wire::carries_mad(p.header, p.payload)) {
      if (hand_over(now, wire, train, {batch_.payloads[i], p.payload})) continue;
      services_.take(now, {.source = p.source, .destination = own_.towards(p.source)},
                     {batch_.payloads[i], p.payload});
      continue;
    }
    if (kept != i) {
      batch_.packets[kept] = p;
      batch_.payloads[kept] = batch_.payloads[i];
    }
    ++kept;
  }
  batch_.size = kept;
  batch_.for_services = false;
}

// Whether the message is for another process of this address, which then gets its frame. What nobody serves
// is ours to refuse, and what was handed over is not handed on.
bool Shard::hand_over(Time now, Wire& wire, const RxTrain& train, std::span<const std::uint8_t> mad) {
  Neighbours* const others = wire.neighbours();
  if (others == nullptr || train.handed) return false;
  RxTrain frame = train;
  frame.data = const_cast<std::uint8_t*>(mad.data()) - kBeforeMad;
  frame.bytes = frame.frame_size = static_cast<std::uint32_t>(kBeforeMad + mad.size() + wire::kIcrcBytes);
  const cm::Route route = cm::route_of(mad, kSlotBits);
  const std::uint32_t service = static_cast<std::uint32_t>(route.space) << 16U | route.port;
  switch (route.owner) {
    case cm::Owner::kSlot:
      if (route.slot == slot_ || route.slot == 0) return false;
      others->hand_to_slot(route.slot, frame);
      return true;
    case cm::Owner::kListener:
      return !others->serves(service) && others->hand_to_service(now, service, frame);
    case cm::Owner::kEveryone:
      others->hand_to_all(now, frame);
      return false;
    case cm::Owner::kNobody:
      return false;
  }
  return false;
}

// A group is for datagrams: what names any other queue pair than every member's came by the wrong door, be it
// the host's services or a connection. Our own datagrams come back, and were delivered when they left.
void Shard::take_from_group(Time now, const wire::Address& group) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch_.size; ++i) {
    const wire::RxPacket& p = batch_.packets[i];
    const wire::Header& h = p.header;
    if (h.dest_qp != wire::kEveryMember ||
        (h.opcode != wire::kUdSendOnly && h.opcode != wire::kUdSendOnlyImm)) {
      unpacker_.count_for_nobody();
      continue;
    }
    if (own_.have(p.source) && own(h.src_qp())) continue;
    batch_.payloads[kept] = batch_.payloads[i];
    batch_.packets[kept++] = p;
  }
  batch_.size = kept;
  deliver_to_members(now, group, batch_);
  batch_.size = 0;
  batch_.for_services = false;
}

// Each member's copy is the packet with the member's number.
void Shard::deliver_to_members(Time now, const wire::Address& group, RxBatch& batch) {
  if (batch.size == 0) return;
  for (const Qpn member : memberships_.members_of(group)) {
    for (std::size_t i = 0; i < batch.size; ++i) batch.packets[i].header.dest_qp = member;
    MemorySink sink{regions_, {batch.payloads.data(), batch.size}};
    device_.on_packets(now, batch.view(), sink);
  }
}

// The frame that was packed last.
void Shard::keep_for_members(const wire::Header& header, std::uint32_t payload, IpChoice ip) {
  DCHECK(!own_copies_.full());
  own_copies_.payloads[own_copies_.size] =
      packers_[filling_]->last_frame().data() + wire::header_bytes(header);
  // Its group is told once all are there.
  own_copies_.packets[own_copies_.size++] = {.header = header,
                                             .source = own_.towards(packers_[filling_]->train().destination),
                                             .payload = payload,
                                             .tos = ip.traffic_class,
                                             .ttl = ip.hop_limit};
}

// A socket is read in the order in which it was filled. So once it has been read empty, or as much was read
// as it can hold, nothing is left of what lay there at the begin.
void Shard::look_back(Time now, Wire& wire, std::span<const RxTrain> trains) {
  for (const RxTrain& train : trains) counted_ += train.bytes + kDatagramCost;
  if (trains.empty() || (counted_ >= socket_bytes_ && wire.passed())) {
    heard_ = trains.empty() ? now : counted_from_;
    counted_from_ = now;
    counted_ = 0;
    wire.mark();
  }
}

bool Shard::receive(Time now, Wire& wire) {
  const std::span<const RxTrain> trains = wire.receive(now);
  look_back(now, wire, trains);
  for (const RxTrain& train : trains) {
    if (train.for_group()) deliver(now, wire, train);  // what came before it was not
    std::uint32_t at = 0;
    do {
      at = unpacker_.unpack(train, at, batch_);
      if (train.for_group()) {
        take_from_group(now, train.group);
        continue;
      }
      if (batch_.full() || batch_.for_services) deliver(now, wire, train);
    } while (at < train.bytes);
  }
  if (!trains.empty()) deliver(now, wire, trains.back());
  return !trains.empty();
}

Shard::Flush Shard::flush(Wire& wire, Packer& packer, Time now) {
  if (packer.empty()) return Flush::kDone;
  TxTrain train = packer.train();
  train.now = now;
  SendStatus status = wire.send(train);
  if (status == SendStatus::kUncut) {
    for (const auto& p : packers_) p->reseal();
    status = wire.send(train);
  }
  switch (status) {
    case SendStatus::kFull:
      ++counters_.wire_full;
      return Flush::kFull;
    case SendStatus::kFailed:
    case SendStatus::kUncut:
      ++counters_.send_failed;
      break;
    case SendStatus::kSent:
      ++counters_.trains_sent;
      counters_.frames_sent += packer.frames();
      break;
  }
  packer.clear();
  return Flush::kDone;
}

// Closes the train under construction if the frame does not fit it. False: the closed train waits.
bool Shard::make_room(const wire::Address& to, const wire::Header& header, std::uint32_t payload, IpChoice ip,
                      Wire& wire, Time now) {
  if (packers_[filling_]->fits(to, header, payload, ip)) return true;
  const bool sent = flush(wire, *packers_[filling_], now) == Flush::kDone;
  filling_ ^= 1U;
  CHECK(packers_[filling_]->fits(to, header, payload, ip));
  return sent;
}

bool Shard::send_services(Wire& wire, Time now) {
  for (cm::MadOut out; services_.poll(out);) {
    const wire::Header header = wire::mad_packet(services_psn_);
    services_psn_ = {(services_psn_.v + 1) & kPsnMask};
    const wire::Address& to = out.facts.destination;
    sent_home_ = sent_home_ || own_.have(to);
    const Piece bytes{out.mad.data(), wire::kMadBytes};
    const bool sent = make_room(to, header, wire::kMadBytes, {}, wire, now);
    CHECK(packers_[filling_]->append(to, header, {&bytes, 1}, wire::kMadBytes));
    if (!sent) return false;
  }
  return true;
}

// Moves a burst into trains. A burst alone fits one train, so at most one train is closed on the way,
// and the other packer is empty: that is transmit()'s precondition. False: the closed train waits. A packet
// whose memory is gone is the burst's last, and it does not leave.
bool Shard::pack(const wire::Burst& burst, Wire& wire, Time now) {
  const PathAttr& path = device_.path(burst.path);
  const wire::Address& destination = path.peer;
  // The program chooses the DSCP; whether a switch may mark is the controller's to say.
  IpChoice ip{static_cast<std::uint8_t>((path.traffic_class & ~wire::kEcnMask) |
                                        (burst.ecn_capable ? wire::kEcnEct0 : 0))};
  if (path.hop_limit != 0) ip.hop_limit = path.hop_limit;
  const bool for_members = !memberships_.members_of(destination).empty();
  bool sent = true;
  std::array<Piece, kMostPieces> pieces;
  for (std::size_t k = 0; k < burst.packets.size(); ++k) {
    const wire::TxPacket& p = burst.packets[k];
    CHECK_OP(p.segment_count, <=, kMostPieces);
    for (std::uint32_t i = 0; i < p.segment_count; ++i) {
      const wire::Segment& s = burst.segments[p.first_segment + i];
      const std::uint8_t* const base =
          s.region == wire::kInlineRegion ? inline_areas_[burst.qpn.v & qpn_mask_] : regions_[s.region.v];
      pieces[i] = {base + s.offset, s.length};
    }
    sent = make_room(destination, p.header, p.payload, ip, wire, now) && sent;
    if (!packers_[filling_]->append(destination, p.header, {pieces.data(), p.segment_count}, p.payload, ip)) {
      device_.gather_failed(burst, k, now);
      break;
    }
    if (for_members) keep_for_members(p.header, p.payload, ip);
  }
  if (for_members) {
    const wire::Address group = destination;  // the Device may change its paths
    for (std::size_t i = 0; i < own_copies_.size; ++i) own_copies_.packets[i].group = &group;
    deliver_to_members(now, group, own_copies_);
    own_copies_.size = 0;
  }
  return sent;
}

bool Shard::transmit(Time now, Wire& wire) {
  const Budget budget{device_.config().burst_packets, device_.config().burst_bytes};
  const std::uint64_t before = counters_.trains_sent + counters_.send_failed;
  const auto enough = [&] {
    const std::uint64_t left = counters_.trains_sent + counters_.send_failed - before;
    return left + (packers_[filling_]->mostly_full() ? 1 : 0) >= kTrainsATurn;
  };
  bool moved = false;
  bool first = true;
  blocked_ = true;
  // A train that the wire refused earlier goes first.
  if (flush(wire, *packers_[filling_ ^ 1U], now) == Flush::kFull) return false;
  for (;;) {
    // One burst of data, then all ACKs, then more data: ACKs neither wait behind a window of data nor lose
    // the ride.
    wire::Burst burst;
    if (first) burst = device_.poll_transmit(now, budget);
    first = false;
    if (burst.empty()) burst = device_.poll_control(now);
    if (burst.empty() && !enough()) burst = device_.poll_transmit(now, budget);
    if (burst.empty()) break;
    moved = true;
    if (!pack(burst, wire, now)) return true;
  }
  if (services_.has_to_send()) {
    moved = true;
    if (!send_services(wire, now)) return true;
  }
  if (flush(wire, *packers_[filling_], now) == Flush::kFull) return moved;
  blocked_ = false;
  return moved;
}

bool Shard::fire(Time now) {
  const Time until = std::min(heard_, now);
  const bool services = services_.next_deadline() <= until;
  if (services) services_.fire(now);
  if (device_.next_deadline() > until) return services;
  while (device_.next_deadline() <= until) device_.fire_timer(now, kStall);
  return true;
}

bool Shard::step(Time now, Wire& wire, std::uint32_t turns) {
  bool moved = false;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const bool received = receive(now, wire);
    const bool sent = transmit(now, wire);
    const bool fired = fire(now) && transmit(now, wire);
    moved = moved || received || sent || fired;
    if (!received && !(sent && has_to_send() && !blocked_)) break;
  }
  return moved;
}

}  // namespace weft::live
