// What happens because nothing does: early ACKs, NOPs, probes, attempts that come to nothing, farewells,
// requests without an answer. A channel has one entry in the deadlines, which may be early; then it is put in
// again.
#include <algorithm>

#include "channel/context.h"

namespace weft::channel {
namespace {

// docs/protocol/constants.md: the code of a queue pair's time-out.
Duration time_out(std::uint8_t code) { return nanoseconds(4096) * (std::int64_t{1} << code); }

}  // namespace

Time Context::due(const Channel& c) const {
  Time at = std::min({c.owed_at, c.nop_at, c.hungry_at, c.until, c.redial_at});
  if (c.state == Channel::State::kOpen && config_.keepalive.ps != 0 && !c.probing)
    at = std::min(at, c.heard.after(config_.keepalive));
  return at;
}

void Context::timers() {
  while (channel_times_.next() <= now_) {
    const std::uint32_t index = channel_times_.top();
    const bool forgotten = channel_times_.forgotten(index);
    channel_times_.remove(index);
    if (forgotten) continue;
    Channel& c = channels_[index];
    channel_time(c);
    const Time again = c.over() ? kNever : due(c);
    if (again != kNever) arm(c, std::max(again, now_.after(microseconds(1))));
  }
  while (call_times_.next() <= now_) {
    const std::uint32_t slot = call_times_.top();
    const bool forgotten = call_times_.forgotten(slot);
    call_times_.remove(slot);
    if (!forgotten && calls_[slot].busy && !calls_[slot].over) settle_call(calls_[slot], Fate::kTooLate);
  }
  if (shrink_at_ <= now_) {
    shrink_at_ = now_.after(config_.idle_memory);
    // A transport whose responders repeat READ answers may do so after the peer has everything: the
    // acknowledgement of the answers was lost. They fall silent after five time-outs
    // (docs/protocol/irn.md#silence-of-the-responder).
    lent_.shrink(std::max(config_.idle_memory, time_out(config_.terms.timeout) * 16));
    own_.shrink(config_.idle_memory);
  }
}

void Context::channel_time(Channel& c) {
  if (c.until <= now_) {
    if (c.state == Channel::State::kAsked) return refuse(c);
    // The end that asked has gone, and it asks again.
    if (c.state == Channel::State::kAnswered && c.opened_once) return fail_channel(c, Reason::kLost);
    return finish(c, c.state == Channel::State::kClosing  ? Reason::kHere
                     : c.state == Channel::State::kBroken ? Reason::kLost
                                                          : Reason::kLate);
  }
  if (c.redial_at <= now_) {
    if (c.connected) hang_up(c);
    c.redial_at = now_.after(dial(c) ? config_.connecting : config_.redial);
  }
  if (c.state != Channel::State::kOpen && c.state != Channel::State::kClosing) return;
  if (c.hungry_at <= now_) {
    c.hungry_at = kNever;
    join_fetching(c);
  }
  if (c.owed_at <= now_) {
    c.owed_at = kNever;
    if (c.rx.owes() && c.may_early) {
      const bool early = !c.rx.owes_at_once();
      if (post_control(c, Kind::kAck)) {
        c.may_early = c.may_early && !early;
        ++c.counts.acks;
        c.counts.early += early ? 1U : 0U;
      } else {
        c.owed_at = now_.after(config_.ack_delay);
      }
    } else if (c.rx.owes_at_once()) {
      if (post_control(c, Kind::kAck)) {
        ++c.counts.acks;
      } else {
        c.owed_at = now_.after(config_.ack_delay);
      }
    }
  }
  if (c.nop_at <= now_) {
    c.nop_at = kNever;
    if (c.peer_used && c.tx.in_flight()) {
      if (post_control(c, Kind::kNop)) {
        ++c.counts.nops;
      } else {
        c.nop_at = now_.after(config_.patience);
      }
    }
  }
  if (config_.keepalive.ps != 0 && !c.probing && c.heard.after(config_.keepalive) <= now_ &&
      c.state == Channel::State::kOpen && c.sq_used() < sq_) {
    SendWr wr;
    wr.opcode = WrOpcode::kWrite;
    c.probing = post(c, wr, Work::kProbe, 0, true);
    ++c.counts.probes;
  }
}

}  // namespace weft::channel
