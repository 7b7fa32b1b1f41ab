// The XDP program that gives frames of an interface to AF_XDP sockets, and lets all others pass as if it were
// not there. It is a few instructions of our own, loaded by bpf(2): nothing to install, and no compiler. It
// is attached by a link that lives as long as its descriptor: however the process ends, the interface is as
// it was before.
//
// It runs inside the driver where that can (native), else behind it. One program at a time can be attached
// by a link, so a second process is refused.
//
// It needs CAP_BPF and CAP_NET_ADMIN (before Linux 5.8: CAP_SYS_ADMIN) outside of any user namespace.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/base/result.h"
#include "live/packet_io/frame.h"
#include "live/packet_io/wanted.h"

namespace weft::live {

struct XdpQueue {
  std::uint32_t queue = 0;
  int socket = -1;  // XdpSocket::descriptor()
};

class XdpProgram {
 public:
  // Frames that are wanted, and sent to this Ethernet address; without `wanted`, all frames. A frame of a
  // queue that has no socket passes.
  static Result<std::unique_ptr<XdpProgram>> attach(std::uint32_t interface, std::span<const XdpQueue> queues,
                                                    const std::optional<Wanted>& wanted,
                                                    const MacAddress& address = {});
  ~XdpProgram();
  XdpProgram(const XdpProgram&) = delete;
  XdpProgram& operator=(const XdpProgram&) = delete;

  bool native() const { return native_; }
  void abandon(int nowhere);

 private:
  XdpProgram() = default;
  int map_ = -1;
  int program_ = -1;
  int link_ = -1;
  bool native_ = false;
};

}  // namespace weft::live
