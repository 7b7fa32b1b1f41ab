// A context, a program above it, and a byte string that plays everything else: peers that ask, answer, refuse
// and hang up with any data, frames that are right, almost right or anything, a device that completes or
// fails, memory that runs out, and time.
//
// What must hold: nothing crashes; invariants hold after every step; what one peer says changes no other
// channel that is open; and when the program has let go of everything, everything was given back.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "channel/context.h"
#include "core/base/check.h"
#include "tests/channel/scripted_port.h"
#include "tests/fuzz/input.h"

namespace weft::fuzz {

class ChannelPeer {
 public:
  explicit ChannelPeer(std::span<const std::uint8_t> bytes) : in_(bytes), port_(most_memory()) {
    auto made = channel::Context::open(port_, config(), 1);
    CHECK(made.has_value());
    context_ = std::move(*made);
    now_ = now_ + seconds(1);
    turn();
  }
  void run() {
    for (int steps = 0; steps < 300 && !in_.empty(); ++steps) step();
    finish();
  }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t violations() const { return violations_; }

 private:
  using Channel = channel::Channel;
  using Message = channel::Message;
  using Notice = channel::Notice;

  std::uint64_t most_memory() { return in_.below(4) == 0 ? 300'000 : 4'000'000; }
  channel::Config config() {
    channel::Config c;
    c.channels = 3;
    c.calls = 6;
    c.depth = 1 + in_.below(8);
    c.queue = in_.below(5);
    c.small = 256;
    c.largest = 20'000;
    c.fragment = 1024U << in_.below(4);
    c.outstanding = 1 + in_.below(6);
    c.reads = 1 + in_.below(3);
    c.cached_qps = in_.below(3);
    c.region = Bytes{1U << 16U};
    c.memory = Bytes{1U << 19U};
    if (in_.flag()) c.reconnect = milliseconds(20);
    c.keepalive = milliseconds(in_.below(8));
    return c;
  }

  // Sound but for what the bytes alter.
  ConnectData hello() {
    channel::Hello h;
    h.session = in_.below(4);
    h.depth = 1 + in_.below(10);
    h.frame = channel::kLeastFrame + in_.below(64);
    h.largest = 1000U * in_.below(40);
    h.reconnect_ms = in_.below(3);
    h.continues = in_.below(3) == 0;
    if (h.continues) h.received = in_.below(6);
    if (h.continues) h.taken = in_.below(6);
    if (in_.below(16) == 15) h.reason = static_cast<channel::Refusal>(in_.below(8));
    ConnectData d = channel::write_hello(h);
    for (std::uint32_t n = in_.below(16); n > 12; --n) d.bytes[in_.below(channel::Hello::kBytes)] = in_.u8();
    if (in_.below(16) == 15) d.size = static_cast<std::uint8_t>(in_.below(ConnectData::kMost + 1));
    return d;
  }
  // The answer to a dial names its session.
  ConnectData answer_to(ConnectionId id) {
    ConnectData d = hello();
    if (in_.below(8) != 7) {
      const ConnectData& asked = port_.connections[id.v].said;
      std::copy_n(asked.bytes.begin() + 4, 8, d.bytes.begin() + 4);
      d.bytes[3] = 0;
      if (in_.below(4) != 3) std::fill_n(d.bytes.begin() + 24, 16, std::uint8_t{0});
    }
    return d;
  }
  ConnectionId some_connection() {
    return {in_.u8() % static_cast<std::uint32_t>(std::max<std::size_t>(1, port_.connections.size()))};
  }
  Channel* some_channel() { return channels_.empty() ? nullptr : channels_[in_.u8() % channels_.size()]; }

  // A frame for this channel. Only the peer of this one speaks, so no other that is open may change.
  void frame(Channel& c) {
    channel::Immediate i;
    const std::uint32_t kind = in_.below(8);
    i.kind = static_cast<channel::Kind>(kind < 5 ? kind : 0);
    i.role = static_cast<channel::Role>(in_.below(4) % 3);
    if (i.kind > channel::Kind::kAnnouncement) i.role = channel::Role::kPlain;
    i.head = i.role != channel::Role::kPlain;
    i.seq = static_cast<std::uint32_t>(c.rx.wta) & channel::kNumberMask;
    const auto in_flight = static_cast<std::uint32_t>(c.tx.posted() - c.tx.taken);
    i.ack = static_cast<std::uint32_t>(c.tx.taken + in_.below(in_flight + 1)) & channel::kNumberMask;
    i.may = !c.may_early && in_.flag();
    std::array<std::uint8_t, 320> bytes{};
    std::uint32_t length = 0;
    if (i.head) {
      channel::Head h;
      h.call = i.role == channel::Role::kResponse && !asked_.empty() ? asked_[in_.u8() % asked_.size()].v
                                                                     : in_.u32();
      h.status = in_.u8();
      channel::write_head(h, bytes.data());
      length = channel::Head::kBytes;
    }
    if (i.kind == channel::Kind::kAnnouncement) {
      channel::Announcement a;
      a.count = 1 + in_.below(channel::kMostPieces);
      for (std::uint32_t p = 0; p < a.count; ++p) {
        a.pieces[p] = {in_.u32(), 1 + in_.below(5000), {in_.u8()}};
        a.length += a.pieces[p].length;
      }
      if (in_.below(16) == 15) a.length = in_.u32();
      length += channel::write_announcement(a, bytes.data() + length);
    } else if (i.kind == channel::Kind::kMessage) {
      length += in_.below(200);
    }
    for (std::uint32_t n = in_.below(16); n > 12; --n) bytes[in_.below(120)] = in_.u8();
    if (in_.below(32) == 31) length = in_.below(321);
    std::uint32_t imm = pack(i);
    if (in_.below(32) == 31) imm ^= 1U << in_.below(32);
    const bool odd = in_.below(64) == 63;
    speak(c, imm, std::span(bytes).first(std::min<std::uint32_t>(length, 320)), odd);
  }
  void speak(const Channel& c, std::uint32_t imm, std::span<const std::uint8_t> bytes, bool odd) {
    turn();  // whatever else is due has happened
    if (c.qpn == kNoQpn) return;
    std::vector<std::pair<const Channel*, Channel::State>> others;
    for (const Channel* o : channels_) {
      if (o != &c) others.emplace_back(o, o->state);
    }
    const std::uint64_t before = context_->counts().violations;
    if (!port_.frame(c.qpn, imm, bytes, odd ? WcOpcode::kReceiveWriteImm : WcOpcode::kReceive,
                     odd && in_.flag() ? std::uint8_t{0} : std::uint8_t{kWcWithImm}))
      return;
    context_->poll(now_);
    context_->check_invariants();
    for (const auto& [o, state] : others) CHECK(o->state == state);
    const std::uint64_t more = context_->counts().violations - before;
    CHECK(more <= 1);
    CHECK(more == 0 || c.over());
    violations_ += more;
    hear();
  }

  void turn() {
    context_->poll(now_);
    context_->check_invariants();
    hear();
  }
  void hear() {
    for (Notice n; context_->next(n);) {
      if (n.message != nullptr) held_.push_back(n.message), ++messages_;
      if (n.kind == Notice::Kind::kAsked) channels_.push_back(n.channel);
      if (n.kind == Notice::Kind::kClosed) std::erase(channels_, n.channel);
    }
  }

  void program(Channel& c) {
    switch (in_.below(8)) {
      case 0:
        return context_->accept(c, 0);
      case 1:
        return context_->refuse(c);
      case 2:
      case 3: {
        Message* const m = context_->allocate(in_.below(5) == 4 ? 3000 : in_.below(300));
        if (m != nullptr && !context_->send(c, m, 0, in_.flag())) context_->release(m);
        return;
      }
      case 4: {
        Message* const m = context_->allocate(in_.below(300));
        if (m == nullptr) return;
        const auto id = context_->call(c, m, 0, in_.flag() ? now_ + microseconds(in_.u8()) : kNever);
        if (id) asked_.push_back(*id);
        if (!id) context_->release(m);
        return;
      }
      case 5:
        return context_->close(c);
      case 6:
        return context_->abort(c);
      default:
        if (!asked_.empty()) (void)context_->cancel(asked_[in_.u8() % asked_.size()]);
    }
  }
  void let_go() {
    if (held_.empty()) return;
    const std::size_t which = in_.u8() % held_.size();
    Message* const m = held_[which];
    const bool open = std::find(channels_.begin(), channels_.end(), m->channel) != channels_.end();
    if (open && m->role == channel::Role::kRequest && in_.flag())
      (void)context_->answer(*m, nullptr, in_.u8(), 0);
    context_->release(m);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void step() {
    Channel* const c = some_channel();
    switch (in_.below(14)) {
      case 0: {
        const auto peer = static_cast<std::uint8_t>(in_.below(3));
        port_.ask(wire::Address::v4(10, 0, 0, peer), 1, hello());
        break;
      }
      case 1:
        if (const auto made = context_->connect(wire::Address::v4(10, 0, 0, 9), 1, 0))
          channels_.push_back(*made);
        break;
      case 2:
        if (!port_.connections.empty()) {
          const ConnectionId id = some_connection();
          port_.confirm(id, answer_to(id));
        }
        break;
      case 3:
        if (!port_.connections.empty()) port_.refuse(some_connection(), in_.flag() ? hello() : ConnectData{});
        break;
      case 4:
        if (!port_.connections.empty()) port_.hang_up(some_connection());
        break;
      case 5:
      case 6:
      case 7:
        if (c != nullptr && c->qpn != kNoQpn) return frame(*c);
        break;
      case 8:
        if (c != nullptr && c->qpn != kNoQpn) {
          for (std::uint32_t n = in_.below(8); n > 0 && port_.complete(c->qpn, in_.u8()); --n) {
          }
        }
        break;
      case 9:
        if (c != nullptr && c->qpn != kNoQpn && in_.flag()) port_.fail(c->qpn);
        break;
      case 10:
        now_ = now_ + (in_.flag() ? microseconds(in_.u8()) : milliseconds(in_.below(16)));
        if (in_.below(16) == 15 && context_->now() >= Time{} + milliseconds(500)) {
          context_->rebase(milliseconds(500));
          now_ = now_ - milliseconds(500);
        }
        break;
      case 11:
      case 12:
        if (c != nullptr) program(*c);
        break;
      default:
        let_go();
        break;
    }
    if (in_.below(4) != 0) turn();
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
    CHECK_OP(context_->outstanding(), ==, 0U);
    context_.reset();
    CHECK_OP(port_.registered(), ==, 0U);
    CHECK(port_.qps.empty());
  }

  Input in_;
  channel_test::ScriptedPort port_;
  std::unique_ptr<channel::Context> context_;
  Time now_{};
  std::vector<Channel*> channels_;  // until their end is told
  std::vector<Message*> held_;
  std::vector<channel::CallId> asked_;
  std::uint64_t messages_ = 0;
  std::uint64_t violations_ = 0;
};

}  // namespace weft::fuzz
