// Groups (IP multicast) for a UDP wire: a socket for each, bound to the group's address, because the wire's
// own socket is bound to one host and gets nothing else. What it receives is what the network sends to the
// group through our interface; the kernel gives every such socket of this host a copy, whichever process it
// is.
//
// The sockets are looked at through one epoll descriptor, which is also what a thread sleeps on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "live/wires/wire.h"

namespace weft::live {

class Groups {
 public:
  static constexpr std::size_t kSlots = 8;  // datagrams read at a time
  // kNoMemory: the system has no descriptor left.
  static Outcome<std::unique_ptr<Groups>> open(const WireFacts& facts, std::uint32_t receive_buffer);
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  // Of our address's family. kInvalid: it is no group, or another's; kBusy: it was joined before.
  Outcome<void> join(const wire::Address& group);
  void leave(const wire::Address& group);
  // What waits for one of the groups, each in its turn.
  std::span<const RxTrain> receive();
  void show_headers();
  int descriptor() const { return epoll_; }
  void abandon(int nowhere);

 private:
  struct Member {
    int fd = -1;
    wire::Address group;
  };
  struct Buffers;
  Groups(const WireFacts& facts, std::uint32_t receive_buffer);
  Outcome<int> open_socket(const wire::Address& group) const;
  std::span<const RxTrain> read(const Member& member);

  const WireFacts& facts_;
  std::uint32_t receive_buffer_;
  int epoll_ = -1;
  bool headers_ = false;
  std::vector<Member> members_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace weft::live
