// A wire moves frames in trains. A frame is one UDP payload, BTH to ICRC; a train is several frames of one
// size back to back in memory (the last may be shorter), to or from one address. The kernel's segmentation
// offload (UDP_SEGMENT, UDP_GRO) takes and gives exactly that. One system call per train instead of one per
// frame makes sending 8 to 90 times as fast, so trains are the unit here.
//
// Implementations: udp.h (a socket), shm.h (memory shared with other processes of this host), packet.h (raw
// frames of an Ethernet interface), impaired.h (another wire made worse); open.h opens what was asked for. A
// virtual call per train is noise beside the system call behind it.
//
// Not thread-safe: a wire belongs to the thread that drives its shard.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/wire/packet.h"
#include "live/wires/addresses.h"

namespace weft::live {

// No kernel cuts more frames out of one send.
constexpr std::uint32_t kMostTrainFrames = 128;

// What a program may choose of the IP header. Neither is under the ICRC.
struct IpChoice {
  static constexpr std::uint8_t kHopLimit = 64;  // of programs that choose none

  std::uint8_t traffic_class = 0;  // DSCP and ECN
  std::uint8_t hop_limit = kHopLimit;
  bool operator==(const IpChoice&) const = default;
};

// Frames as they came. The bytes are the wire's until its next receive(); the reader may change them.
struct RxTrain {
  std::uint8_t* data = nullptr;
  std::uint32_t bytes = 0;       // of all frames
  std::uint32_t frame_size = 0;  // of every frame but the last
  wire::Address source;
  std::uint16_t source_port = 0;
  std::uint8_t tos = 0;   // as far as the wire tells
  std::uint8_t ttl = 64;  // after show_headers()
  // Its source is an address of this host, but not the port of a soft NIC there: some program's own socket.
  bool stray = false;
  bool handed = false;  // another process of this address received it and handed it over
  // The wire saw the IP header, so the ICRC is judged by it and nothing is solved for. Frames that the
  // kernel joined were numbered one by one from `first`, or all alike; `identification` is this train's first
  // frame's.
  bool header_seen = false;
  bool dont_fragment = true;
  std::uint16_t identification = 0;
  std::uint16_t first = 0;
  wire::Address group = {};  // that it was sent to; none: to our address
  bool for_group() const { return group != wire::Address{}; }
};

struct TxTrain {
  std::span<const std::uint8_t> bytes;
  std::uint32_t frame_size = 0;
  wire::Address destination;
  IpChoice ip = {};
  Time now = {};  // for wires that keep times
};

enum class SendStatus : std::uint8_t {
  kSent,
  kFull,    // nothing was sent; try the same train later
  kFailed,  // the network refused it; it is lost, as packets may be
  // The device does not cut trains, and nothing was sent. facts() has changed: frames leave one by one from
  // here on, with other identifications and ICRCs. The caller computes these anew and sends the train again.
  kUncut,
};

// What a wire can carry; fixed once it is open, but for what SendStatus::kUncut says.
struct WireFacts {
  Addresses own;           // ours
  std::uint16_t port = 0;  // ours
  // The top byte of our queue pair numbers, where other processes may have the same address; else 0.
  std::uint8_t slot = 0;
  std::uint32_t interface = 0;      // the kernel's number of the one that has the address; 0: none
  std::uint32_t mtu = 0;            // of the interface: IP header and all that follows
  std::uint32_t max_frames = 1;     // per train
  std::uint32_t max_bytes = 65000;  // per train
  // The kernel cuts trains, so that frame i of one leaves with the IPv4 identification i; otherwise frames
  // leave one by one, and it is always 0 (docs/protocol/icrc.md#the-ipv4-identification).
  bool identification_counts = false;
  std::uint64_t receive_buffer = 0;  // bytes of kernel memory that may wait for us, truesize
};

class Neighbours;

class Wire {
 public:
  Wire() = default;
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  virtual const WireFacts& facts() const = 0;
  // What has arrived, in order; empty when nothing waits.
  virtual std::span<const RxTrain> receive(Time now) = 0;
  virtual SendStatus send(const TxTrain& train) = 0;
  // One thread is about to sleep until a descriptor is readable; others may drive meanwhile. False: something
  // has come already. Whatever rest() said, rise() follows.
  virtual bool rest() { return true; }
  virtual void rise() {}
  // For a wire that is more than one queue: mark() remembers what waits now, and passed() says whether all of
  // that has been received.
  virtual void mark() {}
  virtual bool passed() const { return true; }
  // From here on trains tell what the IP header said; that costs time, so it is off until asked for.
  virtual void show_headers() {}
  // From here on, until leave(), what is sent to this group is received too. kUnsupported: the wire has no
  // groups, or the network does not.
  virtual Outcome<void> join(const wire::Address& group) {
    static_cast<void>(group);
    return fail(Errc::kUnsupported);
  }
  virtual void leave(const wire::Address& group) { static_cast<void>(group); }
  // Readable when receive() may have something, except for what next_due() announces.
  virtual int descriptor() const = 0;
  // The same for what other processes hand over; -1: nobody does. A descriptor of its own, because one that
  // stands for both would cost something with every datagram.
  virtual int mailbox() const { return -1; }
  // The same for what comes by a second way, beside raw frames or beside a socket; -1: there is but one way.
  virtual int aside() const { return -1; }
  // The same for what is sent to groups; -1: none was joined yet.
  virtual int groups() const { return -1; }
  // The other processes of its address; nullptr if it has that for itself.
  virtual Neighbours* neighbours() { return nullptr; }
  // In a forked child: its descriptors become `nowhere`'s, because what they were is the parent's.
  virtual void abandon(int nowhere) = 0;
  // What it holds back leaves now: the process ends.
  virtual void let_go() {}
  // When a frame that the wire itself holds back becomes due, or it has to look after itself.
  virtual Time next_due() const { return kNever; }
  // What the wire itself did to frames, each counter with its name and what it means.
  using SeeCounter = std::function<void(const char* name, const char* text, std::uint64_t value)>;
  virtual void visit_counters(const SeeCounter&) const {}
};

}  // namespace weft::live
