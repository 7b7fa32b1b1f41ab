// A stream port without a network: a test or a fuzzer says what comes and what is taken, byte for byte
// (channel/stream_port.h). Beside tests/channel/scripted_port.h.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "channel/stream_port.h"
#include "core/base/check.h"

namespace weft::channel_test {

class ScriptedStreams final : public channel::StreamPort {
 public:
  struct Stream {
    wire::Address peer;
    std::uint16_t port = 0;  // of one that was dialled
    std::uint32_t tag = channel::StreamEvent::kNoTag;
    std::deque<std::uint8_t> comes;
    std::vector<std::uint8_t> said;  // by the context
    std::size_t room = SIZE_MAX;     // that it takes yet
    std::size_t at_once = SIZE_MAX;  // bytes of one call
    bool failed = false;
    bool closed = false;  // by the context
  };
  std::vector<Stream> streams;
  std::vector<std::uint16_t> listening;
  bool refuses = false;     // connect() fails
  bool scarce = false;      // there is no memory for the next connect() or receive()
  std::uint64_t looks = 0;  // how often the context asked for events

  // --- what the test says ---
  std::uint32_t come(const wire::Address& peer) {
    streams.push_back({peer, 0, channel::StreamEvent::kNoTag, {}, {}, SIZE_MAX, SIZE_MAX, false, false});
    const auto index = static_cast<std::uint32_t>(streams.size() - 1);
    events_.push_back({channel::StreamEvent::Kind::kCame, {index}, channel::StreamEvent::kNoTag, peer});
    return index;
  }
  void feed(std::uint32_t stream, std::span<const std::uint8_t> bytes) {
    Stream& s = streams[stream];
    s.comes.insert(s.comes.end(), bytes.begin(), bytes.end());
    happens(stream, channel::StreamEvent::Kind::kReadable);
  }
  void give_room(std::uint32_t stream, std::size_t bytes) {
    streams[stream].room = bytes;
    happens(stream, channel::StreamEvent::Kind::kWritable);
  }
  void fail(std::uint32_t stream) {
    streams[stream].failed = true;
    happens(stream, channel::StreamEvent::Kind::kReadable);
  }

  // --- what the context asks ---
  Outcome<void> listen(std::uint16_t port) override {
    listening.push_back(port);
    return {};
  }
  Outcome<channel::StreamId> connect(const wire::Address& to, std::uint16_t port, Duration,
                                     std::uint32_t tag) override {
    if (std::exchange(scarce, false)) throw std::bad_alloc();
    if (refuses) return weft::fail(Errc::kNoMemory);
    streams.push_back({to, port, tag, {}, {}, SIZE_MAX, SIZE_MAX, false, false});
    return channel::StreamId{static_cast<std::uint32_t>(streams.size() - 1)};
  }
  void name(channel::StreamId stream, Duration, std::uint32_t tag) override { streams[stream.v].tag = tag; }
  Outcome<std::size_t> send(channel::StreamId stream,
                            std::span<const std::span<const std::uint8_t>> pieces) override {
    Stream& s = streams[stream.v];
    CHECK(!s.closed);
    if (s.failed) return weft::fail(Errc::kInvalid);
    std::size_t taken = 0;
    for (const auto& p : pieces) {
      const std::size_t n = std::min({s.room, p.size(), s.at_once - taken});
      s.said.insert(s.said.end(), p.begin(), p.begin() + static_cast<std::ptrdiff_t>(n));
      if (s.room != SIZE_MAX) s.room -= n;
      taken += n;
      if (n != p.size()) break;
    }
    return taken;
  }
  Outcome<std::size_t> receive(channel::StreamId stream, std::span<std::uint8_t> into) override {
    if (std::exchange(scarce, false)) throw std::bad_alloc();
    Stream& s = streams[stream.v];
    CHECK(!s.closed && !into.empty());
    const std::size_t n = std::min({into.size(), s.comes.size(), s.at_once});
    if (n == 0 && s.failed) return weft::fail(Errc::kInvalid);
    std::copy_n(s.comes.begin(), n, into.begin());
    s.comes.erase(s.comes.begin(), s.comes.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void close(channel::StreamId stream) override {
    CHECK(!streams[stream.v].closed);
    streams[stream.v].closed = true;
  }
  bool poll_event(channel::StreamEvent& out) override {
    ++looks;
    while (!events_.empty()) {
      out = events_.front();
      events_.pop_front();
      if (streams[out.stream.v].closed) continue;
      out.tag = streams[out.stream.v].tag;
      return true;
    }
    return false;
  }

 private:
  void happens(std::uint32_t stream, channel::StreamEvent::Kind kind) {
    events_.push_back({kind, {stream}, streams[stream].tag, {}});
  }
  std::deque<channel::StreamEvent> events_;
};

}  // namespace weft::channel_test
