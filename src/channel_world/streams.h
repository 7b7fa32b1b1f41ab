// Streams between the hosts of a pair world: bytes in order, after a delay, in pieces of any length; a
// direction holds so much and no more. Streams are refused, are never answered, are cut in the middle.
//
// A chunk waits in its direction until its time, and then until it is read. What a port tells is found by
// advance(), for every end that waits for something.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "channel/stream_port.h"
#include "core/base/prng.h"
#include "core/base/units.h"

namespace weft::channel_world {

struct StreamPlan {
  Duration delay = microseconds(20);  // at most, one way
  std::uint32_t capacity = 4096;      // bytes of a direction
  std::uint32_t refused = 0;          // of a million attempts
  std::uint32_t ignored = 0;          // likewise: nobody ever answers
};

class Streams {
 public:
  Streams(const StreamPlan& plan, std::size_t hosts, Prng random);
  ~Streams();
  channel::StreamPort& at(std::uint32_t host);
  void address(std::uint32_t host, const wire::Address& address);
  // One of the streams, if there is one, ends at both hosts: soon, or after its silence.
  void cut(Time now);
  void advance(Time now);
  Time next(Time now) const;  // when advance() has something to do

 private:
  class Port;
  friend class Port;
  struct Chunk {
    Time at;
    std::vector<std::uint8_t> bytes;
    std::size_t begin = 0;
  };
  struct End {
    std::uint32_t host = 0;
    std::uint32_t tag = channel::StreamEvent::kNoTag;
    Duration alive{};
    Time up = kNever;      // when it is told of
    Time failed = kNever;  // it is over
    bool closed = false;
    bool told = false;  // that it came
    bool cut = false;   // nothing more arrives
    bool waits_to_read = true;
    bool waits_to_write = true;
    std::deque<Chunk> coming;
    std::size_t held = 0;  // bytes of `coming`
    Time last{};           // of its last chunk
    Time ended = kNever;   // the peer closed
  };
  struct Stream {
    End ends[2];
  };
  End& end(channel::StreamId id) { return streams_[id.v / 2].ends[id.v % 2]; }
  const End& end(channel::StreamId id) const { return streams_[id.v / 2].ends[id.v % 2]; }
  Duration some_delay();
  Time readable_at(const End& e) const;
  Time writable_at(std::size_t stream, int side, Time now) const;

  StreamPlan plan_;
  Prng random_;
  Time now_{};
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<Stream> streams_;
};

}  // namespace weft::channel_world
