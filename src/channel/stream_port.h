// The stream port: what a context needs of TCP, beside the port of verbs (core/verbs/port.h). A stream
// carries bytes both ways, in order and whole, until it fails.
//
//   channel_world/streams.h   in virtual time
//   channel_c/tcp.h           sockets
//
// Single-threaded, without a clock; no call waits.
//
//   tag        The user's number of a stream, in each event of it: given with connect() or name().
//   readiness  kReadable comes once after a receive() that answered 0, kWritable once after a send() that
//   took
//              less than everything; the first of each comes when the stream is up. A stream that failed is
//              readable: receive() gives what had come, and then fails.
//   silence    A stream whose peer is gone fails by itself, some time after `alive`. The peer's program need
//   not
//              do anything for it.
//   the end    close() gives the stream up at this end. What send() took still arrives, if the peer reads.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/verbs/port.h"

namespace weft::channel {

using StreamId = Id<struct StreamTag, std::uint32_t>;

struct StreamEvent {
  enum class Kind : std::uint8_t {
    kCame,  // a peer's stream at a port that is listened at; nobody has named it yet
    kReadable,
    kWritable,
  };
  static constexpr std::uint32_t kNoTag = UINT32_MAX;
  Kind kind = Kind::kCame;
  StreamId stream{};
  std::uint32_t tag = kNoTag;
  wire::Address peer;  // kCame
};

class StreamPort {
 public:
  StreamPort() = default;
  virtual ~StreamPort() = default;
  StreamPort(const StreamPort&) = delete;
  StreamPort& operator=(const StreamPort&) = delete;

  // At the address that the port of verbs has, too.
  virtual Outcome<void> listen(std::uint16_t port) = 0;
  virtual Outcome<StreamId> connect(const wire::Address& to, std::uint16_t port, Duration alive,
                                    std::uint32_t tag) = 0;
  virtual void name(StreamId stream, Duration alive, std::uint32_t tag) = 0;
  // One after the other; answers how many bytes of them were taken.
  virtual Outcome<std::size_t> send(StreamId stream,
                                    std::span<const std::span<const std::uint8_t>> pieces) = 0;
  virtual Outcome<std::size_t> receive(StreamId stream, std::span<std::uint8_t> into) = 0;
  virtual void close(StreamId stream) = 0;
  virtual bool poll_event(StreamEvent& out) = 0;
};

}  // namespace weft::channel
