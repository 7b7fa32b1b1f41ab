#include "channel_world/streams.h"

#include <algorithm>

#include "core/base/check.h"

namespace weft::channel_world {

using channel::StreamEvent;
using channel::StreamId;

class Streams::Port final : public channel::StreamPort {
 public:
  Port(Streams& net, std::uint32_t host) : net_(net), host_(host) {}

  Outcome<void> listen(std::uint16_t port) override {
    listening.insert(port);
    return {};
  }
  Outcome<StreamId> connect(const wire::Address& to, std::uint16_t port, Duration alive,
                            std::uint32_t tag) override {
    if (net_.random_.chance(20'000)) return fail(Errc::kNoMemory);
    const auto there =
        std::find_if(net_.ports_.begin(), net_.ports_.end(), [&](const auto& p) { return p->address == to; });
    CHECK(there != net_.ports_.end());
    net_.streams_.emplace_back();
    Stream& s = net_.streams_.back();
    s.ends[0].host = host_;
    s.ends[0].tag = tag;
    s.ends[0].alive = alive;
    s.ends[1].host = (*there)->host_;
    const StreamId id{static_cast<std::uint32_t>(net_.streams_.size() - 1) * 2};
    if (net_.random_.chance(net_.plan_.ignored)) return id;
    const Time there_at = net_.now_ + net_.some_delay();
    const Time back_at = there_at + net_.some_delay();
    s.ends[0].up = back_at;
    if (!(*there)->listening.contains(port) || net_.random_.chance(net_.plan_.refused)) {
      s.ends[0].failed = back_at;
    } else {
      s.ends[1].up = there_at;
    }
    return id;
  }
  void name(StreamId stream, Duration alive, std::uint32_t tag) override {
    net_.end(stream).tag = tag;
    net_.end(stream).alive = alive;
  }
  Outcome<std::size_t> send(StreamId stream, std::span<const std::span<const std::uint8_t>> pieces) override {
    End& own = net_.end(stream);
    End& peer = net_.end({stream.v ^ 1U});
    CHECK(!own.closed);
    if (own.failed <= net_.now_ || own.ended <= net_.now_) return fail(Errc::kInvalid);
    if (own.up > net_.now_) return std::size_t{0};
    Chunk chunk{std::max(peer.last, net_.now_ + net_.some_delay()), {}, 0};
    std::size_t room = net_.plan_.capacity - peer.held;
    if (net_.random_.chance(300'000)) room = std::min<std::size_t>(room, net_.random_.below(200));
    std::size_t all = 0;
    for (const auto& p : pieces) {
      const std::size_t n = std::min(room, p.size());
      chunk.bytes.insert(chunk.bytes.end(), p.begin(), p.begin() + static_cast<std::ptrdiff_t>(n));
      room -= n;
      all += p.size();
    }
    const std::size_t taken = chunk.bytes.size();
    own.waits_to_write = own.waits_to_write || taken < all;
    if (taken != 0 && !peer.cut) {
      peer.held += taken;
      peer.last = chunk.at;
      peer.coming.push_back(std::move(chunk));
    }
    return taken;
  }
  Outcome<std::size_t> receive(StreamId stream, std::span<std::uint8_t> into) override {
    End& own = net_.end(stream);
    CHECK(!own.closed && !into.empty());
    if (own.coming.empty() || own.coming.front().at > net_.now_) {
      if (own.failed <= net_.now_ || (own.coming.empty() && own.ended <= net_.now_))
        return fail(Errc::kInvalid);
      own.waits_to_read = true;
      return std::size_t{0};
    }
    Chunk& c = own.coming.front();
    std::size_t n = std::min(into.size(), c.bytes.size() - c.begin);
    if (net_.random_.chance(200'000)) n = std::min<std::size_t>(n, net_.random_.between(1, 20));
    std::copy_n(c.bytes.begin() + static_cast<std::ptrdiff_t>(c.begin), n, into.begin());
    c.begin += n;
    own.held -= n;
    if (c.begin == c.bytes.size()) own.coming.pop_front();
    return n;
  }
  void close(StreamId stream) override {
    End& own = net_.end(stream);
    End& peer = net_.end({stream.v ^ 1U});
    CHECK(!own.closed);
    own.closed = true;
    own.coming.clear();
    own.held = 0;
    peer.ended = std::max(peer.last, net_.now_ + net_.some_delay());
  }
  bool poll_event(StreamEvent& out) override {
    while (!events.empty()) {
      out = events.front();
      events.pop_front();
      const End& e = net_.end(out.stream);
      if (e.closed) continue;
      out.tag = e.tag;
      return true;
    }
    return false;
  }

  wire::Address address;
  std::set<std::uint16_t> listening;
  std::deque<StreamEvent> events;

 private:
  Streams& net_;
  std::uint32_t host_;
};

Streams::Streams(const StreamPlan& plan, std::size_t hosts, Prng random) : plan_(plan), random_(random) {
  for (std::size_t h = 0; h < hosts; ++h)
    ports_.push_back(std::make_unique<Port>(*this, static_cast<std::uint32_t>(h)));
}
Streams::~Streams() = default;

channel::StreamPort& Streams::at(std::uint32_t host) { return *ports_[host]; }
void Streams::address(std::uint32_t host, const wire::Address& address) { ports_[host]->address = address; }

Duration Streams::some_delay() {
  return nanoseconds(
      static_cast<std::int64_t>(random_.between(1, static_cast<std::uint64_t>(plan_.delay.ns()))));
}

void Streams::cut(Time now) {
  std::vector<Stream*> live;
  for (Stream& s : streams_) {
    if (!s.ends[0].closed && !s.ends[1].closed && s.ends[1].up <= now) live.push_back(&s);
  }
  if (live.empty()) return;
  Stream& s = *live[random_.below(live.size())];
  for (End& e : s.ends) {
    const bool silent = random_.chance(300'000) && e.alive.ps != 0;
    e.failed = std::min(e.failed, silent ? now + e.alive : now + some_delay());
    e.cut = true;  // what is on its way is lost, too
    while (!e.coming.empty() && e.coming.back().at > now) {
      e.held -= e.coming.back().bytes.size() - e.coming.back().begin;
      e.coming.pop_back();
    }
    e.up = std::min(e.up, e.failed);
  }
}

Time Streams::readable_at(const End& e) const {
  Time at = std::min(e.failed, e.coming.empty() ? e.ended : e.coming.front().at);
  return std::max(at, e.up);
}

Time Streams::writable_at(std::size_t stream, int side, Time now) const {
  const End& own = streams_[stream].ends[side];
  const End& peer = streams_[stream].ends[1 - side];
  const bool room = peer.held < plan_.capacity && peer.ended == kNever;
  return std::max(own.up, room ? now : std::min(own.failed, own.ended));
}

void Streams::advance(Time now) {
  now_ = now;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    for (int side = 0; side < 2; ++side) {
      End& e = streams_[i].ends[side];
      if (e.closed || e.up > now) continue;
      StreamEvent event;
      event.stream = {static_cast<std::uint32_t>(i * 2 + static_cast<std::size_t>(side))};
      auto& events = ports_[e.host]->events;
      if (side == 1 && !e.told) {
        e.told = true;
        event.kind = StreamEvent::Kind::kCame;
        event.peer = ports_[streams_[i].ends[0].host]->address;
        events.push_back(event);
      }
      if (e.waits_to_read && readable_at(e) <= now) {
        e.waits_to_read = false;
        event.kind = StreamEvent::Kind::kReadable;
        events.push_back(event);
      }
      if (e.waits_to_write && writable_at(i, side, now) <= now) {
        e.waits_to_write = false;
        event.kind = StreamEvent::Kind::kWritable;
        events.push_back(event);
      }
    }
  }
}

Time Streams::next(Time now) const {
  Time at = kNever;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    for (int side = 0; side < 2; ++side) {
      const End& e = streams_[i].ends[side];
      if (e.closed) continue;
      if (side == 1 && !e.told) at = std::min(at, e.up);
      if (e.waits_to_read) at = std::min(at, readable_at(e));
      if (e.waits_to_write) at = std::min(at, writable_at(i, side, now));
    }
  }
  return at;
}

}  // namespace weft::channel_world
