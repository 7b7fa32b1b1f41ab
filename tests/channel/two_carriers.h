// A context with a device and with TCP, whose peer and networks say what the test says: tests/channel/
// moving_test.cc and stream_test.cc.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/channel/scripted_port.h"
#include "tests/channel/scripted_streams.h"
#include "tests/channel/users.h"

namespace weft::channel_test {

using channel::Carrier;
using channel::Head;
using channel::Hello;
using channel::Immediate;
using channel::Kind;
using channel::Prefix;
using channel::Refusal;
using channel::Role;

inline constexpr wire::Address kHere = wire::Address::v4(10, 0, 0, 2);
inline constexpr wire::Address kThere = wire::Address::v4(10, 0, 0, 3);

using Bytes8 = std::vector<std::uint8_t>;

inline Hello hello(std::uint64_t session, bool continues = false) {
  Hello h;
  h.session = session;
  h.continues = continues;
  h.moves = true;
  h.tcp_port = 99;
  h.depth = 8;
  h.frame = 4096;
  h.largest = 1U << 20U;
  h.reconnect_ms = 1000;
  return h;
}
inline Bytes8 bytes_of(const Hello& h) {
  const ConnectData d = write_hello(h);
  return {d.bytes.begin(), d.bytes.begin() + d.size};
}
inline Bytes8 frame(const Immediate& i, std::size_t payload, std::uint32_t claims) {
  Bytes8 b(Prefix::kBytes + payload);
  channel::write_prefix({claims, pack(i)}, b.data());
  for (std::size_t k = 0; k < payload; ++k)
    b[Prefix::kBytes + k] = User::byte(static_cast<std::uint32_t>(k), 3);
  return b;
}
inline Bytes8 message(std::uint32_t seq, std::uint32_t payload, std::uint32_t ack = 0) {
  return frame({ack, seq, false, false, Role::kPlain, Kind::kMessage}, payload, payload);
}

inline Immediate said(Kind kind, std::uint32_t seq = 0, std::uint32_t ack = 0) {
  return {ack, seq, false, false, Role::kPlain, kind};
}
inline Config config_of() {
  Config c;
  c.channels = 4;
  c.depth = 8;
  c.queue = 4;
  c.small = 256;
  c.largest = 1U << 20U;
  c.region = Bytes{1U << 18U};
  c.memory = Bytes{16U << 20U};
  c.keepalive = {};
  c.tcp_port = 77;
  c.reconnect = seconds(1);
  return c;
}

// A context with a device and with TCP, and one channel over RDMA: asked for by a peer, or by the context.
struct Host {
  explicit Host(const Config& config = config_of()) : user(port, config, 1, &streams) { turn(); }
  void turn() { user.poll(now); }
  void pass(Duration d) {
    now = now + d;
    turn();
  }
  Channel* asked(const Hello& h = hello(7)) {
    const ConnectionId id = port.ask(kHere, kService, write_hello(h));
    turn();
    const Notice n = user.take();
    if (n.kind != Notice::Kind::kAsked) return nullptr;
    user.context->accept(*n.channel, 1);
    port.confirm(id, {});
    turn();
    return user.take().kind == Notice::Kind::kOpened ? n.channel : nullptr;
  }
  // The peer's answer to the last dial over RDMA.
  void answer(const Channel& c) {
    Hello h = hello(c.session, c.opened_once);
    h.received = c.tx.seq;
    h.taken = c.tx.seq;
    port.confirm(c.connection, write_hello(h));
    turn();
  }
  Channel* asks() {
    const auto made = user.context->connect(kThere, kService, 1);
    if (!made) return nullptr;
    answer(**made);
    return user.take().kind == Notice::Kind::kOpened ? *made : nullptr;
  }
  // The same to the last over TCP.
  void answer_stream(const Channel& c) {
    Hello h = hello(c.session, true);
    h.received = c.tx.seq;
    h.taken = c.tx.seq;
    streams.feed(last(), bytes_of(h));
    turn();
  }
  std::uint32_t last() const { return static_cast<std::uint32_t>(streams.streams.size() - 1); }
  // A peer of this address says this over TCP.
  std::uint32_t say(const wire::Address& peer, const Bytes8& said) {
    const std::uint32_t s = streams.come(peer);
    streams.feed(s, said);
    turn();
    return s;
  }
  Refusal refusal_of(std::uint32_t stream) const {
    const Bytes8& said = streams.streams[stream].said;
    if (said.size() != Hello::kBytes) return Refusal::kNone;
    ConnectData d;
    d.size = Hello::kBytes;
    std::copy(said.begin(), said.end(), d.bytes.begin());
    Hello h;
    return read_hello(d, h);
  }

  ScriptedPort port;
  ScriptedStreams streams;
  Time now = Time{} + seconds(100);
  User user;
};

}  // namespace weft::channel_test
