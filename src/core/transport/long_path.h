// For tests: two Devices (two_devices.h) with a path between them that takes time, more or less of it as the
// test likes, and may lose or reorder. Time goes to the next arrival or deadline, as in a world.
#pragma once
#include <map>
#include <memory>
#include <utility>

#include "core/base/prng.h"
#include "core/transport/engine.h"
#include "core/transport/two_devices.h"

namespace weft {

// Which packets a path loses: whatever a test assigns to it. None, to begin with.
class Losses {
 public:
  template <class F>
  Losses& operator=(F takes) {
    rule_ = std::make_unique<Of<F>>(std::move(takes));
    return *this;
  }
  bool operator()(const wire::Header& h) { return rule_ != nullptr && rule_->takes(h); }

 private:
  struct Rule {
    virtual ~Rule() = default;
    virtual bool takes(const wire::Header& h) = 0;
  };
  template <class F>
  struct Of : Rule {
    explicit Of(F f) : takes_(std::move(f)) {}
    bool takes(const wire::Header& h) override { return takes_(h); }
    F takes_;
  };
  std::unique_ptr<Rule> rule_;
};

struct LongPath : TwoDevices {
  LongPath(wire::Mode m, const DeviceConfig& config, std::uint8_t verbs_timeout = 20)
      : TwoDevices(m, config) {
    timeout = verbs_timeout;
    qa = a.create();
    qb = b.create();
    connect(qa, qb);
  }

  // As the soft NIC's (live/engine/sizing.cc).
  static DeviceConfig live() {
    DeviceConfig c;
    c.rto = Rto::kFloored;
    c.rto_floor = milliseconds(1);
    c.tail_probe = milliseconds(1);
    c.ack_coalesce = true;
    return c;
  }

  // Everything that is due now leaves, or arrives; then time moves. False: nothing would ever happen again.
  bool step() {
    send(a, b);
    send(b, a);
    Time next = std::min(a.device.next_deadline(), b.device.next_deadline());
    if (!on_the_way_.empty()) next = std::min(next, on_the_way_.begin()->first.first);
    if (next == kNever) return false;
    now = std::max(now, next);
    arrive();
    a.device.on_timer(now);
    b.device.on_timer(now);
    a.device.check_invariants();
    b.device.check_invariants();
    return true;
  }
  // Until all that was posted is complete, or for `limit` at most.
  std::size_t complete(std::size_t count, Duration limit = seconds(100)) {
    const Time end = now.after(limit);
    std::size_t done = 0;
    while (done < count && now < end && step()) {
      for (const Completion& c : a.completions()) {
        CHECK(c.status == WcStatus::kSuccess);
        ++done;
      }
    }
    return done;
  }
  void writes(int count, std::uint32_t packets) {
    for (int i = 0; i < count; ++i) post(request(WrOpcode::kWrite, 0, 256 * packets, 0));
  }
  std::uint64_t count(Counter c) const { return a.device.counters().get(c); }

  Duration delay{};    // one way
  Duration jitter{};   // and up to so much more
  Duration spacing{};  // of the packets that one side sends
  Duration batch{};    // they arrive at multiples of this, several at once
  Losses loses;
  std::vector<std::pair<Time, wire::Header>> sent_by_a;

 private:
  using When = std::pair<Time, std::uint64_t>;  // and in order of leaving
  void send(Side& from, Side& to) {
    std::vector<Side::Frame> frames;
    for (std::size_t before = SIZE_MAX; frames.size() != before;) {
      before = frames.size();
      from.collect(from.device.poll_transmit(now, {}), frames);
      from.collect(from.device.poll_control(now), frames);
    }
    for (Side::Frame& f : frames) {
      if (&from == &a) sent_by_a.emplace_back(now, f.packet.header);
      if (loses(f.packet.header)) continue;
      const std::int64_t more =
          jitter.ps == 0 ? 0
                         : static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(jitter.ps)));
      Time& free = &from == &a ? free_[0] : free_[1];
      free = std::max(free, now).after(spacing);
      Time at = free.after(delay + picoseconds(more));
      if (batch.ps != 0) at.ps = (at.ps + batch.ps - 1) / batch.ps * batch.ps;
      on_the_way_.emplace(When{at, serial_++}, std::pair{&to, std::move(f)});
    }
  }
  void arrive() {
    while (!on_the_way_.empty() && on_the_way_.begin()->first.first <= now) {
      auto [to, frame] = std::move(on_the_way_.begin()->second);
      on_the_way_.erase(on_the_way_.begin());
      deliver(*to, std::move(frame));
    }
  }

  std::map<When, std::pair<Side*, Side::Frame>> on_the_way_;
  std::uint64_t serial_ = 0;
  Time free_[2]{};
  Prng random_{7};
};

}  // namespace weft
