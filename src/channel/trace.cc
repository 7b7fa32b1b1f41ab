// Stamps of traced messages, questions about clocks, and what took too long (trace.h, slow_log.h). Nothing
// here runs while tracing, slow_threshold and polling_warn_cycle are off.
//
// Where stamps stand: a message that waits to be sent has those that it is to carry where its head will be; a
// received one has them where its head was. Both are this end's own memory.
#include <algorithm>
#include <cstring>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

constexpr std::uint64_t kFirstSamples = 4;  // of a clock: these follow each other quickly
constexpr Duration kQuickly = milliseconds(1);

// Of a received message, in the 32 bytes that were its head.
struct Stamps {
  std::uint64_t arrived = 0;  // T2, ours
  std::uint64_t left = 0;     // T1, the peer's
  std::uint64_t word = 0;     // the trace; of a response: when its request arrived, the peer's clock
  std::uint32_t queued = 0;   // of a response; saturating
  std::uint32_t round = 0;
};
static_assert(sizeof(Stamps) == Head::kBytes);

std::uint8_t* head_of_received(Message& m) { return reinterpret_cast<std::uint8_t*>(&m) + kFrameAt; }
const std::uint8_t* head_of_received(const Message& m) {
  return reinterpret_cast<const std::uint8_t*>(&m) + kFrameAt;
}
std::uint8_t* head_to_send(Message& m) { return reinterpret_cast<std::uint8_t*>(&m) + kHeadAt; }
Stamps stamps_of(const Message& m) {
  Stamps s;
  std::memcpy(&s, head_of_received(m), sizeof s);
  return s;
}
std::uint32_t saturated(std::uint64_t ns) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(ns, UINT32_MAX));
}
std::uint64_t ns_of(Duration d) { return d.ps <= 0 ? 0 : static_cast<std::uint64_t>(d.ns()); }

}  // namespace

std::uint64_t Context::clock_ns() const {
  if (config_.clock != nullptr) return config_.clock(config_.program);
  // 1 more, because 0 is no stamp.
  return static_cast<std::uint64_t>(now_.ps + back_ps_) / 1000 + back_ns_ + 1;
}

// --- what is sent ---

// The trace of a message that is taken over now; stamps other than the time it leaves.
void Context::note(Message& m, std::uint64_t trace, std::uint64_t arrived) {
  m.traced = true;
  write_head({0, 0, trace, 0, arrived}, head_to_send(m));
}

void Context::sample(Message& m, std::uint32_t low) {
  const bool chosen = (sampling_ & 1U) != 0;
  sampling_ = sampling_ >> 1U | sampling_ << 63U;
  if (!chosen) return;
  ++counts_.traced;
  const std::uint64_t kind = m.role == Role::kRequest ? 1ULL << 32U : 0;
  note(m, trace_tag_ | kind | low, 0);
}

void Context::trace_answer(const Message& request, Message& m) {
  const Stamps s = stamps_of(request);
  note(m, s.word, s.arrived);
}

void Context::stamp(Channel& c, Message& m, Head& head) {
  const Head noted = read_head(head_to_send(m));
  head.trace = noted.trace;
  head.arrived = noted.arrived;
  head.left_at = clock_ns();
  if (m.role == Role::kPlain || m.role == Role::kClock) head.call = head.status = 0;
  if (m.role == Role::kRequest) {
    if (Call* const call = find_call({m.call})) {
      call->left_ns = head.left_at;
      call->queued_ns = saturated(ns_of(now_ - call->asked_at));
    }
  }
  if (m.role == Role::kClock && head.trace == 0) c.clock.asked_ns = head.left_at;
}

// --- what came ---

// A head that has stamps, or should. False: it says what cannot be (docs/protocol/channel.md#violations).
bool Context::stamps_came(Message& m, const Head& h) {
  if (h.left_at == 0) return false;
  Stamps s{clock_ns(), h.left_at, h.trace, 0, 0};
  switch (m.role) {
    case Role::kPlain:
      if (h.trace == 0 || h.arrived != 0 || h.call != 0 || h.status != 0) return false;
      break;
    case Role::kRequest:
      if (h.trace == 0 || h.arrived != 0) return false;
      break;
    case Role::kResponse: {
      if (h.trace == 0 || h.arrived == 0 || h.arrived > h.left_at) return false;
      s.word = h.arrived;
      const Call* const call = find_call({h.call});
      if (call == nullptr || call->channel != m.channel) break;  // late; it is dropped
      if (call->left_ns == 0 || h.trace != (trace_tag_ | 1ULL << 32U | h.call)) return false;
      s.round = saturated(s.arrived > call->left_ns ? s.arrived - call->left_ns : 0);
      break;
    }
    case Role::kClock: {
      // The only one whose 32 bytes are all the peer's: arrived there in the place of the two durations.
      if (h.call != 0 || h.status != 0 || (h.trace == 0) != (h.arrived == 0) || h.arrived > h.left_at)
        return false;
      std::memcpy(&s.queued, &h.arrived, sizeof h.arrived);
      break;
    }
  }
  m.traced = true;
  std::memcpy(head_of_received(m), &s, sizeof s);
  return true;
}

void Context::way_known(Channel& c, Message& m) {
  Trace t;
  if (!trace_of(m, t) || !t.offset_known) return;
  const std::uint64_t way = t.network_ns > 0 ? static_cast<std::uint64_t>(t.network_ns) : 0;
  c.ways.add(way);
  if (config_.slow.ps == 0 || way <= ns_of(config_.slow)) return;
  if (SlowEntry* const e = slow_.add(Place::kWay, t.arrived_ns, way)) {
    e->peer = c.peer;
    e->service = c.service;
    e->trace = t.id;
  }
}

// A response is about to be the program's, and `call` is its request.
void Context::answer_known(Channel& c, Message& m, const Call& call) {
  const std::uint64_t took = ns_of(now_ - call.asked_at);
  Trace t;
  if (m.traced) {
    Stamps s = stamps_of(m);
    s.queued = saturated(call.queued_ns);
    std::memcpy(head_of_received(m), &s, sizeof s);
    (void)trace_of(m, t);
  }
  if (config_.slow.ps == 0 || took <= ns_of(config_.slow)) return;
  if (SlowEntry* const e = slow_.add(Place::kRequest, clock_ns(), took)) {
    e->peer = c.peer;
    e->service = c.service;
    e->trace = t.id;
    e->queued_ns = t.queued_ns;
    e->ways_ns = t.ways_ns();
    e->there_ns = t.there_ns;
  }
}

bool Context::trace_of(const Message& m, Trace& out) const {
  if (!m.traced || !m.is(Message::kReceived) || m.channel == nullptr) return false;
  const Stamps s = stamps_of(m);
  const PeerClock& clock = m.channel->clock;
  out = {};
  out.response = m.role == Role::kResponse;
  out.id = out.response ? trace_tag_ | 1ULL << 32U | m.call : s.word;
  out.left_ns = s.left;
  out.arrived_ns = s.arrived;
  out.offset_known = clock.samples != 0;
  out.offset_ns = clock.offset_ns;
  out.error_ns = clock.error_ns(s.arrived);
  if (out.offset_known)
    out.network_ns =
        static_cast<std::int64_t>(s.arrived - s.left - static_cast<std::uint64_t>(clock.offset_ns));
  if (out.response) {
    out.queued_ns = s.queued;
    out.round_ns = s.round;
    out.there_ns = s.left - s.word;
  }
  return true;
}

// --- clocks ---

void Context::begin_clock(Channel& c) { c.clock.ask_at = config_.trace_mask != 0 ? now_ : kNever; }

void Context::ask_clock(Channel& c) {
  c.clock.ask_at = config_.trace_mask == 0 ? kNever
                                           : now_.after(c.clock.samples < kFirstSamples
                                                            ? std::min(kQuickly, config_.clock_interval)
                                                            : config_.clock_interval);
  if (config_.trace_mask != 0) send_clock(c, 0, 0);
}

// A message of the two libraries. Without room or memory there is none: the asker asks again.
void Context::send_clock(Channel& c, std::uint64_t asked, std::uint64_t arrived) {
  const bool room = c.waiting < config_.queue || (c.waiting == 0 && c.tx.room());
  if (c.state != Channel::State::kOpen || !room) return;
  Message* const m = lent_.take(0);
  if (m == nullptr) return;
  m->length = 0;
  m->role = Role::kClock;
  note(*m, asked, arrived);
  ++c.counted.clocks;
  submit(c, m, false);
}

Context::ClockStamps Context::clock_stamps(const Message& m) {
  const Stamps s = stamps_of(m);
  ClockStamps out{s.word, 0, s.left, s.arrived};
  std::memcpy(&out.t2, &s.queued, sizeof out.t2);
  return out;
}

// A question, or the answer to one. An answer to an earlier question counts for nothing.
void Context::clock_came(Channel& c, const ClockStamps& s) {
  if (s.t1 == 0) return send_clock(c, s.t3, s.t4);
  if (c.clock.asked_ns == 0 || s.t1 != c.clock.asked_ns) return;
  c.clock.asked_ns = 0;
  (void)c.clock.sample(s.t1, s.t2, s.t3, s.t4);
}

// --- what took too long ---

void Context::poll_was_late(Duration gap) {
  ++counts_.late_polls;
  (void)slow_.add(Place::kPolls, clock_ns(), ns_of(gap));
}

void Context::section_ended(Place place, std::uint64_t began_ns) {
  const std::uint64_t now = clock_ns();
  const std::uint64_t took = now > began_ns ? now - began_ns : 0;
  if (took > ns_of(config_.slow)) (void)slow_.add(place, now, took);
}

}  // namespace weft::channel
