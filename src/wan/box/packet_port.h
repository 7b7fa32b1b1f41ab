// A Port on AF_PACKET: the interface is promiscuous for as long as the port is open, and gives every frame
// that it receives, VLAN tags included.
//
// Frames come through a ring that is mapped (TPACKET_V2: each has a slot of its own at once, where newer
// versions wait up to a millisecond to fill a block). A slot holds a frame of the interface's MTU; what is
// longer, a train that nobody cut, the kernel also keeps as a message of the socket, and it is read from
// there in its turn. Frames leave through sendmmsg.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "wan/box/port.h"

namespace weft::wan {

class PacketPort final : public Port {
 public:
  // `field` begins every sentence about what is wrong with the interface.
  static Result<std::unique_ptr<PacketPort>> open(const std::string& field, const std::string& interface);
  ~PacketPort() override;

  const PortFacts& facts() const override { return facts_; }
  std::span<const RxFrame> receive() override;
  void done() override;
  void send(std::span<const TxFrame> frames) override;
  int descriptor() const override { return fd_; }
  const PortCounters& counters() override;

 private:
  struct Messages;  // of sendmmsg
  PacketPort();
  std::uint8_t* slot(std::uint32_t i) const;
  // A frame that did not fit its slot, read into buffer `i`; false: it is not there.
  bool read_long(std::uint32_t i, RxFrame& out);

  int fd_ = -1;
  PortFacts facts_;
  PortCounters counters_;
  std::uint8_t* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;
  std::uint32_t slots_ = 0;
  std::uint32_t slot_bytes_ = 0;
  std::uint32_t slots_a_block_ = 0;
  std::uint32_t next_ = 0;   // slot to look at
  std::uint32_t taken_ = 0;  // slots behind it that the reader still has
  std::vector<RxFrame> batch_;
  std::vector<std::unique_ptr<std::uint8_t[]>> long_frames_;
  std::unique_ptr<Messages> messages_;
};

}  // namespace weft::wan
