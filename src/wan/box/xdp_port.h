// A Port that receives by AF_XDP, over all queues of the interface, and sends as packet_port.h does. For
// hardware: frames come to user space before the kernel makes anything of them, without a copy where the
// driver can. It takes every frame of the interface, and the kernel's own stack there hears nothing.
//
// AF_XDP says nothing of what a sender left to its device. Behind a virtual Ethernet, hosts must compute
// checksums themselves (ethtool -K DEVICE tx off), or what is no RoCEv2 arrives with wrong ones; the UDP
// checksum of RoCEv2 is cleared here, which says that there is none.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "live/packet_io/xdp_receiver.h"
#include "wan/box/packet_port.h"

namespace weft::wan {

class XdpPort final : public Port {
 public:
  static Result<std::unique_ptr<XdpPort>> open(const std::string& field, const std::string& interface);

  const PortFacts& facts() const override { return packets_->facts(); }
  std::span<const RxFrame> receive() override;
  void done() override;
  void send(std::span<const TxFrame> frames) override { packets_->send(frames); }
  int descriptor() const override { return receiver_->descriptor(); }
  const PortCounters& counters() override;

 private:
  XdpPort() = default;

  // Sends, and receives what no queue had a socket for.
  std::unique_ptr<PacketPort> packets_;
  std::unique_ptr<live::XdpReceiver> receiver_;
  std::vector<RxFrame> batch_;
  PortCounters counters_;
  std::uint64_t frames_ = 0;
  std::uint64_t bytes_ = 0;
  bool by_packets_ = false;  // the last batch
};

}  // namespace weft::wan
