// One host of a pair world: a Device, the memory behind its regions, and the inline areas of its queue
// pairs. It does what device.h leaves to the world: it turns (region, offset) into bytes, copies
// payloads in and out, answers "fault" for memory that the test took away, and tells the referee of every
// byte before it is written.
//
// Addresses are made up: a region begins at a number that depends on its order and is not aligned, so that
// an address taken for an offset, or the reverse, lands nowhere.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "check/referee.h"
#include "core/base/prng.h"
#include "core/transport/device.h"
#include "pair/coverage.h"

namespace weft::pair {

using check::HostId;

// A registered piece of a host's memory.
struct Buffer {
  MrInfo mr;
  std::uint64_t address = 0;
  std::span<std::uint8_t> bytes;
};

// A packet between two hosts.
struct Datagram {
  wire::Header header;
  std::vector<std::uint8_t> payload;
};

class Host {
 public:
  Host(HostId id, const DeviceConfig& config, check::Referee& referee);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  HostId id() const { return id_; }
  const wire::Address& address() const { return address_; }
  static wire::Address address_of(HostId id);

  // A new region of random bytes. What a program writes into itself cannot be watched: observers then know of
  // its keys and bounds, and the program judges its bytes.
  Buffer allocate(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random, bool watched = true);
  // A new region whose memory answers every access with a fault.
  Buffer allocate_gone(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random);

  Key allocate_window(PdId pd);  // of type 2

  // The inline bytes of the request in `slot` of this queue pair.
  void keep_inline(Qpn qpn, std::uint32_t slot, std::uint32_t max_inline,
                   std::span<const std::uint8_t> bytes);
  void forget_inline(Qpn qpn) { inline_.erase(qpn); }

  // Copies the payload of one packet of a burst; false when some of its memory is gone.
  bool gather(const wire::Burst& burst, const wire::TxPacket& packet,
              std::vector<std::uint8_t>& payload) const;
  // Hands packets to the Device and moves their bytes.
  void deliver(Time now, std::span<const wire::RxPacket> packets,
               std::span<const std::vector<std::uint8_t>> payloads);

  Device device;
  Coverage coverage;

 private:
  struct Memory {
    std::vector<std::uint8_t> bytes;
    bool gone = false;
    bool watched = true;  // the referee knows its bytes
  };
  struct Placer;  // the Sink
  Buffer reserve(PdId pd, std::uint32_t size, std::uint8_t access, Prng& random);
  void announce(const Buffer& b, PdId pd, std::uint32_t size, std::uint8_t access);

  HostId id_;
  wire::Address address_;
  check::Referee& referee_;
  std::map<RegionId, Memory> memory_;
  std::map<Qpn, std::vector<std::uint8_t>> inline_;
  std::uint64_t next_address_;
};

}  // namespace weft::pair
