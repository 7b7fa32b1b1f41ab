// The ledger: what each message must deliver, and where. It records every region, queue pair, posted request
// and posted receive of a run, pairs each message with the receive that it will consume, and works out from
// the keys whether it is allowed at all (docs/protocol/verbs.md#keys), independently of the transport's own
// key table. The other observers (delivery, completions) judge events against it.
//
// Bytes are optional. A world that moves real bytes gives each region its memory; the ledger then
// keeps the contents that every message must deliver (a snapshot when it is posted) and a shadow of
// each region (what its memory must hold if every placement so far was right). A world that only
// counts bytes leaves the memory empty and gets every check but those on contents.
//
// The world keeps two rules of its own: a source is not changed while its message is under way, and a
// sink is not posted again before its earlier message has completed at the requester. wr_ids are
// unique within a queue pair.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "check/facts.h"
#include "check/report.h"

namespace weft::check {

struct Region {
  Key key{};
  PdId pd{};
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint8_t access = 0;
  bool faulty = false;  // the world answers "fault" when it is touched
  std::span<const std::uint8_t> memory;
  std::vector<std::uint8_t> shadow;
};

// One element of a scatter or gather list, resolved.
struct Range {
  RegionId region;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

enum class Ruling : std::uint8_t { kAllowed, kNoRights, kFaults };

struct Message {
  std::uint64_t wr_id = 0;
  WrOpcode opcode{};
  std::uint8_t flags = 0;
  bool local_ok = true;  // its own gather list names memory that may be used so
  Ruling remote = Ruling::kAllowed;
  bool completed = false;  // at the requester, with whatever status
  std::uint32_t imm = 0;
  std::uint32_t length = 0;
  std::uint64_t remote_address = 0;
  Key rkey{};
  std::uint64_t receive = kNoReceive;  // index of the receive it consumes
  std::uint32_t placed_bytes = 0;
  std::vector<Range> local;
  WindowBind bind;
  Range target;  // WRITEs, READs and atomics, if their key allows it
  // Atomics.
  std::uint64_t compare = 0;
  std::uint64_t swap_or_add = 0;
  bool executed = false;
  std::vector<std::uint8_t> expected;  // contents, if the world has bytes
  std::vector<std::uint64_t> placed;   // a bit per byte

  static constexpr std::uint64_t kNoReceive = UINT64_MAX;
  bool is_atomic() const { return opcode == WrOpcode::kCompareSwap || opcode == WrOpcode::kFetchAdd; }
  bool is_read() const { return opcode == WrOpcode::kRead || is_atomic(); }  // data comes back
  bool is_send() const { return opcode == WrOpcode::kSend || opcode == WrOpcode::kSendImm || invalidates(); }
  bool invalidates() const { return opcode == WrOpcode::kSendInvalidate; }
  bool is_write() const { return opcode == WrOpcode::kWrite || opcode == WrOpcode::kWriteImm; }
  bool has_imm() const { return opcode == WrOpcode::kSendImm || opcode == WrOpcode::kWriteImm; }
  bool consumes_receive() const { return is_send() || opcode == WrOpcode::kWriteImm; }
  bool pushes() const { return is_send() || is_write(); }
  bool whole() const { return placed_bytes == length; }
};

struct Receive {
  std::uint64_t wr_id = 0;
  std::uint32_t capacity = 0;
  bool local_ok = true;
  bool faulty = false;
  std::vector<Range> sinks;
};

// Receives that several queue pairs draw from (docs/protocol/verbs.md#shared-receive-queues). Which message
// takes which is not known when they are posted: the first byte or the completion tells.
struct SharedReceives {
  enum class State : std::uint8_t { kPosted, kTaken, kDone };
  PdId pd{};
  std::vector<Receive> receives;
  std::vector<State> states;
  std::unordered_map<std::uint64_t, std::uint64_t> index;  // wr_id -> receive
  std::uint64_t done = 0;
  std::uint64_t done_end = 0;       // every receive that is done is below this
  std::uint32_t limit = 0;          // the limit that is armed; 0: none
  std::uint64_t taken_at_most = 0;  // when it was armed
};

struct Endpoint {
  static constexpr std::uint64_t kUnknown = UINT64_MAX;
  QpFacts facts;
  SharedReceives* shared = nullptr;  // instead of receives of its own
  std::vector<std::uint64_t> bound;  // the shared receive that each message took
  bool failed = false;               // it is in the error state, whether or not its user knows
  std::vector<Message> sends;
  std::vector<Receive> receives;
  std::vector<std::uint64_t> consumers;  // message indices in the order they consume the peer's receives
  std::unordered_map<std::uint64_t, std::uint64_t> send_index;     // wr_id -> index
  std::unordered_map<std::uint64_t, std::uint64_t> receive_index;  // wr_id -> index
  std::uint64_t sends_completed = 0;                               // all below are complete
  std::uint64_t receives_completed = 0;
  std::uint64_t atomics_looked_at = 0;  // sends below this that are atomics have been executed
  bool forced_error = false;            // the user moved it to ERR
  bool destroyed = false;
  bool send_failed = false;     // a request completed with an error
  bool receive_failed = false;  // a receive completed with an error
  // Of what was placed here so far, in roce, where packets are placed in order.
  std::optional<Seq> newest_request;
  std::optional<Seq> newest_response;
  bool posted_bad = false;   // some request of ours breaks a rule and must be refused
  bool bad_receive = false;  // a message met a receive of ours that cannot take it
  bool receives_flushed = false;
};

// A piece of memory that may be written, and the message or receive that allows it.
struct Sink {
  enum class Kind : std::uint8_t { kWrite, kRead, kReceive };
  Kind kind{};
  Endpoint* owner = nullptr;  // the requester (kWrite, kRead) or the receiver (kReceive)
  SharedReceives* shared =
      nullptr;               // kReceive: any queue pair that draws from this queue, instead of `owner`
  std::uint64_t index = 0;   // message or receive
  std::uint64_t offset = 0;  // in the region
  std::uint32_t length = 0;
  std::uint32_t message_offset = 0;
};

class Ledger {
 public:
  explicit Ledger(Report& report) : report_(report) {}

  void region(HostId host, RegionId id, const Region& region);
  void region_gone(HostId host, RegionId id);
  void region_faults(HostId host, RegionId id);
  void window(HostId host, Key key, PdId pd);
  void connected(const QpFacts& facts);
  void destroyed(End end);
  void forced_error(End end);
  void failed(End end);
  void posted_send(End end, const SendWr& wr, std::span<const std::uint8_t> inline_bytes, Time now);
  void posted_recv(End end, const RecvWr& wr, Time now);

  // --- shared receives (shared_receives.cc) ---
  void shared(HostId host, SrqId id, PdId pd);
  void posted_shared(HostId host, SrqId id, const RecvWr& wr, Time now);
  void limit_armed(HostId host, SrqId id, std::uint32_t limit);
  void limit_reached(HostId host, SrqId id, Time now);
  // Message k of this end's peer has taken this receive; false if that cannot be.
  bool take_shared(Endpoint& receiver, std::uint64_t k, std::uint64_t receive, Time now);
  void shared_done(HostId host, SharedReceives& queue, std::uint64_t receive, Time now);
  void finish_shared(Time now);
  // The receive of message k, if it is known.
  const Receive* receive_of(const Endpoint& receiver, std::uint64_t k) const;
  // The message of the peer that a SEND packet at this end belongs to.
  std::uint64_t message_at(const Endpoint& receiver, const wire::Header& h);

  // A bind or an invalidation has completed: from now on the window is open, or shut.
  void window_bound(const Endpoint& owner, const WindowBind& bind);
  void window_shut(const Endpoint& owner, Key key);

  Endpoint* find(End end);
  Endpoint* peer(const Endpoint& e) { return find(e.facts.peer); }
  Region* find_region(HostId host, RegionId id);
  const Sink* sink_at(HostId host, RegionId region, std::uint64_t offset) const;
  bool sink_retired(const Sink& sink) const;

  // For the final check: all connections, and regions whose memory differs from its shadow.
  template <class F>
  void each_region(F f) {
    for (auto& [key, r] : regions_) f(key.first, key.second, r);
  }
  template <class F>
  void each_endpoint(F f) {
    for (auto& [end, e] : endpoints_) f(*e);
  }

 private:
  using Place = std::pair<HostId, RegionId>;
  // `qpn`: of the queue pair that is asked for it; a window opens for its owner's peer only.
  bool resolve(HostId host, PdId pd, Qpn qpn, Key key, std::uint64_t address, std::uint64_t length,
               std::uint8_t rights, Range& out, bool& faults);
  bool may_bind(const Endpoint& owner, const WindowBind& bind) const;
  void match(Endpoint& requester, Endpoint& receiver, std::uint64_t k);
  Receive receive(HostId host, PdId pd, const RecvWr& wr, Sink sink, Time now);
  std::uint64_t taken_at_most(const SharedReceives& queue) const;
  void limit_due(HostId host, const SharedReceives& queue, Time now);
  void add_sink(HostId host, const Range& range, Sink sink, Time now);

  Report& report_;
  struct Window {  // one that is open
    Qpn owner;
    WindowBind bind;
  };
  static Key any_tag(Key key) { return {key.v & ~0xFFU}; }
  std::map<Place, Region> regions_;
  std::map<std::pair<HostId, Key>, Window> windows_;
  std::map<std::pair<HostId, Key>, PdId> window_pds_;  // by any_tag
  std::map<End, std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<Endpoint>> former_;  // whose numbers others have now
  std::map<std::pair<HostId, SrqId>, SharedReceives> shared_;
  std::map<std::pair<Place, std::uint64_t>, Sink> sinks_;  // by region and offset
};

}  // namespace weft::check
