// From a frame to a message. Everything that a peer says is checked here against
// docs/protocol/channel.md#violations before anything is done with it.
#include <algorithm>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {

// The block of a received message goes back under the queue pair.
void Context::post_receive(Channel& c, Message& m) {
  if (shared_.on()) return shared_.give(m);
  const Sge sge{m.address + kFrameAt, config_.small + Head::kBytes, m.lkey};
  const RecvWr wr{work_id(Work::kReceive, c, m.slot), {&sge, 1}};
  m.state = Message::kReceived | Message::kPosted;
  if (port_.post_recv(c.qpn, {&wr, 1}).taken != 1) fail_channel(c, Reason::kLost);
}

// A frame has come before the end that asked looked at the answer. That event is taken out of its turn, and
// the others keep theirs.
[[gnu::noinline]] void Context::meet_early(Channel& c) {
  const auto answers = [&](const PortEvent& e) {
    return e.kind == PortEventKind::kEstablished && c.connected && e.connection == c.connection;
  };
  auto found = std::find_if(put_off_.begin(), put_off_.end(), answers);
  for (PortEvent e; found == put_off_.end() && port_.poll_event(e);) {
    // The port's event that rings for completions may be among these, so the program does not sleep.
    met_early_ = true;
    look_at_ = {};
    put_off_.push_back(e);
    found = answers(e) ? put_off_.end() - 1 : put_off_.end();
  }
  if (found == put_off_.end()) return;
  const PortEvent answer = *found;
  put_off_.erase(found);
  established(c, answer);
}

// All of what a message needs is made one function of, here and in release(): the calls were a tenth of what
// a message costs.
[[gnu::flatten]] bool Context::frame_came(Channel& c, Message& m, const Completion& done) {
  if (c.state == Channel::State::kAnswered) {
    opened(c);  // the first frame may overtake the connection manager
    if (!c.talks()) return false;
  }
  if (!c.talks()) meet_early(c);
  if (c.qpn == kNoQpn) return false;  // it opened, and moved to TCP
  if (!c.talks()) return violated(c), false;
  c.heard = now_;
  Immediate i;
  std::uint64_t news = 0;
  const bool sound = done.opcode == WcOpcode::kReceive && (done.flags & kWcWithImm) != 0 &&
                     unpack(done.imm, i) && heed(c, i, news);
  if (!sound) return violated(c), false;
  const bool numbered = i.kind == Kind::kMessage || i.kind == Kind::kAnnouncement;
  if (!(numbered ? message_came(c, m, i, done.byte_len, nullptr)
                 : done.byte_len == 0 && control_came(c, i, news)))
    return violated(c), false;
  if (c.qpn == kNoQpn) return numbered;
  if (!numbered) post_receive(c, m);
  pump(c);
  return true;
}

// What every frame says, whatever it is. False: it cannot be.
bool Context::heed(Channel& c, const Immediate& i, std::uint64_t& news) {
  std::uint64_t taken = 0;
  if (!c.tx.allows(i.ack, taken) || (i.may && c.may_early)) return false;
  news = taken - c.tx.taken;
  taken_up_to(c, taken);
  if (i.may) {
    c.may_early = true;
    if (c.rx.owes()) owe_ack(c);
  }
  return true;
}

[[gnu::noinline]] bool Context::control_came(Channel& c, const Immediate& i, std::uint64_t news) {
  if (i.head || i.seq != (static_cast<std::uint32_t>(c.rx.wta) & kNumberMask)) return false;
  if (i.kind == Kind::kMove) {
    // Only the end that dials is asked to, and only one that said it can.
    const bool command = i.role == Role::kRequest;
    if (!c.asked || streams_ == nullptr || !(command || i.role == Role::kPlain)) return false;
    peer_moves(c, command);
    return true;
  }
  if (i.role != Role::kPlain) return false;
  if (i.kind == Kind::kNop) return i.may;
  if (i.kind == Kind::kClose) {
    finish(c, Reason::kThere);
    return true;
  }
  // An ACK of less than a quarter of the window is early: the permission is used.
  if (news == 0) return false;
  if (news >= ack_every(c.tx.depth)) return true;
  if (c.peer_used) return false;
  c.peer_used = true;
  if (c.tx.in_flight()) await_ack(c);
  return true;
}

// `body`: where the payload lies, if not behind its head in the frame.
bool Context::message_came(Channel& c, Message& m, const Immediate& i, std::uint32_t bytes, Message* body) {
  if (!c.rx.expects(i.seq)) return false;
  if (!i.head && i.role != Role::kPlain) return false;
  if (i.role == Role::kClock && (i.kind != Kind::kMessage || bytes != Head::kBytes)) return false;
  const std::uint32_t ahead = i.head ? Head::kBytes : 0;
  if (bytes < ahead || (body == nullptr && bytes > config_.small + Head::kBytes)) return false;
  std::uint8_t* const frame = reinterpret_cast<std::uint8_t*>(&m) + kFrameAt;
  m.role = i.role;
  m.body = nullptr;
  m.traced = false;
  if (i.head) {
    const Head head = read_head(frame);
    m.call = head.call;
    m.status = head.status;
    const bool stamps = (head.trace | head.left_at | head.arrived) != 0;
    if ((stamps || i.role == Role::kPlain || i.role == Role::kClock) && !stamps_came(m, head)) return false;
  }
  m.data = body == nullptr ? frame + ahead : body->data;
  m.length = bytes - ahead;
  std::uint8_t state = Message::kReceived | Message::kWhole;
  if (i.kind == Kind::kAnnouncement) {
    Announcement a;
    if (!read_announcement({frame + ahead, bytes - ahead}, config_.largest, a)) return false;
    m.length = static_cast<std::uint32_t>(a.length);
    m.fetched = m.asked = 0;
    state = Message::kReceived;
    ++c.counted.large_received;
    ++c.unasked;
  }
  m.body = body;
  if (body != nullptr) [[unlikely]]
    ++c.counted.large_received;
  m.state = state;  // until here the block counts as a posted receive, and a violation gives it back
  m.number = c.rx.wta++;
  c.taken_at(m.number) = &m;
  const bool took = shared_.on() && c.qpn != kNoQpn;
  if (took) shared_.kept();
  if (i.role != Role::kClock) c.count_received(m.length);
  if (m.is(Message::kWhole)) {
    if (c.rx.handed == m.number) hand_over(c);
  } else {
    join_fetching(c);
  }
  if (took) shared_.replace();  // last: the turn may end here for want of memory
  return true;
}

// Messages that are whole, in order, to the program.
void Context::hand_over(Channel& c) {
  while (c.rx.handed != c.rx.wta) {
    Message& m = *c.taken_at(c.rx.handed);
    if (!m.is(Message::kWhole)) break;
    if (m.role == Role::kClock) {
      const ClockStamps stamps = clock_stamps(m);
      ++c.rx.handed;
      ++c.rx.held;
      take_back(c, m);
      if (c.state == Channel::State::kOpen) clock_came(c, stamps);
      if (c.state == Channel::State::kClosed) return;
      continue;
    }
    if (c.state == Channel::State::kClosing) break;  // it said that it wants no more
    const Filtered filtered = config_.filters() ? filter(c, m.number) : Filtered::kPass;
    if (filtered == Filtered::kLater) break;
    if (filtered == Filtered::kFail) {
      ++counts_.failed;
      return fail_channel(c, Reason::kLost);
    }
    ++c.rx.handed;
    ++c.rx.held;
    if (filtered == Filtered::kDrop) {
      ++counts_.dropped;
      take_back(c, m);
      if (c.state == Channel::State::kClosed) return;
      continue;
    }
    if (m.traced) way_known(c, m);
    if (m.role == Role::kResponse) {
      Call* const call = find_call({m.call});
      if (call == nullptr || call->channel != &c) {
        ++counts_.late;
        take_back(c, m);
        if (c.state == Channel::State::kClosed) return;
        continue;
      }
      m.cookie = call->cookie;
      c.round_trips.add(now_ - call->asked_at);
      if (m.traced || config_.slow.ps != 0) answer_known(c, m, *call);
      --c.calls;
      free_call(*call);
    }
    m.set(Message::kTelling);
    tell(m, Telling::What::kMessage);
  }
}

void Context::drop_received(Message& m) {
  if (m.has_head()) m.forget_head();
  if (m.body != nullptr) m.is(Message::kWhole) ? own_.give(m.body) : give_body(*m.channel, *m.body);
  shared_.on() ? shared_.give(m) : own_.give(&m);
}

[[gnu::flatten]] void Context::release(Message* m) {
  if (!m->is(Message::kReceived)) {
    CHECK(m->state == 0);  // otherwise it is on its way
    return give_lent(m);
  }
  CHECK(!m->is(Message::kPosted));
  CHECK(!m->is(Message::kTelling));
  Channel& c = *m->channel;
  if (c.state != Channel::State::kClosed) {
    take_back(c, *m);
    return ring();
  }
  drop_received(*m);
  --c.rx.held;
  maybe_leave(c);
}

// The program has taken a message: its block serves again, and then the peer may be told.
void Context::take_back(Channel& c, Message& m) {
  --c.rx.held;
  c.taken_at(m.number) = nullptr;
  if (m.has_head()) m.forget_head();
  if (m.body != nullptr) own_.give(m.body);
  m.body = nullptr;
  if (shared_.on()) {
    if (c.qpn != kNoQpn) shared_.gone();
    shared_.give(m);
  } else if (c.qpn != kNoQpn) {
    post_receive(c, m);
    if (c.state == Channel::State::kClosed) return;
  } else {
    m.state = Message::kReceived | Message::kPosted;
  }
  while (c.rx.rta != c.rx.handed && c.taken_at(c.rx.rta) == nullptr) c.rx.take_one();
  if (!speaks(c) || !c.rx.owes()) return;
  if (c.rx.owes_at_once() && post_control(c, Kind::kAck)) {
    ++c.counted.acks;
  } else {
    owe_ack(c);
  }
}

}  // namespace weft::channel
