// The programs of a swarm world: they carry out a plan, message by message, as queues and sinks allow.
//
// A sink slot is used again as soon as its message is complete. A packet that arrives late thus finds other
// data in its place, as in a real program.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "pair/plan.h"
#include "pair/world.h"

namespace weft::pair {

class Workload final : public Programs {
 public:
  Workload(const Plan& plan, World& world);

  Time next_wake() const override;
  void act(World& world, Time now) override;
  bool waiting() const override;

  Qpn qpn(std::uint32_t connection, std::uint32_t side) const { return ends_[connection * 2 + side].qpn; }

 private:
  struct Sinks {
    Buffer buffer;
    std::vector<std::uint32_t> free;
  };
  struct Posted {
    std::uint64_t wr_id = 0;
    bool write_slot = false;  // holds a slot of write_sinks
    bool read_slot = false;
    bool signaled = false;
    bool answered = false;  // a READ or atomic
    bool through_window = false;
    bool missed_window = false;
    std::uint32_t slot = 0;
  };
  static bool uses_window(const std::deque<Posted>& posted);
  // A memory window over the sinks of the peer's WRITEs: bound, used a few times, shut, bound again.
  struct Window {
    enum class State : std::uint8_t { kNone, kShut, kBinding, kOpen, kClosing, kShutting, kSpoilt };
    State state = State::kNone;
    Key key{};
    std::uint32_t uses = 0;  // to come
    std::uint32_t binds = 0;
    bool by_peer = false;  // how it will be shut
  };
  // The receives that ends of one host share.
  struct Shared {
    std::uint32_t host = 0;
    SrqId srq = kNoSrq;
    Sinks sinks;
    std::map<std::uint64_t, std::uint32_t> posted;  // wr_id -> slot
    std::uint64_t count = 0;
    Time next_receive{};
  };
  // One end of one connection.
  struct End {
    std::uint32_t connection = 0;
    std::uint32_t side = 0;
    std::uint32_t host = 0;
    Qpn qpn{};
    CqId send_cq{};
    CqId recv_cq{};
    Buffer source;
    Buffer cells;                        // at the peer: memory for atomics, shared by all its queue pairs
    Buffer no_right;                     // registered here, grants the peer nothing
    Buffer vanishing;                    // registered here, its memory is gone
    Buffer foreign;                      // registered here, in another protection domain
    Key foreign_window{};                // likewise
    Sinks write_sinks;                   // at the peer: where our WRITEs land
    Sinks read_sinks;                    // here
    Sinks receive_sinks;                 // here
    Window window;                       // here
    std::uint64_t last_id = 0;           // of requests
    std::size_t next = 0;                // message
    std::deque<Posted> posted;           // requests
    std::deque<std::uint32_t> receives;  // slots of posted receives
    std::uint64_t receives_posted = 0;
    std::uint64_t receives_wanted = 0;
    std::vector<std::uint64_t> too_short;  // receives that meet a kTooLong message
    Time next_post{};
    Time next_receive{};
    bool dead = false;  // saw an error
    enum class Drain : std::uint8_t { kNo, kAsked, kDrained, kOver } drain = Drain::kNo;
    Time resume_at = kNever;
    bool destroyed = false;
  };

  static constexpr std::uint64_t kReceiveMark = 1ULL << 63U;  // wr_ids of receives

  const ConnectionPlan& plan_of(const End& e) const { return plan_.connections[e.connection]; }
  const FlowPlan& flow_of(const End& e) const { return plan_of(e).flow[e.side]; }
  End& peer_of(const End& e) { return ends_[e.connection * 2 + (1 - e.side)]; }
  void set_up(World& world, std::uint32_t connection);
  std::pair<PdId, Buffer>& shared(World& world, std::uint32_t host);
  // shared.cc
  bool draws_shared(const End& e) const { return plan_of(e).shared[e.side]; }
  Shared& shared_of(World& world, std::uint32_t host);
  void tend_shared(World& world, Time now);
  void shared_completed(World& world, End& e, const Completion& c);
  void hang_up(World& world);
  // windows.cc
  void make_window(World& world, End& e, PdId pd, std::uint32_t memory);
  WindowBind good_bind(End& e);
  void spoil_bind(const End& e, BindFault fault, WindowBind& bind);
  void tend_window(World& world, End& e);
  void window_completed(World& world, End& e, const Completion& c);
  void post_sends(World& world, End& e, Time now);
  bool post_message(World& world, End& e, const MessagePlan& m);
  void post_receives(World& world, End& e, Time now);
  void poll(World& world, End& e);
  void disrupt(World& world, Time now);
  void drain(World& world, Time now);
  void forge(World& world);
  // Cuts [offset, offset + length) of a buffer into `n` pieces.
  std::span<const Sge> pieces(const Buffer& b, std::uint64_t offset, std::uint32_t length, std::uint32_t n,
                              bool reversed);

  const Plan& plan_;
  Prng random_;
  std::vector<End> ends_;                                    // two per connection
  std::map<std::uint32_t, std::pair<PdId, Buffer>> shared_;  // with atomics: per host
  std::map<std::uint32_t, Shared> shared_receives_;          // by host
  std::vector<bool> disrupted_;
  std::array<Sge, 32> sges_{};
  std::array<Completion, 8> polled_{};
  std::uint32_t forged_ = 0;
  Time next_forgery_{};
  Time next_poll_{};
  Time acted_{};  // time of the last act(): a plan due by then waits for an event
};

}  // namespace weft::pair
