// What an interface receives and we want, or all of it without `wanted`, over all of its queues: an AF_XDP
// socket each, and the program that gives them their frames. Needs what these need.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "live/packet_io/next_hop.h"
#include "live/packet_io/wanted.h"
#include "live/packet_io/xdp_program.h"
#include "live/packet_io/xdp_socket.h"

namespace weft::live {

class XdpReceiver {
 public:
  static Result<std::unique_ptr<XdpReceiver>> open(const EthernetInterface& interface,
                                                   const std::optional<Wanted>& wanted);
  ~XdpReceiver();
  XdpReceiver(const XdpReceiver&) = delete;
  XdpReceiver& operator=(const XdpReceiver&) = delete;

  // Of one queue, the next in turn that has something; valid until the next call.
  std::span<const RawFrame> receive();
  int descriptor() const { return epoll_ >= 0 ? epoll_ : sockets_.front()->descriptor(); }
  std::uint32_t chunks() const;  // frames that may wait, in all queues
  std::uint64_t lost() const;
  void abandon(int nowhere);

 private:
  XdpReceiver() = default;
  std::vector<std::unique_ptr<XdpSocket>> sockets_;
  std::unique_ptr<XdpProgram> program_;
  std::size_t turn_ = 0;
  int epoll_ = -1;  // with several queues
  std::uint32_t chunks_each_ = 0;
};

}  // namespace weft::live
