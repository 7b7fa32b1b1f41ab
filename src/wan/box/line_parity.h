// The bytes of parity in a live box: what is coded of a frame, parity frames, and frames that they give back.
//
// What is coded of a frame begins with its IP header. Routers of the line change some of that, so these
// fields count as zero: type of service, time to live and the IPv4 header's checksum; and the UDP checksum,
// which RoCEv2 leaves out. A restored frame has the first two from the parity frame, which came the same way,
// a checksum that is right, and no UDP checksum. Its ICRC covers all the rest, and must be right.
//
// Considered instead: code the packet from its BTH on, and write IP and UDP anew. The ICRC covers the
// identification and the source port, so they would have to travel beside it, and a second short run of the
// code costs more than 28 bytes more in the first.
#pragma once
#include <cstdint>
#include <span>

#include "wan/box/bodies.h"
#include "wan/box/ethernet.h"
#include "wan/box/senders.h"
#include "wan/code/group.h"
#include "wan/logic/box.h"
#include "wan/logic/parity_frame.h"

namespace weft::wan {

class LineParity {
 public:
  // What parity frames are longer than the longest frame that they cover.
  static constexpr std::uint32_t kLongerBy = kHeadersBytes - kEthernetBytes + 12 + kMostParityHeader + 4;
  // The longest payload whose parity fits a line of this MTU.
  static std::uint32_t covered(std::uint32_t line_mtu);

  LineParity(ParityTerms terms, std::uint32_t longest_frame);

  // The data frame in this slot leaves as this member of the open group. Its bytes are as before afterwards.
  void cover(std::uint8_t member, std::uint8_t* frame);
  // Returns the frame's length; `out` holds a slot.
  std::uint32_t write(const Out& parity, const EthernetHeader& ethernet, std::uint16_t from_port,
                      std::span<std::uint8_t> out);
  // Gives the box what parity gives back. A frame that finds no slot, or whose bytes are wrong, is left out.
  void restore(Time now, Box& box, Bodies& bodies, Senders& senders);
  std::uint64_t broken() const { return broken_; }  // restored bytes that were no packet

 private:
  void put(Time now, std::span<const std::uint8_t> block, const std::uint8_t* parity, Box& box,
           Bodies& bodies, Senders& senders);

  Encoder encoder_;
  Decoder decoder_;
  std::uint64_t broken_ = 0;
};

}  // namespace weft::wan
