// Which carrier a channel has (X-RDMA §6.3, Mock): RDMA, or TCP for as long as RDMA is not to be had. A
// change is a reconnection of the session over the other carrier
// (docs/protocol/channel.md#changing-the-carrier): the end that asked for the channel hangs up and dials; the
// other end asks it to by a frame.
//
//   by command    move(), or the parameter `mock` for all channels. The channel stays where it was sent. A
//                 command back to RDMA that fails once ends over TCP, like a try after mock_cool.
//   by itself     when a message's time to the peer's device and back was above mock_slow for mock_slow_for,
//                 or after mock_redials attempts over RDMA that failed, or as many as the time for which the
//                 session is kept has room for. After mock_cool RDMA is tried again; a try that fails, or
//                 that is followed by another change soon, doubles the next wait.
//
// What is timed is one message at a time, from its posting to the device's completion: the peer's program is
// not in it. A poll that came late is in it, so such a time does not count.
#include <algorithm>

#include "channel/context.h"

namespace weft::channel {
namespace {

constexpr int kMostCooled = 6;

}  // namespace

bool Context::can_move(const Channel& c) const {
  return streams_ != nullptr && c.opened_once && config_.reconnect.ps != 0 && c.peer_keeps_ms != 0 &&
         (c.asked ? c.peer_port != 0 : config_.tcp_port != 0 && c.peer_moves);
}

Outcome<void> Context::move(Channel& c, Carrier to) {
  if (c.over() || !can_move(c)) return fail(Errc::kUnsupported);
  if (c.state != Channel::State::kOpen) return fail(Errc::kBusy);
  c.moving.cool_until = c.moving.wanted_at = kNever;
  if (c.carrier == to) return {};
  if (c.asked) {
    change_over(c, to);
    return {};
  }
  return ask_to_move(c, true) ? Outcome<void>{} : fail(Errc::kBusy);
}

// The parameter `mock`: where the channel cannot be moved now, it is moved later.
void Context::want(Channel& c, Carrier to) {
  Moving& m = c.moving;
  m.wanted_at = kNever;
  if (const auto moved = move(c, to); moved || moved.error() != Errc::kBusy) return;
  m.wants_tcp = to == Carrier::kTcp;
  m.wanted_at = now_.after(config_.redial);
  arm(c, m.wanted_at);
}

// Once on a connection: the peer hangs up, or does not want to.
bool Context::ask_to_move(Channel& c, bool command) {
  if (!c.moving.asked_peer)
    c.moving.asked_peer = post_control(c, Kind::kMove, command ? Role::kRequest : Role::kPlain);
  ring();
  return c.moving.asked_peer;
}

// The peer asks this end, which asked for the channel, to dial over the other carrier.
void Context::peer_moves(Channel& c, bool command) {
  if (c.state != Channel::State::kOpen || !can_move(c)) return;
  const Carrier to = c.carrier == Carrier::kRdma ? Carrier::kTcp : Carrier::kRdma;
  c.moving.cool_until = kNever;
  if (!command && to == Carrier::kTcp) cool_down(c);
  change_over(c, to);
}

void Context::change_over(Channel& c, Carrier to) {
  c.kept_until = now_.after(config_.reconnect);
  hang_up(c);
  c.state = Channel::State::kBroken;
  c.carrier = to;
  c.moving.back = to == Carrier::kRdma;
  c.until = c.kept_until;
  c.redial_at = now_;
  arm(c, now_);
}

// The channel goes over TCP by itself. Where RDMA was back for less than a cool-down, the next one is twice
// as long.
void Context::cool_down(Channel& c) {
  Moving& m = c.moving;
  const bool soon = m.trial || (m.back_since != Time{} && now_ - m.back_since < config_.mock_cool);
  m.cooled = soon ? std::min(m.cooled + 1, kMostCooled) : 0;
  m.trial = false;
  m.cool_until = kNever;
  if (config_.mock_cool.ps == 0) return;
  m.cool_until = now_;
  for (int i = 0; i < 1 << m.cooled; ++i) m.cool_until = m.cool_until.after(config_.mock_cool);
}

// The connection failed, or an attempt at one; this end dials again. What was open is dialled over the same
// carrier.
void Context::choose_carrier(Channel& c, bool was_open) {
  Moving& m = c.moving;
  if (was_open) {
    m.attempts = 0;
    return;
  }
  if (c.carrier == Carrier::kTcp) {
    c.carrier = Carrier::kRdma;
    m.cool_until = kNever;
    m.attempts = 0;
    return;
  }
  ++m.attempts;
  if (!can_move(c)) return;
  const bool enough = m.attempts >= config_.mock_redials || no_time_for_two(c);
  if (!m.trial && !m.back && (config_.mock_redials == 0 || !enough)) return;
  cool_down(c);
  c.carrier = Carrier::kTcp;
  m.attempts = 0;
}

// Both ends keep the session for a while, in which an attempt over each carrier must find its place.
Duration Context::attempt_time(const Channel& c) const {
  if (!c.opened_once || !can_move(c)) return config_.connecting;
  const Duration kept = std::min(config_.reconnect, milliseconds(std::int64_t{c.peer_keeps_ms}));
  return std::min(config_.connecting, kept / 4);
}

// The end that keeps the session for the shorter time will soon have forgotten it.
bool Context::no_time_for_two(const Channel& c) const {
  const Duration kept = std::min(config_.reconnect, milliseconds(std::int64_t{c.peer_keeps_ms}));
  return c.kept_until - now_ < config_.reconnect - kept + attempt_time(c) * 2;
}

void Context::carrier_opened(Channel& c, bool again) {
  Moving& m = c.moving;
  if (again && c.carrier != c.opened_over) ++c.counted.moves;
  c.opened_over = c.carrier;
  m.attempts = 0;
  m.asked_peer = m.back = false;
  m.slow_since = kNever;
  if (c.carrier == Carrier::kRdma) {
    if (m.trial) m.back_since = now_;
    m.trial = false;
    m.cool_until = kNever;
  }
  if (m.wanted_at != kNever) return want(c, m.wants_tcp ? Carrier::kTcp : Carrier::kRdma);
  if (!again && config_.mock != 0) want(c, Carrier::kTcp);
}

// --- how fast RDMA is ---

void Context::time_message(Channel& c, const Message& m) {
  Moving& t = c.moving;
  if (t.timing) return;
  t.timing = true;
  t.timed = m.number;
  t.timed_at = now_;
  t.late_polls = slow_polls_;
  arm(c, too_slow_at(c));
}

Time Context::too_slow_at(const Channel& c) const {
  const Moving& t = c.moving;
  if (!t.timing || config_.mock_slow.ps == 0) return kNever;
  const Time slow = t.timed_at.after(config_.mock_slow);
  return std::max(slow, std::min(t.slow_since, slow).after(config_.mock_slow_for));
}

// The timed message is complete, or it has been under way for too long.
void Context::judge_time(Channel& c, bool complete) {
  Moving& t = c.moving;
  const bool counts = t.late_polls == slow_polls_;
  if (complete || !counts) t.timing = false;
  if (!counts) return;
  if (now_ - t.timed_at <= config_.mock_slow) {
    if (complete) t.slow_since = kNever;
    return;
  }
  t.slow_since = std::min(t.slow_since, t.timed_at.after(config_.mock_slow));
  if (c.state != Channel::State::kOpen || c.qpn == kNoQpn || now_ - t.slow_since < config_.mock_slow_for)
    return;
  t.slow_since = kNever;
  t.timing = false;
  if (!can_move(c)) return;
  if (!c.asked) {
    (void)ask_to_move(c, false);
    return;
  }
  cool_down(c);
  change_over(c, Carrier::kTcp);
}

}  // namespace weft::channel
