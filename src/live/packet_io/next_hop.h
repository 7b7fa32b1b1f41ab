// Where a frame for a host goes: the Ethernet address of the next hop, or that the kernel has to send it.
// Both are the kernel's to know, and it is asked by rtnetlink: its route for the destination, then its entry
// for the next hop in the neighbour table.
//
// Nobody resolves addresses here. As long as there is no answer the datagram is left to the kernel (a UDP
// socket), whose own resolution it sets off; a moment later the table knows. An entry that the kernel has
// begun to doubt (nobody told it for a while that the neighbour is still there) still serves, and one
// datagram a look goes through the kernel, which then makes sure. So the table stays right although most
// frames pass it by.
//
// What is known is believed for a second, what is not for a few milliseconds. The table is bounded: one that
// is full is forgotten and learned anew.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/wire/packet.h"
#include "live/packet_io/frame.h"

namespace weft::live {

struct EthernetInterface {
  std::uint32_t index = 0;
  std::string name;
  std::uint32_t mtu = 0;
  MacAddress address{};
};

// The Ethernet interface that has the IPv4 address, or a sentence why there is none.
Result<EthernetInterface> find_ethernet(const wire::Address& address);

class NextHops {
 public:
  enum class Way : std::uint8_t {
    kFrame,   // a frame of ours, between these addresses
    kKernel,  // by a UDP socket: the host is this one, or another interface leads there, or nobody knows yet
  };
  struct Hop {
    Way way = Way::kKernel;
    MacAddress to{};
    MacAddress from{};
  };
  static constexpr std::size_t kMost = 4096;
  static constexpr Duration kBelieved = seconds(1);
  static constexpr Duration kUnknown = milliseconds(5);

  static Result<std::unique_ptr<NextHops>> open(const EthernetInterface& interface, const wire::Address& own);
  ~NextHops();
  NextHops(const NextHops&) = delete;
  NextHops& operator=(const NextHops&) = delete;

  // Valid until the next call.
  const Hop& towards(Time now, const wire::Address& host);
  void abandon(int nowhere);

 private:
  struct Entry {
    Hop hop;
    Time until{};
    bool doubted = false;  // the next datagram goes by the kernel, which then makes sure
  };
  enum class State : std::uint8_t { kNone, kSure, kDoubted };
  NextHops() = default;
  void look(Time now, std::uint32_t host, Entry& entry);
  bool route(std::uint32_t host, std::uint32_t& next);
  State neighbour(std::uint32_t host, MacAddress& address);
  MacAddress own_address() const;
  template <class Take>
  bool ask(const void* request, std::size_t bytes, Take&& take);

  EthernetInterface interface_;
  std::uint32_t own_ = 0;  // our IPv4 address, as the network writes it
  int fd_ = -1;
  std::uint32_t sequence_ = 0;
  std::unordered_map<std::uint32_t, Entry> entries_;
  Hop by_kernel_;
};

}  // namespace weft::live
