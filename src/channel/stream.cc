// Frames over a stream (docs/protocol/channel.md#over-tcp): what send.cc and receive.cc do with a queue pair,
// where there is none. Window, numbers, acknowledgements and hand-over are theirs; here are the bytes.
//
//   stream_turn() --- a stream came: a stranger, who says a hello ---> stranger_asked(): a session goes on
//                +--- writable: push() what is leaving, then pump()
//                +--- readable: read_stream() -> take_in() -> frame_begins(), frame_ended()
//
// An event names the channel by its tag. Whatever handles a frame may end the stream; take_in() looks again.
#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

constexpr std::size_t kShare = 64U << 10U;       // bytes of a stream that are read in one turn
constexpr Duration kHungry = microseconds(100);  // before memory is asked for again

ConnectData hello_in(std::span<const std::uint8_t> bytes) {
  ConnectData d;
  d.size = Hello::kBytes;
  std::copy_n(bytes.begin(), Hello::kBytes, d.bytes.begin());
  return d;
}

}  // namespace

// --- the turn ---

void Context::stream_turn() {
  if (read_ != 0) {  // a turn ended for want of memory, at this channel
    Channel& c = channels_[readable_[read_ - 1]];
    readable_.erase(readable_.begin(), readable_.begin() + static_cast<std::ptrdiff_t>(read_));
    read_ = 0;
    enlist(c);
  }
  for (StreamEvent e; streams_->poll_event(e);) stream_happened(e);
  for (std::size_t i = 0; i < strangers_.size();) {
    if (strangers_[i].until <= now_) {
      forget_stranger(i);
    } else {
      ++i;
    }
  }
  // Those that have more than a share stand at the end of the line again.
  const std::size_t n = readable_.size();
  while (read_ != n) {
    Channel& c = channels_[readable_[read_++]];
    if (c.carried == nullptr || !c.carried->listed) continue;
    c.carried->listed = false;
    read_stream(c);
  }
  readable_.erase(readable_.begin(), readable_.begin() + static_cast<std::ptrdiff_t>(n));
  read_ = 0;
}

void Context::stream_happened(const StreamEvent& e) {
  if (e.kind == StreamEvent::Kind::kCame) {
    if (strangers_.size() == kMostStrangers) {
      ++counts_.refused;
      return streams_->close(e.stream);
    }
    strangers_.push_back({e.stream, e.peer, now_.after(config_.connecting), 0, {}});
    streams_->name(e.stream, config_.keepalive, StreamEvent::kNoTag);
    return;
  }
  if (e.tag == StreamEvent::kNoTag) {
    const auto at = std::find_if(strangers_.begin(), strangers_.end(),
                                 [&](const Stranger& s) { return s.stream == e.stream; });
    if (at != strangers_.end() && e.kind == StreamEvent::Kind::kReadable)
      hear_stranger(static_cast<std::size_t>(at - strangers_.begin()));
    return;
  }
  if (e.tag >= channels_.size()) return;
  Channel& c = channels_[e.tag];
  if (c.carried == nullptr || c.carried->stream != e.stream) return;
  if (e.kind == StreamEvent::Kind::kReadable) return enlist(c);
  push(c);
  pump(c);
}

void Context::enlist(Channel& c) {
  if (c.carried == nullptr || c.carried->listed) return;
  readable_.push_back(c.index);
  c.carried->listed = true;
}

// --- meeting ---

void Context::forget_stranger(std::size_t i) {
  streams_->close(strangers_[i].stream);
  strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
}

// No byte behind the hello is read before the hello is answered.
void Context::hear_stranger(std::size_t i) {
  Stranger& s = strangers_[i];
  while (s.have != s.said.size()) {
    const auto n = streams_->receive(s.stream, std::span(s.said).subspan(s.have));
    if (!n) return forget_stranger(i);
    if (*n == 0) return;
    s.have += static_cast<std::uint32_t>(*n);
  }
  const Stranger whole = s;
  strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
  stranger_asked(whole);
}

// A session that was begun over RDMA goes on here; none begins here.
void Context::stranger_asked(const Stranger& s) {
  look_at_port();  // the other connection may have opened, and ended, before
  Hello theirs;
  Refusal why = read_hello(hello_in(s.said), theirs);
  Channel* const c = by_session({s.peer, theirs.session});
  if (why == Refusal::kNone && !theirs.continues) why = Refusal::kRange;
  if (why == Refusal::kNone) why = resume(c, theirs);
  if (why == Refusal::kNone && !attach(*c, s.stream)) why = Refusal::kNoRoom;
  if (why != Refusal::kNone) {
    Hello no;
    no.reason = why;
    ++counts_.refused;
    const ConnectData answer = write_hello(no);
    const std::span<const std::uint8_t> bytes(answer.bytes.data(), answer.size);
    (void)streams_->send(s.stream, {&bytes, 1});
    return streams_->close(s.stream);
  }
  c->carrier = Carrier::kTcp;
  c->carried->greeted = true;
  streams_->name(s.stream, config_.keepalive, c->index);
  forget_fetches(*c);
  (void)agree(*c, theirs, c->rx.rta);
  put_hello(*c);
  enlist(*c);
  opened(*c);
}

bool Context::attach(Channel& c, StreamId stream) {
  c.carried.reset(new (std::nothrow) Carried);
  if (c.carried == nullptr) return false;
  ++carried_;
  c.carried->stream = stream;
  c.sq_posted = c.sq_done = c.sq_signaled = 0;
  return true;
}

bool Context::dial_stream(Channel& c) {
  if (!can_move(c)) return false;
  const auto stream = streams_->connect(c.peer, c.peer_port, config_.keepalive, c.index);
  if (!stream) return false;
  if (!attach(c, *stream)) {
    streams_->close(*stream);
    return false;
  }
  forget_fetches(c);
  c.rx.untold = 0;
  put_hello(c);
  return true;
}

void Context::put_hello(Channel& c) {
  Carried& s = *c.carried;
  const ConnectData hello = write_hello(hello_of(c, true));
  std::copy_n(hello.bytes.begin(), Hello::kBytes, s.front.begin());
  s.front_length = Hello::kBytes;
  push(c);
}

// There are no READs over a stream: what was announced and is not whole is sent again, and all behind it. The
// queue pair goes first where it can, because its READs may place bytes until then.
void Context::forget_fetches(Channel& c) {
  if (!shared_.on() || !behind_) bury();  // receives that it took may be among the completions that are left
  TakeWindow& rx = c.rx;
  std::uint64_t first = rx.handed;
  while (first != rx.wta && c.taken_at(first)->is(Message::kWhole)) ++first;
  for (std::uint64_t n = first; n != rx.wta; ++n) {
    Message& m = *c.taken_at(n);
    if (m.body != nullptr) give_body(c, *m.body);
    m.body = nullptr;
    if (m.has_head()) m.forget_head();
    m.state = Message::kReceived | Message::kPosted;
    c.taken_at(n) = nullptr;
    if (m.role != Role::kClock) {  // modulo 2^64: they may be in the tally still
      --c.counted.received;
      c.counted.received_bytes -= m.length;
    }
    if (shared_.on()) shared_.give(m);
  }
  rx.wta = first;
  c.fetching = std::min(c.fetching, first);
  c.unasked = 0;
}

// The peer's answer. Whoever has its port now may say anything: what does not fit ends this attempt alone.
bool Context::greeted(Channel& c) {
  const StreamId stream = c.carried->stream;
  Hello theirs;
  const Refusal bad = read_hello(hello_in(c.carried->head), theirs);
  if (bad != Refusal::kNone || theirs.session != c.session || !agree(c, theirs, c.rx.told())) {
    fail_channel(c, Reason::kLost);
    return false;
  }
  c.carried->greeted = true;
  c.carried->head_have = 0;
  opened(c);
  return still_on(c, stream);
}

void Context::end_stream(Channel& c) {
  Carried& s = *c.carried;
  if (s.body != nullptr) own_.give(s.body);
  if (s.own_block != nullptr) own_.give(s.own_block);
  streams_->close(s.stream);
  c.carried.reset();
  --carried_;
}

// --- out ---

// What is leaving, as far as the stream takes it. One that failed is read to its end, and ends there.
void Context::push(Channel& c) {
  Carried& s = *c.carried;
  while (s.busy()) {
    std::array<std::span<const std::uint8_t>, 1 + kMostPieces> pieces;
    std::size_t count = 0;
    std::uint64_t gone = s.left;
    const auto add = [&](std::span<const std::uint8_t> piece) {
      if (gone < piece.size()) pieces[count++] = piece.subspan(gone);
      gone -= std::min<std::uint64_t>(gone, piece.size());
    };
    add(std::span<const std::uint8_t>(s.front).first(s.front_length));
    for (const auto& piece : s.body_out) add(piece);
    const auto n = streams_->send(s.stream, {pieces.data(), count});
    if (!n) return enlist(c);
    if (*n == 0) return;
    s.left += *n;
  }
  switch (std::exchange(s.then, Carried::Then::kNothing)) {
    case Carried::Then::kComplete:
      return completed_up_to(c, s.number + 1);
    case Carried::Then::kClose:  // the farewell has left
      c.until = now_;
      return arm(c, now_);
    default:
      return;
  }
}

bool Context::stream_message(Channel& c, Message& m) {
  Carried& s = *c.carried;
  const bool head = m.has_head();
  const std::uint32_t ahead = head ? Head::kBytes : 0;
  if (head) {
    Head h{m.call, m.status, 0, 0, 0};
    if (m.traced) stamp(c, m, h);
    write_head(h, s.front.data() + Prefix::kBytes);
  }
  write_prefix({ahead + m.length, immediate(c, Kind::kMessage, m.role, head, m.number)}, s.front.data());
  s.front_length = Prefix::kBytes + ahead;
  s.body_out = {std::span<const std::uint8_t>(m.data, m.length)};
  if (m.outside != nullptr) [[unlikely]] {
    std::size_t count = 0;
    each_part(m, [&](const Part& p, std::uint32_t n) { s.body_out[count++] = {p.data(), n}; });
  }
  s.body_length = m.length;
  s.left = 0;
  s.number = m.number;
  s.then = Carried::Then::kComplete;
  if (m.role != Role::kClock) c.count_sent(m.length);
  c.counted.large_sent += m.length > config_.small ? 1U : 0U;
  ++counts_.stream_frames;
  push(c);
  return true;
}

// False: another frame is leaving; it is tried again.
bool Context::stream_control(Channel& c, Kind kind, Role role) {
  Carried& s = *c.carried;
  if (s.busy()) return false;
  write_prefix({0, immediate(c, kind, role, false, c.tx.posted())}, s.front.data());
  s.front_length = Prefix::kBytes;
  s.body_length = 0;
  s.body_out = {};
  s.left = 0;
  s.then = kind == Kind::kClose ? Carried::Then::kClose : Carried::Then::kNothing;
  ++counts_.stream_frames;
  push(c);
  return true;
}

// --- in ---

void Context::read_stream(Channel& c) {
  const StreamId stream = c.carried->stream;
  if (!take_in(c, stream)) return;  // a frame may have waited for memory
  for (std::size_t read = 0; read < kShare;) {
    Carried& s = *c.carried;
    if (s.begin == s.end) {
      // A long payload goes straight to its place.
      const bool straight = s.begun && s.have != s.length && s.place().size() >= s.buffer.size();
      const auto n = streams_->receive(stream, straight ? s.place() : std::span(s.buffer));
      if (!n) return fail_channel(c, Reason::kLost);
      if (*n == 0) return;
      read += *n;
      c.heard = now_;
      if (straight) {
        s.have += static_cast<std::uint32_t>(*n);
      } else {
        s.begin = 0;
        s.end = static_cast<std::uint32_t>(*n);
      }
    }
    if (!take_in(c, stream)) return;
  }
  enlist(c);
}

// What has been read, frame by frame. False: nothing more is to be read now.
bool Context::take_in(Channel& c, StreamId stream) {
  for (;;) {
    Carried& s = *c.carried;
    if (!s.begun) {
      const std::size_t whole = s.greeted ? Prefix::kBytes : Hello::kBytes;
      s.head_have += s.move_to(std::span(s.head).subspan(s.head_have, whole - s.head_have));
      if (s.head_have != whole) return true;
      if (!s.greeted) {
        if (!greeted(c)) return false;
        continue;
      }
      switch (frame_begins(c)) {
        case Begun::kNot:
          violated(c);
          return false;
        case Begun::kHungry:
          return false;
        case Begun::kYes:
          break;
      }
    }
    while (s.have != s.length && s.begin != s.end) s.have += s.move_to(s.place());
    if (s.have != s.length) return true;
    s.begun = false;
    s.head_have = 0;
    if (!frame_ended(c)) {
      violated(c);
      return false;
    }
    if (!still_on(c, stream)) return false;
  }
}

// A prefix is here: is there to be such a frame, and where does it go?
Context::Begun Context::frame_begins(Channel& c) {
  Carried& s = *c.carried;
  const Prefix prefix = read_prefix(s.head.data());
  if (!unpack(prefix.immediate, s.said) || s.said.kind == Kind::kAnnouncement) return Begun::kNot;
  s.length = prefix.length;
  s.have = 0;
  if (s.said.kind != Kind::kMessage) {
    s.begun = s.length == 0;
    return s.begun ? Begun::kYes : Begun::kNot;
  }
  const std::uint32_t ahead = s.ahead();
  if (!c.rx.expects(s.said.seq) || s.length < ahead || s.length - ahead > config_.largest) return Begun::kNot;
  if (s.length > config_.small + Head::kBytes) {
    s.body = own_.take(s.length - ahead);
    if (s.body == nullptr) return go_hungry(c);
  }
  if (shared_.on()) {
    // What is set aside is for peers over RDMA: they have been told that it is there.
    s.own_block = own_.take_frame();
    if (s.own_block != nullptr && !own_.has_set_aside()) own_.give(std::exchange(s.own_block, nullptr));
    s.block = s.own_block;
    s.begun = s.block != nullptr;
    return s.begun ? Begun::kYes : go_hungry(c);
  }
  // The window leaves one free.
  for (std::uint32_t tried = 0; !c.receive_at(s.slot)->is(Message::kPosted); ++tried) {
    CHECK(tried < slots_);
    s.slot = s.slot + 1 == slots_ ? 0 : s.slot + 1;
  }
  s.block = c.receive_at(s.slot);
  s.begun = true;
  return Begun::kYes;
}

// What has begun is read again when there may be memory.
Context::Begun Context::go_hungry(Channel& c) {
  if (Message* const body = std::exchange(c.carried->body, nullptr)) own_.give(body);
  ++counts_.starved;
  c.hungry_at = now_.after(kHungry);
  arm(c, c.hungry_at);
  return Begun::kHungry;
}

bool Context::frame_ended(Channel& c) {
  Carried& s = *c.carried;
  const Immediate said = s.said;
  const std::uint32_t length = s.length;
  Message* const body = std::exchange(s.body, nullptr);
  Message* const own_block = std::exchange(s.own_block, nullptr);
  if (own_block != nullptr) own_block->channel = &c;
  std::uint64_t news = 0;
  ++counts_.stream_frames;
  bool sound = heed(c, said, news);
  if (sound)
    sound = said.kind == Kind::kMessage ? message_came(c, *s.block, said, length, body)
                                        : control_came(c, said, news);
  if (!sound && body != nullptr) own_.give(body);
  if (!sound && own_block != nullptr) own_.give(own_block);
  if (sound && c.state != Channel::State::kClosed) pump(c);
  return sound;
}

}  // namespace weft::channel
