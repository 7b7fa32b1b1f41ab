// A channel from its first word to its last (docs/protocol/channel.md#meeting, #closing, #reconnecting).
//
//   connect(): dial() ------------------------> asked(): the program is told; accept(): answer_call()
//   established(): agree(), opened() <--------- established(): opened()
//
//   fail_channel(): the session is kept and the end that asked dials again, or finish()
//   close(): farewell() when everything is taken, then finish()
//
// finish() is the only way out: it tells what became of every message, and that the channel is gone.
#include <algorithm>
#include <array>
#include <bit>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

std::uint32_t in_ms(Duration d) {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(d.us() / 1000, UINT32_MAX));
}

Reason reason_of(Refusal r) {
  switch (r) {
    case Refusal::kVersion:
      return Reason::kVersion;
    case Refusal::kNoRoom:
      return Reason::kNoRoom;
    case Refusal::kSession:
      return Reason::kSessionGone;
    case Refusal::kRange:
      return Reason::kRange;
    default:
      return Reason::kRefused;
  }
}

}  // namespace

// --- what happens to connections ---

// Everything that is not a completion. Over libibverbs this asks the kernel, so not in every turn.
void Context::look() {
  const Section timed(*this, Place::kEvents);
  look_at_ = now_.after(config_.look);
  met_early_ = false;
  look_at_port();
  if (streams_ != nullptr && !streaming()) stream_turn();
}

// An event is handled once, also by a turn that ends for want of memory.
void Context::look_at_port() {
  while (!put_off_.empty()) {
    const PortEvent e = put_off_.front();
    put_off_.erase(put_off_.begin());
    happened(e);
  }
  for (PortEvent e; port_.poll_event(e);) happened(e);
}

void Context::happened(const PortEvent& e) {
  if (e.kind == PortEventKind::kConnectRequest) return asked(e);
  if (e.kind == PortEventKind::kLastReceive) return last_receive(e.qpn);
  if (e.kind == PortEventKind::kCompletion || e.kind == PortEventKind::kQpError)
    return;  // completions tell it
  Channel* const c = by_connection(e.connection);
  if (c == nullptr) {
    if (e.kind == PortEventKind::kEstablished) (void)port_.disconnect(e.connection);
    return;
  }
  if (e.kind == PortEventKind::kEstablished) return established(*c, e);
  if (e.kind == PortEventKind::kRejected) return rejected(*c, e);
  forget_connection(*c);
  fail_channel(*c, Reason::kLost);
}

void Context::connect_by(Channel& c, ConnectionId id) {
  c.connection = id;
  c.connected = true;
  by_connection_[id] = c.index;
}

void Context::forget_connection(Channel& c) {
  if (c.connected) by_connection_.erase(c.connection);
  c.connected = false;
}

Channel* Context::by_connection(ConnectionId id) {
  const auto it = by_connection_.find(id);
  return it == by_connection_.end() ? nullptr : &channels_[it->second];
}

Channel* Context::by_session(const SessionName& name) {
  const auto it = by_session_.find(name);
  return it == by_session_.end() ? nullptr : &channels_[it->second];
}

// Folded products of secret and name: a peer that does not know the secret cannot choose names that collide.
std::size_t SessionHash::operator()(const SessionName& n) const {
  __extension__ using Wide = unsigned __int128;
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(n.peer.bytes);
  std::uint64_t h = secret;
  for (const std::uint64_t word : {words[0], words[1], n.session}) {
    const Wide product = static_cast<Wide>(h ^ word) * (secret | 1U);
    h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }
  return h;
}

Channel* Context::take_channel() {
  if (free_.empty()) return nullptr;
  Channel& c = channels_[free_.back()];
  free_.pop_back();
  Channel fresh;
  fresh.index = c.index;
  fresh.context = this;
  fresh.life = c.life;
  c = std::move(fresh);
  c.begun.channel = c.ended.channel = &c;
  return &c;
}

// Rings and receives; the peer's first frame finds one of these. Again, after a reconnection, those that are
// free.
bool Context::furnish(Channel& c) {
  if (c.rings == nullptr) {
    const std::uint32_t ring = std::bit_ceil(config_.depth);
    const std::uint32_t own_slots = shared_.on() ? 0 : slots_;
    c.rings = std::unique_ptr<Message*[]>(new (std::nothrow) Message*[2 * ring + own_slots]());
    if (c.rings == nullptr) return false;
    if (!own_.reserve_frames(own_slots)) {
      c.rings.reset();
      return false;
    }
    c.ring_mask = static_cast<std::uint16_t>(ring - 1);
    for (std::uint32_t i = 0; i < own_slots; ++i) {
      Message* const m = own_.take_frame();
      CHECK(m != nullptr);
      m->channel = &c;
      m->slot = static_cast<std::uint16_t>(i);
      m->set(Message::kReceived);
      m->set(Message::kPosted);
      c.receive_at(i) = m;
    }
  }
  const auto qp = take_qp(c);
  if (!qp) return false;
  c.qpn = *qp;
  c.last_receive = 0;
  c.sq_posted = c.sq_done = c.sq_signaled = 0;
  if (!port_.prepare(c.qpn)) return false;
  for (std::uint32_t i = 0; !shared_.on() && i < slots_; ++i) {
    if (c.receive_at(i)->is(Message::kPosted)) post_receive(c, *c.receive_at(i));
  }
  return true;
}

Hello Context::hello_of(const Channel& c, bool continues) const {
  Hello h;
  h.continues = continues;
  h.moves = streams_ != nullptr && config_.reconnect.ps != 0;
  h.tcp_port = config_.tcp_port;
  h.session = c.session;
  h.depth = config_.depth;
  h.frame = config_.small + Head::kBytes;
  h.largest = config_.largest;
  h.received = c.rx.wta;
  h.taken = c.rx.rta;
  h.reconnect_ms = in_ms(config_.reconnect);
  h.alive_ms = in_ms(config_.keepalive);
  return h;
}

// --- the end that asks ---

Outcome<Channel*> Context::connect(const wire::Address& to, std::uint16_t service, std::uint64_t cookie) {
  Channel* const c = take_channel();
  if (c == nullptr) return fail(Errc::kNoMemory);
  c->asked = true;
  c->cookie = cookie;
  c->peer = to;
  c->service = service;
  c->session = config_.draw != nullptr ? config_.draw() : random_.next();
  c->state = Channel::State::kConnecting;
  if (!dial(*c)) {
    give_up_messages(*c);
    c->state = Channel::State::kClosed;
    maybe_leave(*c);
    return fail(Errc::kNoMemory);
  }
  c->until = now_.after(config_.connecting);
  arm(*c, c->until);
  return c;
}

bool Context::dial(Channel& c) {
  if (c.carrier == Carrier::kTcp) return dial_stream(c);
  if (!furnish(c)) {
    hang_up(c);
    return false;
  }
  c.rx.untold = 0;
  const auto id =
      port_.connect(c.peer, c.service, c.qpn, config_.terms, write_hello(hello_of(c, c.opened_once)));
  if (!id) {
    hang_up(c);
    return false;
  }
  connect_by(c, *id);
  return true;
}

void Context::rejected(Channel& c, const PortEvent& e) {
  forget_connection(c);
  Hello theirs;
  const bool said = e.data.size != 0;
  const Reason reason = said ? reason_of(read_hello(e.data, theirs)) : Reason::kRefused;
  const bool again = c.opened_once && reason != Reason::kSessionGone && reason != Reason::kVersion;
  if (again) return fail_channel(c, Reason::kLost);
  finish(c, reason);
}

// --- the end that is asked ---

void Context::reject(ConnectionId connection, Refusal why) {
  Hello no;
  no.reason = why;
  ++counts_.refused;
  (void)port_.reject(connection, write_hello(no));
}

void Context::asked(const PortEvent& e) {
  Hello theirs;
  if (const Refusal bad = read_hello(e.data, theirs); bad != Refusal::kNone) return reject(e.connection, bad);
  const SessionName name{e.peer, theirs.session};
  Channel* c = by_session(name);
  if (theirs.continues) {
    if (const Refusal why = resume(c, theirs); why != Refusal::kNone) return reject(e.connection, why);
    if (!shared_.on() || !behind_) bury();  // its queue pair may be the last that there is
    c->carrier = Carrier::kRdma;
    c->connection = e.connection;
    (void)agree(*c, theirs, c->rx.rta);  // what is taken from here on is told in frames
    if (answer_call(*c) == Reason::kNone) return;
    reject(e.connection, Refusal::kNoRoom);
    return fail_channel(*c, Reason::kLost);
  }
  // A new session has a name of its own among those of its peer, and nothing has happened in it.
  if (c != nullptr || theirs.received != 0 || theirs.taken != 0) return reject(e.connection, Refusal::kRange);
  c = take_channel();
  if (c == nullptr) return reject(e.connection, Refusal::kNoRoom);
  c->state = Channel::State::kAsked;
  c->connection = e.connection;
  c->peer = e.peer;
  c->session = theirs.session;
  by_session_[name] = c->index;
  c->service = e.service;
  (void)agree(*c, theirs, 0);
  c->until = now_.after(config_.connecting);
  arm(*c, c->until);
  tell(c->begun, Telling::What::kAsked);
}

// A session that goes on, if it does: what it had is over, and it waits for its new connection.
Refusal Context::resume(Channel* c, const Hello& theirs) {
  if (c == nullptr || !c->opened_once || config_.reconnect.ps == 0) return Refusal::kSession;
  // Somebody who has the name and knows nothing else leaves no trace.
  if (!can_go_on(*c, theirs)) return Refusal::kRange;
  if (c->state != Channel::State::kBroken) fail_channel(*c, Reason::kLost);  // the peer knew first
  if (c->state != Channel::State::kBroken) return Refusal::kSession;
  if (c->connected || c->carried != nullptr) hang_up(*c);
  return Refusal::kNone;
}

void Context::accept(Channel& c, std::uint64_t cookie) {
  c.cookie = cookie;
  if (c.state != Channel::State::kAsked) return;  // the peer went away meanwhile; that is told
  if (const Reason bad = answer_call(c); bad != Reason::kNone) {
    if (!c.connected) reject(c.connection, Refusal::kNoRoom);
    return finish(c, bad);
  }
}

// The queue pair is furnished before the peer may send.
Reason Context::answer_call(Channel& c) {
  if (!furnish(c)) {
    hang_up(c);
    return Reason::kNoMemory;
  }
  if (!port_.accept(c.connection, c.qpn, config_.terms, write_hello(hello_of(c, c.opened_once)))) {
    hang_up(c);
    return Reason::kLost;
  }
  connect_by(c, c.connection);
  c.state = Channel::State::kAnswered;
  c.until = now_.after(config_.connecting);
  arm(c, c.until);
  return Reason::kNone;
}

void Context::refuse(Channel& c) {
  if (c.state != Channel::State::kAsked) return;
  reject(c.connection, Refusal::kProgram);
  finish(c, Reason::kHere);
}

// --- open ---

bool Context::can_go_on(const Channel& c, const Hello& theirs) {
  const SendWindow& tx = c.tx;
  return theirs.received >= tx.taken && theirs.received <= tx.seq && theirs.taken >= tx.taken &&
         theirs.frame == c.peer_frame && theirs.depth >= tx.depth;
}

// What the peer said of itself, for a new session or for one that goes on. False: it cannot be.
bool Context::agree(Channel& c, const Hello& theirs, std::uint64_t told) {
  if (!c.opened_once) {
    if (theirs.received != 0 || theirs.taken != 0) return false;
    c.tx.depth = c.rx.depth = static_cast<std::uint16_t>(std::min(config_.depth, theirs.depth));
    c.peer_frame = theirs.frame;
    c.largest = theirs.largest;
    c.tx.frame = std::min(theirs.frame, std::min(theirs.largest, UINT32_MAX - Head::kBytes) + Head::kBytes);
    c.peer_keeps_ms = theirs.reconnect_ms;
    c.peer_moves = theirs.moves;
    c.peer_port = theirs.tcp_port;
    return true;
  }
  if (!can_go_on(c, theirs)) return false;
  const std::uint64_t before = c.tx.acked();
  c.tx.complete = theirs.received;  // no queue pair sends any of it again
  c.tx.posted_up_to(theirs.received);
  c.tx.taken = theirs.taken;
  settle_from(c, before);
  c.rx.told_up_to(told);
  return true;
}

void Context::established(Channel& c, const PortEvent& e) {
  if (c.state == Channel::State::kOpen || c.state == Channel::State::kClosing) return;
  if (c.asked) {
    Hello theirs;
    const Refusal bad = read_hello(e.data, theirs);
    if (bad != Refusal::kNone || theirs.session != c.session || !agree(c, theirs, c.rx.told()))
      return finish(c, bad != Refusal::kNone ? reason_of(bad) : Reason::kViolation);
  }
  opened(c);
}

void Context::opened(Channel& c) {
  const bool again = c.opened_once;
  c.state = Channel::State::kOpen;
  c.opened_once = true;
  c.may_early = true;
  c.peer_used = c.probing = c.close_sent = false;
  c.until = c.redial_at = kNever;
  c.heard = now_;
  begin_clock(c);
  // Fetches begin again where the last whole fragment ended.
  c.fetching = c.rx.handed;
  for (std::uint64_t n = c.rx.handed; n != c.rx.wta; ++n) {
    Message& m = *c.taken_at(n);
    if (!m.is(Message::kWhole)) m.asked = m.fetched;
  }
  c.unasked = static_cast<std::uint16_t>(count_unasked(c));
  if (c.rx.owes()) owe_ack(c);
  arm(c, due(c));
  if (again) {
    ++c.counted.reconnects;
  } else {
    tell(c.begun, Telling::What::kOpened);
  }
  join_fetching(c);
  hand_over(c);  // what the filter held up
  pump(c);
  if (c.state == Channel::State::kOpen) carrier_opened(c, again);
}

// --- the end ---

// Leaves the queue pair and the connection; the messages stay.
void Context::hang_up(Channel& c) {
  if (c.connected) (void)port_.disconnect(c.connection);
  forget_connection(c);
  if (c.carried != nullptr) end_stream(c);
  c.moving.timing = false;
  c.life = static_cast<std::uint16_t>(c.life + 1);
  leave_fetching(c);
  c.slow_until = kNever;
  leave_rows(c);
  outstanding_ -= c.reads_out;
  c.reads_out = 0;
  leave_qp(c);
}

void Context::fail_channel(Channel& c, Reason reason) {
  const bool kept = c.opened_once && config_.reconnect.ps != 0 && c.peer_keeps_ms != 0 && !c.close_sent &&
                    c.state != Channel::State::kClosing && reason == Reason::kLost;
  if (!kept) return finish(c, c.state == Channel::State::kClosing ? Reason::kHere : reason);
  if (c.state == Channel::State::kOpen) c.kept_until = now_.after(config_.reconnect);
  if (c.asked) choose_carrier(c, c.state == Channel::State::kOpen);
  hang_up(c);
  c.state = Channel::State::kBroken;
  c.until = c.kept_until;
  c.redial_at = c.asked ? now_.after(config_.redial) : kNever;
  arm(c, std::min(c.until, c.redial_at));
}

void Context::violated(Channel& c) {
  ++counts_.violations;
  finish(c, Reason::kViolation);
}

void Context::close(Channel& c) {
  switch (c.state) {
    case Channel::State::kOpen:
      c.state = Channel::State::kClosing;
      c.until = now_.after(config_.linger);
      arm(c, c.until);
      farewell(c);
      return ring();
    case Channel::State::kAsked:
      return refuse(c);
    case Channel::State::kConnecting:
    case Channel::State::kAnswered:
    case Channel::State::kBroken:
      return finish(c, Reason::kHere);
    default:
      return;
  }
}

void Context::abort(Channel& c) {
  if (c.state == Channel::State::kAsked) return refuse(c);
  if (!c.over()) finish(c, Reason::kHere);
}

// The last frame, once everything that was sent is taken. Its completion ends the channel.
void Context::farewell(Channel& c) {
  if (c.close_sent || c.waiting != 0 || c.tx.acked() != c.tx.seq) return;
  c.close_sent = post_control(c, Kind::kClose);
}

// What was sent and is not taken, what was to be sent, what was asked and not answered.
void Context::give_up_messages(Channel& c) {
  for (std::uint64_t n = c.tx.acked(); n != c.tx.seq; ++n) {
    c.sent_at(n)->clear(Message::kNumbered);
    settle(*c.sent_at(n), n < c.tx.taken ? Fate::kDelivered : Fate::kUnknown);
  }
  c.tx.taken = c.tx.complete = c.tx.seq;
  c.tx.again = 0;
  while (c.first != nullptr) {
    Message& m = *c.first;
    unqueue(c, &m);
    if (m.role == Role::kRequest) {
      if (Call* const call = find_call({m.call})) settle_call(*call, Fate::kNotSent);
    }
    settle(m, Fate::kNotSent);
  }
  for (std::size_t i = 0; c.calls != 0 && i < calls_.size(); ++i) {
    if (calls_[i].busy && !calls_[i].over && calls_[i].channel == &c) settle_call(calls_[i], Fate::kUnknown);
  }
  // What came and was not handed over goes; what the program holds stays its own.
  for (std::uint64_t n = c.rx.handed; n != c.rx.wta; ++n) drop_received(*c.taken_at(n));
  for (std::uint32_t i = 0; c.rings != nullptr && !shared_.on() && i < slots_; ++i) {
    if (c.receive_at(i) != nullptr && c.receive_at(i)->is(Message::kPosted)) own_.give(c.receive_at(i));
    c.receive_at(i) = nullptr;
  }
}

void Context::finish(Channel& c, Reason reason) {
  if (c.over()) return;
  hang_up(c);
  give_up_messages(c);
  if (!c.asked) by_session_.erase({c.peer, c.session});
  c.reason = reason;
  c.state = Channel::State::kClosed;
  channel_times_.forget(c.index);
  tell(c.ended, Telling::What::kClosed);
}

void Context::maybe_leave(Channel& c) {
  if (c.state != Channel::State::kClosed || c.rx.held != 0 || c.ended.what != Telling::What::kNothing) return;
  c.rings.reset();
  c.state = Channel::State::kLeft;
  c.session = 0;
  channel_times_.remove(c.index);
  left_.push_back(c.index);
}

// Its end was handed out in an earlier turn. In the same turn a new channel could be taken for the one that
// the program is about to hear has ended.
void Context::free_those_that_left() {
  for (const std::uint32_t index : left_) {
    channels_[index].state = Channel::State::kFree;
    free_.push_back(index);
  }
  left_.clear();
}

}  // namespace weft::channel
