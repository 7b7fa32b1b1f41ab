// The port: what a program sees of one device. Workloads, the loops of NIC studies and the middleware are
// written against it alone, so they run on hardware, on the soft NIC, and in virtual time.
//
//   sim/nic/nic.h            a simulated NIC is a port; posts ring its doorbell, polls look at its queues
//   pair/world_port.h        a host of a pair world
//   verbs_port/verbs_port.h  libibverbs as any program links it: hardware, and our own soft NIC
//
// tests/port/conformance.h walks the same program over all of them.
//
// Single-threaded, and without a clock: a port knows the time of its world and tells nobody. A call never
// waits.
//
//   memory        One protection domain. Memory holds bytes, or is marked as holding none: `bytes` is empty,
//   transfers
//                 are counted, and a petabyte costs nothing. Only simulated NICs have memory of that kind.
//                 adopt() registers memory that the program has already; a pair world refuses it.
//   queue pairs   Reliable connections. create_qp() makes one in RESET; a connection brings it up to RTS.
//                 prepare() takes it to INIT before that, where receives may be posted: the peer's first
//                 message then finds one. recycle() makes a used queue pair as good as new, for a price below
//                 that of a new one; completions of its former life may still come.
//   shared        Receives that several queue pairs draw from, instead of receives of their own. A completion
//                 names the queue pair that took one. A queue pair that was up and fails is followed by
//                 kLastReceive: what it took and did not use has been completed by then.
//   connections   By address and service number, as a connection manager has them: listen(); connect() at one
//   end,
//                 a kConnectRequest at the other, which answers with accept() or reject(); then kEstablished
//                 at both. Both sides may send what is needed to begin, and the end that rejects may say why:
//                 54 bytes, the room of a REQ (docs/protocol/) but for two that say how many they are and
//                 which MTU fits.
//   posting       A list at a time. What was posted may leave at once, and does after ring(): one doorbell
//   for all
//                 that was posted since the last. post_send() stops at the first request that is refused, and
//                 says how many it took.
//   polling       poll() takes completions, poll_event() everything else. An armed completion queue raises
//   one
//                 kCompletion, and then has to be armed anew.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/verbs/types.h"
#include "core/wire/header.h"
#include "core/wire/packet.h"

namespace weft {

// What one end wants of a connection. Each end has its own; of the path MTU and of the READs in flight the
// smaller of the two values counts.
struct ConnectTerms {
  wire::Mode mode = wire::Mode::kRoce;           // of this end's requests
  std::uint8_t controller = kDefaultController;  // of what it sends
  std::uint8_t service_level = 0;
  std::uint8_t access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  std::uint32_t mtu = 1024;
  std::uint8_t reads = 4;  // READs and atomics in flight, either way
  std::uint8_t min_rnr_timer = 12;
  std::uint8_t timeout = 14;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  WirePsn psn{};  // of its first request
};

// What one end tells the other.
struct ConnectData {
  static constexpr std::size_t kMost = 54;
  std::array<std::uint8_t, kMost> bytes{};
  std::uint8_t size = 0;
};

using ConnectionId = Id<struct ConnectionTag, std::uint32_t>;

enum class MemoryKind : std::uint8_t { kBytes, kCounted };

struct PortMemory {
  Key lkey{};
  Key rkey{};
  std::uint64_t address = 0;  // what work requests and the peer name
  std::uint64_t length = 0;
  std::span<std::uint8_t> bytes;  // empty: it holds none
};

struct PortFacts {
  wire::Address address;       // where others connect to
  bool counts_memory = false;  // kCounted is to be had
  std::uint32_t max_inline = 0;
};

struct PortQueuePair {
  CqId send_cq{};
  CqId recv_cq{};
  QpCaps caps;
  bool signal_all = false;
  SrqId srq = kNoSrq;  // then it has no receives of its own
};

enum class PortEventKind : std::uint8_t {
  kConnectRequest,  // connection, service, peer, data: accept() or reject() it
  kEstablished,     // connection, qpn, data of the other end (at the end that asked)
  kRejected,        // connection, qpn; data of the other end, if it said why
  kDisconnected,    // connection, qpn: the other end hung up; the queue pair is in ERR
  kCompletion,      // cq: it was armed and has an entry
  kQpError,         // qpn: it is in ERR
  kLastReceive,     // qpn: it is in ERR, and has no more receives of its shared queue
};

struct PortEvent {
  PortEventKind kind = PortEventKind::kCompletion;
  ConnectionId connection{};
  Qpn qpn = kNoQpn;
  CqId cq{};
  std::uint16_t service = 0;
  wire::Address peer;  // kConnectRequest: where it comes from
  ConnectData data;
};

class VerbsPort {
 public:
  VerbsPort() = default;
  virtual ~VerbsPort() = default;
  VerbsPort(const VerbsPort&) = delete;
  VerbsPort& operator=(const VerbsPort&) = delete;

  virtual PortFacts facts() const = 0;

  // --- memory and queues ---
  virtual Outcome<PortMemory> allocate(std::uint64_t length, std::uint8_t access, MemoryKind kind) = 0;
  virtual Outcome<PortMemory> adopt(std::span<std::uint8_t> bytes, std::uint8_t access) = 0;
  virtual Outcome<void> release(Key lkey) = 0;
  virtual Outcome<CqId> create_cq(std::uint32_t entries) = 0;
  virtual Outcome<void> destroy_cq(CqId cq) = 0;
  virtual Outcome<SrqId> create_srq(std::uint32_t entries) = 0;
  virtual Outcome<void> destroy_srq(SrqId srq) = 0;  // after the queue pairs that draw from it
  virtual Outcome<Qpn> create_qp(const PortQueuePair& wanted) = 0;
  virtual Outcome<void> prepare(Qpn qpn) = 0;
  virtual Outcome<Qpn> recycle(Qpn qpn) = 0;  // in RESET; its number may be another one
  virtual Outcome<void> destroy_qp(Qpn qpn) = 0;
  virtual Outcome<QpState> state(Qpn qpn) const = 0;

  // --- connections ---
  virtual Outcome<void> listen(std::uint16_t service) = 0;
  virtual Outcome<ConnectionId> connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                        const ConnectTerms& terms, const ConnectData& data) = 0;
  virtual Outcome<void> accept(ConnectionId connection, Qpn qpn, const ConnectTerms& terms,
                               const ConnectData& data) = 0;
  virtual Outcome<void> reject(ConnectionId connection, const ConnectData& why) = 0;
  // At any time after connect() or accept(), once. A queue pair that is up goes to ERR. From here on nothing
  // that the peer or the network does reaches the queue pair, so it may be recycled.
  virtual Outcome<void> disconnect(ConnectionId connection) = 0;

  // --- work ---
  struct Posted {
    std::size_t taken = 0;
    Outcome<void> refused;  // why the request after the ones taken was refused
  };
  // With kSendInline the bytes that a gather list names are copied before the call returns.
  virtual Posted post_send(Qpn qpn, std::span<const SendWr> list) = 0;
  virtual Posted post_recv(Qpn qpn, std::span<const RecvWr> list) = 0;
  virtual Posted post_shared(SrqId srq, std::span<const RecvWr> list) = 0;
  virtual void ring() = 0;
  virtual std::uint32_t poll(CqId cq, std::span<Completion> out) = 0;
  virtual Outcome<void> arm(CqId cq, bool solicited_only) = 0;
  virtual bool poll_event(PortEvent& out) = 0;
};

// A program above a port. The world that runs it calls act() after each of its events, and when next_wake()
// has come.
class Application {
 public:
  Application() = default;
  virtual ~Application() = default;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  virtual Time next_wake() const = 0;  // when the program wants to act by itself; kNever: only after events
  virtual void act(Time now) = 0;
};

}  // namespace weft
