// The stream port (channel/stream_port.h) over the kernel's TCP: sockets that do not block, in one epoll set
// whose descriptor is readable when poll_event() has something to tell.
//
//   readiness  The set is edge-triggered, which is what the contract promises. poll_event() asks the kernel
//   once,
//              hands out what it said, and then answers false once, so that a flood of events ends a turn,
//              too.
//   the end    A stream that was closed with bytes of the peer's unread would be reset, and the peer could
//   lose
//              what was sent last. It is shut down for writing, and what still comes is read and dropped
//              until the peer closes, so much and no more (kMostGraves, kMostDropped).
//
// One thread. IPv4.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "channel/stream_port.h"

namespace weft::channel {

class TcpPort final : public StreamPort {
 public:
  // Streams come to this address, and leave from it.
  static Result<std::unique_ptr<TcpPort>> open(const wire::Address& own);
  ~TcpPort() override;

  int event_fd() const { return epoll_; }
  Outcome<void> listen(std::uint16_t port) override;
  Outcome<StreamId> connect(const wire::Address& to, std::uint16_t port, Duration alive,
                            std::uint32_t tag) override;
  void name(StreamId stream, Duration alive, std::uint32_t tag) override;
  Outcome<std::size_t> send(StreamId stream, std::span<const std::span<const std::uint8_t>> pieces) override;
  Outcome<std::size_t> receive(StreamId stream, std::span<std::uint8_t> into) override;
  void close(StreamId stream) override;
  bool poll_event(StreamEvent& out) override;

 private:
  static constexpr std::size_t kMostStreams = 65'536;
  static constexpr std::size_t kMostGraves = 64;
  static constexpr std::size_t kMostDropped = 1U << 20U;  // bytes of a grave
  struct Socket {
    int fd = -1;
    std::uint16_t life = 0;  // a number is used again under another life
    bool grave = false;
    std::uint32_t tag = StreamEvent::kNoTag;
    std::size_t dropped = 0;
  };

  explicit TcpPort(const wire::Address& own) : own_(own) {}
  Socket* find(StreamId stream);
  StreamId take_place();  // its number; kMostStreams: there is none
  void give_place(StreamId stream);
  bool adopt(StreamId place, int fd);
  void accept_some();
  int spare_descriptor() const;
  void drain(StreamId stream);
  void watch_over(int fd, Duration alive) const;

  wire::Address own_;
  int epoll_ = -1;
  int listener_ = -1;
  int spare_ = -1;  // given up for a moment, to turn a stream away when there is no descriptor left
  bool told_all_ = false;
  std::vector<Socket> sockets_;
  std::vector<std::uint32_t> free_;
  std::deque<StreamId> graves_;
  std::deque<StreamEvent> events_;
};

}  // namespace weft::channel
