#include "wan/box/xdp_port.h"

#include <net/if.h>

#include <optional>

#include "wan/box/ethernet.h"

namespace weft::wan {

Result<std::unique_ptr<XdpPort>> XdpPort::open(const std::string& field, const std::string& interface) {
  auto packets = PacketPort::open(field, interface);
  if (!packets) return tl::unexpected(packets.error());
  const live::EthernetInterface i{if_nametoindex(interface.c_str()), interface, (*packets)->facts().mtu, {}};
  auto receiver = live::XdpReceiver::open(i, std::nullopt);
  if (!receiver) return fail(field + ": " + receiver.error().message + "; --port packet needs less");
  auto p = std::unique_ptr<XdpPort>(new XdpPort());
  p->packets_ = std::move(*packets);
  p->receiver_ = std::move(*receiver);
  p->batch_.reserve(kBatch);
  return p;
}

std::span<const RxFrame> XdpPort::receive() {
  const std::span<const live::RawFrame> frames = receiver_->receive();
  by_packets_ = frames.empty();
  if (by_packets_) return packets_->receive();
  batch_.clear();
  for (const live::RawFrame& f : frames) {
    if (is_rocev2({f.data, f.bytes})) clear_udp_checksum(f.data);
    batch_.push_back({f.data, f.bytes, {}});
    bytes_ += f.bytes;
  }
  frames_ += frames.size();
  return batch_;
}

void XdpPort::done() {
  if (by_packets_) packets_->done();
}

const PortCounters& XdpPort::counters() {
  counters_ = packets_->counters();
  counters_.rx_frames += frames_;
  counters_.rx_bytes += bytes_;
  counters_.rx_missed += receiver_->lost();
  return counters_;
}

}  // namespace weft::wan
