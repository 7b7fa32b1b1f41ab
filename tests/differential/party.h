// Programs that meet: at each host one that listens, answers what is asked of it, calls as its plan says, and
// sends messages on what was established (calls.h). It decides by what it is told and by the plan, never by
// the world that it runs in.
//
// Every queue pair is a Talk: of a call, at either end, or of a round of queue pairs connected by hand.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "tests/differential/calls.h"
#include "tests/differential/door.h"

namespace weft::differential {

class Party final : public Programs {
 public:
  explicit Party(const CallsPlan& plan) : plan_(plan) {}

  void set_up(std::array<Host*, 2> hosts) override;
  // The same with doors that the world has made.
  void enter(std::array<std::unique_ptr<Door>, 2> doors);
  void act(std::size_t h, Time now) override;
  Time next_wake(std::size_t h) const override;
  void leave(Time now) override;
  // Its next act() may ask what a peer speaks, and wait for the answer.
  bool may_wait(std::size_t h, Time now) const;

  bool same_memory(const Party& other) const {
    return sides_[0].door->bytes() == other.sides_[0].door->bytes() &&
           sides_[1].door->bytes() == other.sides_[1].door->bytes();
  }

  // What happened at both ends together, so that a test can tell that enough did.
  struct Counts {
    std::uint64_t established = 0, rejected = 0, unreachable = 0, parted = 0, early = 0, asked = 0,
                  completed = 0, failed = 0;
    std::array<std::uint64_t, wire::kModeCount> modes{};  // of queue pairs that reached RTS

    template <class See>
    void each(const See& see) const {
      see("established", established);
      see("rejected", rejected);
      see("unreachable", unreachable);
      see("parted", parted);
      see("early", early);
      see("asked", asked);
      see("completed", completed);
      see("failed", failed);
      for (std::size_t m = 0; m < modes.size(); ++m) see(wire::kModeNames[m].data(), modes[m]);
    }
    Counts& operator+=(const Counts& o) {
      established += o.established;
      rejected += o.rejected;
      unreachable += o.unreachable;
      parted += o.parted;
      early += o.early;
      asked += o.asked;
      completed += o.completed;
      failed += o.failed;
      for (std::size_t m = 0; m < modes.size(); ++m) modes[m] += o.modes[m];
      return *this;
    }
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Talk {
    std::size_t index = 0;       // among its host's
    const Call* call = nullptr;  // none: by hand
    std::size_t side = 0;        // 0: it called
    const std::vector<Message>* messages = nullptr;
    std::optional<cm::ConnId> conn;
    Qpn qpn = kNoQpn;
    bool opened = false;  // messages may be sent ...
    bool open = false;    // ... and still may
    bool left = false;
    std::size_t posted = 0, completed = 0;
    std::uint64_t receives = 0;
    std::size_t round = 0;
  };
  enum class What : std::uint8_t { kCall, kAccept, kComplete, kClose, kRound };
  struct Step {
    Time due;
    What what;
    std::size_t talk;
  };
  struct Side {
    std::unique_ptr<Door> door;
    std::deque<Talk> talks;
    std::vector<Step> steps;
    std::size_t called = 0;  // calls begun
    std::optional<cm::ListenerId> listener;
    std::optional<std::size_t> asking;  // the talk whose peer is being asked: nothing else happens
    std::vector<std::size_t> rounds;    // their talks ...
    std::vector<Qpn> numbers;           // ... and queue pairs
  };

  void say(std::size_t h, Time now, std::string what) { log(h, Lane::kDevice, now, std::move(what)); }
  template <class T>
  bool did(std::size_t h, Time now, const char* what, const Talk& t, const Outcome<T>& done);
  Talk& begin_talk(std::size_t h, const Call* call, std::size_t side);
  void end_talk(std::size_t h, Talk& t, Time now);  // its queue pair goes
  void receive(std::size_t h, Talk& t);
  void show_state(std::size_t h, const Talk& t, Time now);
  void opened(std::size_t h, Talk& t, Time now);
  Talk* talk_of(std::size_t h, cm::ConnId conn);

  bool poll(std::size_t h, Time now);
  bool hear_device(std::size_t h, Time now);
  bool hear_manager(std::size_t h, Time now);
  bool take_steps(std::size_t h, Time now);
  bool post(std::size_t h, Time now);
  bool part(std::size_t h, Time now);

  void requested(std::size_t h, const cm::CmEvent& e, Time now);
  void answered(std::size_t h, Talk& t, Time now);
  void over(std::size_t h, Talk& t, Time now);
  void call(std::size_t h, Time now);
  void next_call(std::size_t h, Time now);
  void accept(std::size_t h, Talk& t, Time now);
  void complete(std::size_t h, Talk& t, Time now);
  void begin_round(std::size_t h, Talk& t, Time now);
  bool raise(std::size_t h, Talk& t, Time now);

  const CallsPlan& plan_;
  std::array<Side, 2> sides_;
  Counts counts_;
};

}  // namespace weft::differential
