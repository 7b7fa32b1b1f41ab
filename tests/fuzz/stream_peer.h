// A context of the middleware that has TCP, and a byte string that plays whoever comes to its port, the peer
// that has a session and goes on with it there, the peer that the context dials, the program, and time.
// Frames are right, almost right or anything, and come in pieces; what the context says is taken in pieces,
// or not.
//
// What must hold: nothing crashes; invariants hold after every step; the channel of another peer stays open;
// and when the program has let go of everything, everything was given back.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "channel/context.h"
#include "core/base/check.h"
#include "tests/channel/scripted_port.h"
#include "tests/channel/scripted_streams.h"
#include "tests/fuzz/input.h"

namespace weft::fuzz {

class StreamPeer {
 public:
  explicit StreamPeer(std::span<const std::uint8_t> bytes) : in_(bytes), port_(3'000'000) {
    auto made = channel::Context::open(port_, config(), 1, &streams_);
    CHECK(made.has_value());
    context_ = std::move(*made);
    now_ = now_ + seconds(1);
    turn();
    begin(peer(0), 1);
    begin(peer(1), 1);  // it says nothing more, and must not notice anything
    CHECK_OP(channels_.size(), ==, 2U);
    silent_ = channels_[1];
    if (in_.flag()) dial();
  }
  void run() {
    for (int steps = 0; steps < 300 && !in_.empty(); ++steps) {
      step();
      CHECK(silent_->state == channel::Channel::State::kOpen);
    }
    finish();
  }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t violations() const {
    return context_ == nullptr ? violations_ : context_->counts().violations;
  }
  std::uint64_t moves() const { return moves_; }

 private:
  using Channel = channel::Channel;
  using Message = channel::Message;
  using Notice = channel::Notice;

  static wire::Address peer(std::uint8_t n) { return wire::Address::v4(10, 0, 0, n); }
  channel::Config config() {
    channel::Config c;
    c.channels = 4;
    c.calls = 6;
    c.depth = 1 + in_.below(8);
    c.queue = in_.below(5);
    c.small = 256;
    c.largest = 20'000;
    c.region = Bytes{1U << 16U};
    c.memory = Bytes{1U << 19U};
    c.keepalive = {};
    c.reconnect = seconds(600);
    c.connecting = milliseconds(20);
    c.tcp_port = 7;
    c.mock_redials = in_.below(3);
    c.mock_cool = milliseconds(in_.below(40));
    return c;
  }
  static channel::Hello hello(std::uint64_t session) {
    channel::Hello h;
    h.session = session;
    h.moves = true;
    h.tcp_port = 8;
    h.depth = 8;
    h.frame = 512;
    h.largest = 20'000;
    h.reconnect_ms = 600'000;
    return h;
  }
  void begin(const wire::Address& from, std::uint64_t session) {
    const ConnectionId id = port_.ask(from, 1, write_hello(hello(session)));
    turn();
    context_->accept(*channels_.back(), 0);
    port_.confirm(id, {});
    turn();
  }
  void dial() {
    const auto made = context_->connect(peer(9), 1, 0);
    if (!made) return;
    channels_.push_back(*made);
    port_.confirm((*made)->connection, write_hello(hello((*made)->session)));
    turn();
  }

  // A session that goes on, but for what the bytes alter.
  std::vector<std::uint8_t> greeting(const Channel& c) {
    channel::Hello h = hello(c.session);
    h.continues = in_.below(16) != 15;
    const auto known = static_cast<std::uint32_t>(c.tx.seq - c.tx.taken);
    h.taken = c.tx.taken + in_.below(known + 1);
    h.received = std::max(h.taken, c.tx.taken + in_.below(known + 1));
    if (in_.below(16) == 15) h.reason = static_cast<channel::Refusal>(in_.below(8));
    ConnectData d = channel::write_hello(h);
    for (std::uint32_t n = in_.below(16); n > 13; --n) d.bytes[in_.below(channel::Hello::kBytes)] = in_.u8();
    return {d.bytes.begin(), d.bytes.begin() + d.size};
  }
  std::vector<std::uint8_t> frame(const Channel& c) {
    channel::Immediate i;
    const std::uint32_t kind = in_.below(12);
    i.kind = static_cast<channel::Kind>(kind < 6 ? kind : 0);
    i.role = static_cast<channel::Role>(in_.below(8) % 3);
    if (i.kind == channel::Kind::kMove) i.role = in_.flag() ? channel::Role::kRequest : channel::Role::kPlain;
    if (i.kind != channel::Kind::kMessage && i.kind != channel::Kind::kMove) i.role = channel::Role::kPlain;
    i.head = i.kind == channel::Kind::kMessage && i.role != channel::Role::kPlain;
    i.seq = static_cast<std::uint32_t>(c.rx.wta) & channel::kNumberMask;
    const auto in_flight = static_cast<std::uint32_t>(c.tx.posted() - c.tx.taken);
    i.ack = static_cast<std::uint32_t>(c.tx.taken + in_.below(in_flight + 1)) & channel::kNumberMask;
    i.may = !c.may_early && in_.flag();
    std::uint32_t length = i.head ? channel::Head::kBytes : 0;
    if (i.kind == channel::Kind::kMessage) length += in_.below(4) == 3 ? in_.u16() % 20'000U : in_.below(300);
    std::uint32_t imm = pack(i);
    if (in_.below(32) == 31) imm ^= 1U << in_.below(32);
    std::vector<std::uint8_t> out(channel::Prefix::kBytes + length);
    channel::write_prefix({in_.below(32) == 31 ? in_.u32() : length, imm}, out.data());
    if (i.head && in_.below(8) != 7) {
      channel::Head h;
      h.call = i.role == channel::Role::kResponse && !asked_.empty() ? asked_[in_.u8() % asked_.size()].v
                                                                     : in_.u8();
      channel::write_head(h, out.data() + channel::Prefix::kBytes);
    }
    return out;
  }
  void feed(std::uint32_t stream, std::vector<std::uint8_t> bytes) {
    if (in_.below(16) == 15 && !bytes.empty())
      bytes.resize(in_.below(static_cast<std::uint32_t>(bytes.size())));
    if (in_.below(8) == 7) streams_.streams[stream].at_once = 1 + in_.below(40);
    streams_.feed(stream, bytes);
  }

  void turn() {
    context_->poll(now_);
    context_->check_invariants();
    for (Notice n; context_->next(n);) {
      if (n.message != nullptr) held_.push_back(n.message), ++messages_;
      if (n.kind == Notice::Kind::kAsked) channels_.push_back(n.channel);
      if (n.kind == Notice::Kind::kClosed) {
        moves_ += n.channel->counts().moves;
        std::erase(channels_, n.channel);
      }
    }
  }
  Channel* some_channel() {
    Channel* const c = channels_[in_.u8() % channels_.size()];
    return c == silent_ ? nullptr : c;
  }
  bool some_stream(std::uint32_t& out) {
    if (streams_.streams.empty()) return false;
    out = in_.u8() % static_cast<std::uint32_t>(streams_.streams.size());
    return !streams_.streams[out].closed;
  }

  void step() {
    Channel* const c = some_channel();
    std::uint32_t stream = 0;
    switch (in_.below(14)) {
      case 0:
      case 1:
        if (c != nullptr && !c->asked) feed(streams_.come(c->peer), greeting(*c));
        break;
      case 2:
        if (c != nullptr && c->asked && c->carried != nullptr) feed(c->carried->stream.v, greeting(*c));
        break;
      case 3:
      case 4:
      case 5:
      case 6:
        if (c != nullptr && c->carried != nullptr) feed(c->carried->stream.v, frame(*c));
        break;
      case 7: {
        std::vector<std::uint8_t> any(in_.below(70));
        for (std::uint8_t& b : any) b = in_.u8();
        if (in_.flag()) streams_.come(peer(static_cast<std::uint8_t>(in_.below(3))));
        if (some_stream(stream)) feed(stream, any);
        break;
      }
      case 8:
        if (some_stream(stream))
          in_.flag() ? streams_.fail(stream) : streams_.give_room(stream, in_.below(600));
        break;
      case 9:
        if (some_stream(stream)) streams_.give_room(stream, SIZE_MAX);
        break;
      case 10:
        now_ = now_ + (in_.flag() ? microseconds(in_.u8()) : milliseconds(in_.below(32)));
        break;
      case 11:
        if (c != nullptr) program(*c);
        break;
      case 12:
        if (c != nullptr)
          (void)context_->move(*c, in_.flag() ? channel::Carrier::kTcp : channel::Carrier::kRdma);
        if (c != nullptr && c->asked && c->connected) {
          channel::Hello h = hello(c->session);
          h.received = h.taken = c->tx.taken;
          port_.confirm(c->connection, write_hello(h));
        }
        break;
      default:
        if (!held_.empty()) {
          context_->release(held_.back());
          held_.pop_back();
        }
        break;
    }
    if (in_.below(4) != 0) turn();
  }
  void program(Channel& c) {
    switch (in_.below(5)) {
      case 0:
      case 1:
      case 2: {
        Message* const m = context_->allocate(in_.below(5) == 4 ? 3000 : in_.below(300));
        if (m != nullptr && !context_->send(c, m, 0, in_.flag())) context_->release(m);
        return;
      }
      case 3: {
        Message* const m = context_->allocate(in_.below(300));
        if (m == nullptr) return;
        const auto id = context_->call(c, m, 0, kNever);
        if (id) asked_.push_back(*id);
        if (!id) context_->release(m);
        return;
      }
      default:
        return in_.below(8) == 7 ? context_->close(c)
                                 : (void)context_->cancel(asked_.empty() ? channel::CallId{} : asked_.back());
    }
  }

  void finish() {
    for (int i = 0; i < 3; ++i) {
      turn();
      for (Message* m : held_) context_->release(m);
      held_.clear();
      for (Channel* c : std::vector<Channel*>(channels_)) context_->abort(*c);
      turn();
    }
    CHECK(channels_.empty());
    CHECK_OP(context_->open_channels(), ==, 0U);
    CHECK_OP(context_->own_memory().in_use, ==, 0U);
    CHECK_OP(context_->lent_memory().in_use, ==, 0U);
    violations_ = context_->counts().violations;
    context_.reset();
    CHECK_OP(port_.registered(), ==, 0U);
    for (const auto& s : streams_.streams) CHECK(s.closed || s.tag == channel::StreamEvent::kNoTag);
  }

  Input in_;
  channel_test::ScriptedPort port_;
  channel_test::ScriptedStreams streams_;
  std::unique_ptr<channel::Context> context_;
  Time now_{};
  Channel* silent_ = nullptr;
  std::vector<Channel*> channels_;  // until their end is told
  std::vector<Message*> held_;
  std::vector<channel::CallId> asked_;
  std::uint64_t messages_ = 0;
  std::uint64_t violations_ = 0;
  std::uint64_t moves_ = 0;
};

}  // namespace weft::fuzz
