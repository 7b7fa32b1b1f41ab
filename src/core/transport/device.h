// The Device: what a world drives. One per shard. It owns queue pairs, the key table, completion
// queues, paths, the bitmap pool, the deadlines and the scheduler.
//
// Sans-IO: time and packets go in, placements, packets and completions come out. There is no clock,
// socket, thread, file, allocation on the packet path, nor callback into the user. The same object
// runs in the packet simulator and under unmodified verbs programs.
//
// How a world drives it, in any order and as often as it likes:
//
//   on_packets(now, packets, sink)      received headers; the sink moves the bytes
//   poll_control(now)                   one burst of ACKs and NAKs of one queue pair, or empty
//   pick(now) + transmit(qpn, now, …)   one burst of data of one queue pair, or empty
//   on_timer(now), next_deadline()      time-outs
//   poll_cq, poll_event                 results for the user
//
// A NIC model may stand between pick and transmit (WQE and context fetches), choose the next queue
// pair itself (`is_ready`), and knows which queue pair the next poll_control or fire_timer touches
// (`peek_control`, `peek_timer`) before it calls them.
//
// Not thread-safe: a shard belongs to one thread at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/transport/config.h"
#include "core/transport/counters.h"
#include "core/transport/sink.h"
#include "core/transport/terms.h"
#include "core/verbs/types.h"
#include "core/wire/packet.h"

namespace weft {

struct Engine;  // the Device's inside, engine.h

class Device {
 public:
  explicit Device(const DeviceConfig& config);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // --- resources (control path; may allocate) ---
  Outcome<PdId> alloc_pd();
  Outcome<void> dealloc_pd(PdId pd);
  // `address` is what work requests and remote keys will name; the world keeps region -> memory.
  Outcome<MrInfo> register_mr(PdId pd, std::uint64_t address, std::uint64_t length, std::uint8_t access);
  // What kChange… names takes its new value; the keys stay. kBusy while windows are bound to it.
  Outcome<void> reregister_mr(Key key, std::uint8_t changes, PdId pd, std::uint64_t address,
                              std::uint64_t length, std::uint8_t access);
  Outcome<void> deregister_mr(Key key);
  Outcome<Key> alloc_window(PdId pd, WindowType type);
  Outcome<void> dealloc_window(Key key);  // any tag the window ever had
  Outcome<CqId> create_cq(std::uint32_t entries);
  Outcome<void> resize_cq(CqId cq, std::uint32_t entries);
  Outcome<void> destroy_cq(CqId cq);
  Outcome<SrqId> create_srq(PdId pd, const SrqCaps& caps);
  Outcome<void> set_srq_limit(SrqId srq, std::uint32_t limit);  // fewer there already: raised at once
  Outcome<SrqCaps> query_srq(SrqId srq) const;
  Outcome<void> destroy_srq(SrqId srq);  // kBusy while a queue pair draws from it
  // The same attributes give the same path. It stays while a queue pair is connected over it, or an address
  // handle or a posted datagram names it; after that its row may go to the next path opened, so use it before
  // then.
  Outcome<PathId> open_path(const PathAttr& attr);
  const PathAttr& path(PathId id) const;
  // UD: a destination for datagrams. Requests that were posted do not need it any more. A datagram to a
  // group is for queue pair kEveryMember; who that is is the world's to say, which gives each member its own
  // copy.
  Outcome<AhId> create_ah(PdId pd, PathId path);
  Outcome<void> destroy_ah(AhId ah);
  Outcome<Qpn> create_qp(const QpInit& init);  // rounds rings up to powers of two
  Outcome<void> modify_qp(Qpn qpn, const QpAttr& attr, std::uint32_t mask, Time now);
  Outcome<QpAttr> query_qp(Qpn qpn) const;
  Outcome<QpInit> query_qp_init(Qpn qpn) const;
  Outcome<void> destroy_qp(Qpn qpn);

  // --- data path of the user ---
  // Returns the send queue slot: the world stores inline bytes at slot * max_inline of its inline area.
  Outcome<std::uint32_t> post_send(Qpn qpn, const SendWr& wr);
  // Whether post_send would take it behind `ahead` others: for posting all of several or none.
  Outcome<void> check_send(Qpn qpn, const SendWr& wr, std::uint32_t ahead);
  Outcome<void> post_recv(Qpn qpn, const RecvWr& wr);
  Outcome<void> post_srq_recv(SrqId srq, const RecvWr& wr);
  std::uint32_t poll_cq(CqId cq, std::span<Completion> out);
  Outcome<void> request_notify(CqId cq, bool solicited_only);
  bool poll_event(DeviceEvent& out);
  // Entries that poll_cq would give: a NIC model shows them to the program when they are in its memory.
  std::uint32_t completions_waiting(CqId cq) const;

  // --- data path of the world ---
  // Puts the last ACK into the control ring again: for a program that is about to leave, whose peer would
  // otherwise ask for a lost one in vain.
  void acknowledge_again(Qpn qpn);
  template <Sink S>
  void on_packets(Time now, std::span<const wire::RxPacket> packets, S& sink);
  // The packet is the next one of its half-connection, and nothing of that is lost: what a NIC's fast path
  // takes (SRNIC §4.4.2).
  bool continues(const wire::RxPacket& packet) const;
  // The next queue pair with work and credit, removed from the ready queue; kNoQpn when none.
  // A picked queue pair must be given to transmit (or back to the queue with put_back).
  Qpn pick(Time now);
  void put_back(Qpn qpn);
  bool is_ready(Qpn qpn) const;
  // What transmit would send next for it was sent before: a NIC has to fetch that again (IRN §6.3).
  bool next_is_retransmission(Qpn qpn);
  wire::Burst transmit(Qpn qpn, Time now, Budget budget);
  wire::Burst poll_transmit(Time now, Budget budget);  // pick, then transmit
  // Something may leave: an ACK or NAK, or a queue pair's turn.
  bool has_to_send() const;
  Qpn peek_control() const;
  wire::Burst poll_control(Time now);
  // The world could not read the memory of burst packet `index` (nothing of it was sent from there on).
  void gather_failed(const wire::Burst& burst, std::size_t index, Time now);
  Time next_deadline() const;
  Qpn peek_timer(Time now) const;
  // One due timer; false when none is due. A time-out overdue by more than `stall` says that the world itself
  // stood still, and the peer perhaps with it: it starts over, once in a silence.
  bool fire_timer(Time now, Duration stall = kForever);
  void on_timer(Time now, Duration stall = kForever);  // all due timers

  // --- what tests, tools and worlds may look at ---
  const DeviceConfig& config() const;
  const Counters& counters() const;
  std::uint32_t loss_blocks_in_use() const;
  Bytes path_in_flight(PathId id) const;
  void check_invariants() const;
  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace weft

#include "core/transport/receive.h"  // IWYU pragma: keep  (on_packets, a template)
