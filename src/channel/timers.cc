// What happens because nothing does: early ACKs, NOPs, probes, attempts that come to nothing, farewells,
// requests without an answer. Early ACKs and NOPs stand in rows of their own (row.h). For everything else a
// channel has one entry in the deadlines, which may be early; then it is put in again.
#include <algorithm>

#include "channel/clock.h"
#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

// docs/protocol/constants.md: the code of a queue pair's time-out.
Duration time_out(std::uint8_t code) { return nanoseconds(4096) * (std::int64_t{1} << code); }

}  // namespace

void Context::leave_rows(Channel& c) {
  if (c.in_owed) owed_.remove(c.index);
  if (c.in_nops) nops_.remove(c.index);
  c.in_owed = c.in_nops = false;
}

Time Context::due(const Channel& c) const {
  Time at = std::min({c.hungry_at, c.slow_until, c.until, c.redial_at});
  if (c.state == Channel::State::kOpen && config_.keepalive.ps != 0 && !c.probing && c.qpn != kNoQpn)
    at = std::min(at, c.heard.after(config_.keepalive));
  if (c.state == Channel::State::kOpen) at = std::min({at, c.clock.ask_at, too_slow_at(c)});
  if (c.state == Channel::State::kOpen) at = std::min(at, c.moving.wanted_at);
  if (c.state == Channel::State::kOpen && c.asked) at = std::min(at, c.moving.cool_until);
  return at;
}

// Over many channels each of them lies in memory, so a batch of them is asked for before the first is needed.
template <class Late>
void Context::fire(Row& row, Late late) {
  while (row.next() <= now_) {
    std::uint32_t batch[kBatch];
    std::uint32_t n = 0;
    for (std::uint32_t i = row.first(); n < kBatch && row.due(i, now_); i = row.after(i)) {
      batch[n++] = i;
      const auto* const at = reinterpret_cast<const std::uint8_t*>(&channels_[i]);
      for (std::size_t line = 0; line < 2; ++line) __builtin_prefetch(at + 64 * line, 1);
    }
    for (std::uint32_t k = 0; k < n; ++k) {
      row.remove(batch[k]);
      late(channels_[batch[k]]);
    }
  }
}

void Context::timers() {
  const Section timed(*this, Place::kTimers);
  fire(owed_, [this](Channel& c) {
    c.in_owed = false;
    ack_late(c);
  });
  fire(nops_, [this](Channel& c) {
    c.in_nops = false;
    ask_by_nop(c);
  });
  while (channel_times_.next() <= now_) {
    const std::uint32_t index = channel_times_.top();
    const bool forgotten = channel_times_.forgotten(index);
    channel_times_.remove(index);
    if (forgotten) continue;
    Channel& c = channels_[index];
    timed_ = &c;
    channel_time(c);
    timed_ = nullptr;
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

// Taken and not told for the delay of ACKs (docs/protocol/channel.md#acknowledgements).
void Context::ack_late(Channel& c) {
  const bool at_once = c.rx.owes_at_once();
  if (!speaks(c) || !c.rx.owes() || !(c.may_early || at_once)) return;
  if (!post_control(c, Kind::kAck)) return owe_ack(c);
  c.may_early = c.may_early && at_once;
  ++(at_once ? c.counted.acks : c.early);
}

void Context::ask_by_nop(Channel& c) {
  if (!c.talks() || !c.peer_used || !c.tx.in_flight()) return;
  if (!post_control(c, Kind::kNop)) return await_ack(c);
  ++c.counted.nops;
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
    if (c.connected || c.carried != nullptr || c.qpn != kNoQpn) {
      hang_up(c);
      choose_carrier(c, false);
    }
    const bool dialled = dial(c);
    if (!dialled) choose_carrier(c, false);
    c.redial_at = now_.after(dialled ? attempt_time(c) : config_.redial);
  }
  if (!c.talks()) return;
  if (c.hungry_at <= now_) {
    c.hungry_at = kNever;
    join_fetching(c);
    enlist(c);
  }
  if (c.slow_until <= now_) {
    c.slow_until = kNever;
    hand_over(c);
    if (!c.talks()) return;
  }
  if (c.moving.cool_until <= now_ && c.asked && c.state == Channel::State::kOpen) {
    c.moving.cool_until = kNever;
    c.moving.trial = true;
    return change_over(c, Carrier::kRdma);
  }
  if (c.moving.wanted_at <= now_ && c.state == Channel::State::kOpen) {
    want(c, c.moving.wants_tcp ? Carrier::kTcp : Carrier::kRdma);
    if (!c.talks()) return;
  }
  if (too_slow_at(c) <= now_) {
    judge_time(c, false);
    if (!c.talks()) return;
  }
  if (c.clock.ask_at <= now_) {
    ask_clock(c);
    if (!c.talks()) return;
  }
  if (config_.keepalive.ps != 0 && !c.probing && c.heard.after(config_.keepalive) <= now_ &&
      c.state == Channel::State::kOpen && c.qpn != kNoQpn && c.sq_used() < sq_) {
    SendWr wr;
    wr.opcode = WrOpcode::kWrite;
    c.probing = post(c, wr, Work::kProbe, 0, true);
    ++c.counted.probes;
  }
}

// --- the clock ---

void Context::rebase(Duration by) {
  CHECK(by.ps >= 0 && by <= kMostRebase && Time{} + by <= now_);
  const auto move = [by](Time& t) { t = rebased(t, by); };
  back_ps_ += by.ps;
  back_ns_ += static_cast<std::uint64_t>(back_ps_ / 1000);
  back_ps_ %= 1000;
  for (Stranger& s : strangers_) move(s.until);
  for (Time* t : {&now_, &polled_, &look_at_, &shrink_at_}) move(*t);
  owed_.rebase(by);
  nops_.rebase(by);
  lent_.rebase(by);
  own_.rebase(by);
  channel_times_ = Deadlines(config_.channels);
  for (Channel& c : channels_) {
    for (Time* t : {&c.hungry_at, &c.slow_until, &c.heard, &c.until, &c.kept_until, &c.redial_at,
                    &c.clock.ask_at, &c.moving.timed_at, &c.moving.slow_since, &c.moving.cool_until,
                    &c.moving.back_since, &c.moving.wanted_at})
      move(*t);
    if (!c.over()) arm(c, due(c));
  }
  call_times_ = Deadlines(config_.calls);
  for (Call& call : calls_) {
    move(call.deadline);
    move(call.asked_at);
    if (call.busy && !call.over && call.deadline != kNever)
      call_times_.at_latest(static_cast<std::uint32_t>(&call - calls_.data()), call.deadline);
  }
}

}  // namespace weft::channel
