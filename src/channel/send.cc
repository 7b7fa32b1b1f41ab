// From a message to a frame: the queue, the window, and what becomes of what was sent.
#include <algorithm>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

// Entries of the send queue that messages leave to fetches and control frames.
constexpr std::uint32_t kSpareForReads = 12;

}  // namespace

Outcome<void> Context::may_send(const Channel& c, Message* m, std::uint32_t most_waiting) {
  if (c.state != Channel::State::kOpen && c.state != Channel::State::kBroken) return fail(Errc::kInvalid);
  // A message that was received, or that is on its way already, has a place of its own.
  if (m->state != 0) return fail(Errc::kInvalid);
  // What fits a frame, head and all, is not longer than the longest message that the peer takes.
  if (m->length > m->capacity || (m->length + Head::kBytes > c.tx.frame && m->length > c.largest) ||
      !lent_.intact(*m))
    return fail(Errc::kInvalid);
  if (c.waiting >= most_waiting && !(c.waiting == 0 && c.tx.room())) return fail(Errc::kBusy);
  return {};
}

// At once, or at the end of the queue.
void Context::submit(Channel& c, Message* m, bool tell_delivery) {
  m->channel = &c;
  m->fate = Fate::kDelivered;
  m->state = 0;
  if (tell_delivery) m->set(Message::kTell);
  const bool room = c.tx.room();
  if (room && c.waiting == 0 && c.tx.again == 0 && c.state == Channel::State::kOpen && may_post(c)) {
    give_number(c, *m);
    if (!post_message(c, *m)) fail_channel(c, Reason::kLost);
    return ring();
  }
  if (!room) ++c.counted.waited;
  m->set(Message::kQueued);
  m->before = c.last;
  m->after = nullptr;
  (c.last != nullptr ? c.last->after : c.first) = m;
  c.last = m;
  ++c.waiting;
  pump(c);
  ring();
}

void Context::unqueue(Channel& c, Message* m) {
  (m->before != nullptr ? m->before->after : c.first) = m->after;
  (m->after != nullptr ? m->after->before : c.last) = m->before;
  m->clear(Message::kQueued);
  --c.waiting;
}

Outcome<void> Context::send(Channel& c, Message* m, std::uint64_t cookie, bool tell_delivery) {
  if (const auto may = may_send(c, m, config_.queue); !may) return may;
  m->role = Role::kPlain;
  m->cookie = cookie;
  m->traced = false;
  if (sampling_ != 0) sample(*m, static_cast<std::uint32_t>(counts_.traced));
  submit(c, m, tell_delivery);
  return {};
}

Outcome<CallId> Context::call(Channel& c, Message* m, std::uint64_t cookie, Time deadline) {
  if (free_calls_.empty()) return fail(Errc::kNoMemory);
  if (const auto may = may_send(c, m, config_.queue); !may) return fail(may.error());
  const std::uint16_t slot = free_calls_.back();
  free_calls_.pop_back();
  Call& call = calls_[slot];
  call.channel = &c;
  call.cookie = cookie;
  call.deadline = deadline;
  call.asked_at = now_;
  call.left_ns = 0;
  call.queued_ns = 0;
  call.busy = true;
  call.over = false;
  ++c.calls;
  const CallId id{static_cast<std::uint32_t>(call.turn) << 16U | slot};
  m->role = Role::kRequest;
  m->cookie = cookie;
  m->call = id.v;
  m->status = 0;
  m->traced = false;
  if (sampling_ != 0) sample(*m, id.v);
  if (deadline != kNever) call_times_.at_latest(slot, deadline);
  submit(c, m, false);
  return id;
}

Outcome<void> Context::answer(Message& request, Message* response, std::uint32_t status,
                              std::uint64_t cookie) {
  if (request.role != Role::kRequest || !request.is(Message::kReceived) || request.answered)
    return fail(Errc::kInvalid);
  Message* m = response != nullptr ? response : lent_.take(0);
  if (m == nullptr) return fail(Errc::kNoMemory);
  if (response == nullptr) m->length = 0;
  // Both ends may wait for answers with full windows of requests. An answer is not refused for want of room,
  // so that its request can be given back. Of these there are as many as the peer has calls: a peer that has
  // more than this end may have takes no answers, and then its requests are held.
  if (const auto may = may_send(*request.channel, m, config_.queue + config_.depth + config_.calls); !may) {
    if (response == nullptr) give_lent(m);
    return may;
  }
  m->role = Role::kResponse;
  m->cookie = cookie;
  request.answered = true;
  m->call = request.call;
  m->status = status;
  m->traced = false;
  if (request.traced) trace_answer(request, *m);
  submit(*request.channel, m, false);
  return {};
}

// --- requests ---

Context::Call* Context::find_call(CallId id) {
  const std::uint32_t slot = id.v & 0xFFFFU;
  if (slot >= calls_.size()) return nullptr;
  Call& call = calls_[slot];
  return call.busy && !call.over && call.turn == id.v >> 16U ? &call : nullptr;
}

void Context::settle_call(Call& call, Fate fate) {
  call.over = true;
  call.fate = fate;
  --call.channel->calls;
  ++counts_.unanswered;
  call_times_.forget(static_cast<std::uint32_t>(&call - calls_.data()));
  tell(call, Telling::What::kCall);
}

void Context::free_call(Call& call) {
  call.busy = false;
  call.turn = static_cast<std::uint16_t>(call.turn + 1);
  const auto slot = static_cast<std::uint16_t>(&call - calls_.data());
  call_times_.remove(slot);
  free_calls_.push_back(slot);
}

bool Context::cancel(CallId id) {
  Call* const call = find_call(id);
  if (call == nullptr) return false;
  settle_call(*call, Fate::kCancelled);
  return true;
}

// --- frames ---

bool Context::may_post(const Channel& c) const {
  if (c.qpn == kNoQpn) [[unlikely]]
    return !c.carried->busy();
  return c.sq_used() + kSpareForReads < sq_;
}

void Context::give_number(Channel& c, Message& m) {
  m.number = c.tx.seq++;
  m.set(Message::kNumbered);
  c.sent_at(m.number) = &m;
}

// Whatever may leave now: messages that have a number already, then those of the queue while the window has
// room.
void Context::pump_on(Channel& c) {
  if (!c.talks()) return;
  for (;;) {
    const bool again = c.tx.again != 0;
    if (!again && (c.first == nullptr || !c.tx.room())) break;
    if (!may_post(c)) break;
    Message* const m = again ? c.sent_at(c.tx.posted()) : c.first;
    if (again) {
      --c.tx.again;
    } else {
      unqueue(c, m);
      // A request that is over already need not leave.
      if (m->role == Role::kRequest && find_call({m->call}) == nullptr) {
        give_lent(m);
        continue;
      }
      give_number(c, *m);
    }
    if (!post_message(c, *m)) return fail_channel(c, Reason::kLost);
  }
  if (c.state == Channel::State::kClosing) farewell(c);
}

std::uint32_t Context::immediate(Channel& c, Kind kind, Role role, bool head, std::uint64_t number) {
  Immediate i;
  i.ack = static_cast<std::uint32_t>(c.rx.rta) & kNumberMask;
  i.seq = static_cast<std::uint32_t>(number) & kNumberMask;
  i.may = c.peer_used;
  i.head = head;
  i.role = role;
  i.kind = kind;
  c.rx.untold = 0;
  c.peer_used = false;
  if (c.in_owed || c.in_nops) leave_rows(c);
  return pack(i);
}

// `number`: 12 bits that come back with the completion.
bool Context::post(Channel& c, SendWr& wr, Work work, std::uint32_t number, bool signaled) {
  ++c.sq_posted;
  posted_ = true;
  // A completion frees every entry before it, so one in eight of the queue is enough.
  if (signaled || static_cast<std::uint16_t>(c.sq_posted - c.sq_signaled) >= sq_ / 8) {
    wr.flags = static_cast<std::uint8_t>(wr.flags | kSendSignaled);
    c.sq_signaled = c.sq_posted;
  }
  wr.wr_id = work_id(work, c, (number & kNumberMask) << 16U | c.sq_posted);
  return port_.post_send(c.qpn, {&wr, 1}).taken == 1;
}

// The head, and parts that lie in the program's own memory.
std::span<const Sge> Context::gather_list(Message& m, std::uint32_t ahead) {
  std::size_t count = 0;
  if (ahead != 0) gathered_[count++] = {m.address + kPayloadAt - ahead, ahead, m.lkey};
  each_part(m, [&](const Part& p, std::uint32_t n) {
    gathered_[count++] = {p.address(), n, p.memory->memory.lkey};
  });
  return {gathered_.data(), count};
}

bool Context::post_message(Channel& c, Message& m) {
  if (c.qpn == kNoQpn) [[unlikely]]
    return stream_message(c, m);
  if (config_.mock_slow.ps != 0) [[unlikely]]
    time_message(c, m);
  const bool head = m.has_head();
  const std::uint32_t ahead = head ? Head::kBytes : 0;
  const bool large = m.length > config_.small || m.length + ahead > c.tx.frame;
  if (head) {
    Head h{m.call, m.status, 0, 0, 0};
    if (m.traced) stamp(c, m, h);
    write_head(h, reinterpret_cast<std::uint8_t*>(&m) + (large ? kFrameAt : kHeadAt));
  }
  Sge& sge = gathered_[0];
  sge = {m.address + kPayloadAt - ahead, m.length + ahead, m.lkey};
  if (large) [[unlikely]]
    announce(c, m, ahead);
  SendWr& wr = frame_wr_;
  wr.sges = {&sge, sge.length != 0 ? 1U : 0U};
  // A device copies what is inline from one place.
  const bool copied = sge.length <= inline_ && sge.length != 0;
  wr.flags = kSendSolicited | (copied ? kSendInline : 0);
  if (m.outside != nullptr && !large) [[unlikely]] {
    wr.sges = gather_list(m, ahead);
    if (wr.sges.size() != 1) wr.flags = kSendSolicited;
  }
  wr.imm = immediate(c, large ? Kind::kAnnouncement : Kind::kMessage, m.role, head, m.number);
  if (m.role != Role::kClock) c.count_sent(m.length);
  return post(c, wr, Work::kMessage, static_cast<std::uint32_t>(m.number), true);
}

// What leaves of a long message is where it lies; that is made in the room for a frame.
void Context::announce(Channel& c, Message& m, std::uint32_t ahead) {
  Announcement a;
  a.length = m.length;
  if (m.outside != nullptr) [[unlikely]] {
    each_part(m, [&](const Part& p, std::uint32_t n) {
      a.pieces[a.count++] = {p.address(), n, p.memory->memory.rkey};
    });
  } else {
    a.count = 1;
    a.pieces[0] = {m.address + kPayloadAt, m.length, m.rkey};
  }
  std::uint8_t* const frame = reinterpret_cast<std::uint8_t*>(&m) + kFrameAt;
  gathered_[0] = {m.address + kFrameAt, ahead + write_announcement(a, frame + ahead), m.lkey};
  ++c.counted.large_sent;
}

// A frame without a number. False: the send queue is full, or the connection failed; it is tried again.
bool Context::post_control(Channel& c, Kind kind, Role role) {
  if (c.qpn == kNoQpn) [[unlikely]]
    return stream_control(c, kind, role);
  if (c.sq_used() >= sq_) return false;
  SendWr& wr = frame_wr_;
  wr.sges = {};
  wr.flags = kSendSolicited;
  wr.imm = immediate(c, kind, role, false, c.tx.posted());
  const bool close = kind == Kind::kClose;
  return post(c, wr, close ? Work::kClose : Work::kControl, 0, close);
}

// --- outcomes ---

void Context::settle_from(Channel& c, std::uint64_t number) {
  for (const std::uint64_t acked = c.tx.acked(); number != acked; ++number) {
    Message& m = *c.sent_at(number);
    m.clear(Message::kNumbered);
    settle(m, Fate::kDelivered);
  }
}

// A message leaves the ring or the queue. What became of a request is its call's affair.
void Context::settle(Message& m, Fate fate) {
  const bool silent = m.role == Role::kRequest || m.role == Role::kClock;
  const bool to_tell = !silent && (fate != Fate::kDelivered || m.is(Message::kTell));
  if (!to_tell) return give_lent(&m);
  m.fate = fate;
  m.set(Message::kTelling);
  tell(m, Telling::What::kSent);
}

}  // namespace weft::channel
