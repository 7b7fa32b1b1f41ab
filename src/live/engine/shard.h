// One Device, and everything that connects it to a wire and to memory: what the simulated world's NIC
// is to the simulator. It takes time and wire as arguments and has no thread, lock or clock of its
// own, so that it also runs single-threaded under virtual time.
//
//   receive   one batch from the wire: ICRC, header, Device::on_packets; payloads are copied into
//             registered memory as the Device says
//   transmit  bursts and ACKs out of the Device into trains, until it has nothing more, the wire is
//             full, or a few trains left: has_to_send() then tells. Data first, then ACKs: an ACK then
//             rides as the short last segment of a reply's train, and a ping-pong costs one system call
//             per message
//   groups    datagrams to a group go to each of its members here (memberships.h), and nothing else that is
//             sent to it. Our own go there when they leave, so that a sender that is a member has its copy
//             before its request is complete; what comes back of them is dropped
//   services  datagrams to queue pair 1 never reach the Device: they are the host's (services.h), and go on
//             to another process of its address if they are for that
//   fire      timers, up to the time whose arrivals have all been received: what lies in the socket may be
//             the ACK that makes a time-out needless. That is now when the wire is empty. While it is not, it
//             is the time since which as much was received as a socket holds. After a stall of our own,
//             timers restart instead of firing
//   step      all of it, until nothing moves or the caller's patience (turns) is used up
//
// The Device names memory by region; the table from region to address is here. Freshly placed bytes
// become visible in order, the last eight with one store at the end, for programs that watch the last
// byte of a WRITE.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/transport/device.h"
#include "live/engine/memberships.h"
#include "live/engine/services.h"
#include "live/wires/pack.h"
#include "live/wires/unpack.h"
#include "live/wires/wire.h"

namespace weft::live {

struct ShardCounters {
  std::uint64_t trains_sent = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t wire_full = 0;    // sends that had to be repeated
  std::uint64_t send_failed = 0;  // trains that the network refused
};

class Shard {
 public:
  Shard(const DeviceConfig& config, const WireFacts& facts, bool icrc, const cm::CmConfig& cm = {},
        const cm::DiscoveryConfig& discovery = {});

  Device& device() { return device_; }
  const Device& device() const { return device_; }
  GeneralServices& services() { return services_; }
  const GeneralServices& services() const { return services_; }

  Memberships& memberships() { return memberships_; }

  // --- memory ---
  void set_region(RegionId region, std::uint8_t* base) { regions_[region.v] = base; }
  // Where inline bytes of this queue pair lie; nullptr takes it back.
  void set_inline_area(Qpn qpn, std::uint8_t* area) { inline_areas_[qpn.v & qpn_mask_] = area; }

  // --- driving ---
  bool receive(Time now, Wire& wire);   // true: packets came in
  bool transmit(Time now, Wire& wire);  // true: something left
  bool fire(Time now);                  // true: a timer was due, and what it may wait for was looked at
  // Whether anything happened. Returns early, with more to do, after `turns` receive batches.
  bool step(Time now, Wire& wire, std::uint32_t turns = 64);

  // The last transmit() ended because the wire was full.
  bool wire_was_full() const { return blocked_; }
  // Whether a message of the host's services left for this very address since this was asked last.
  bool take_sent_home() { return std::exchange(sent_home_, false); }
  bool has_to_send() const { return device_.has_to_send() || services_.has_to_send(); }
  Time next_deadline() const { return std::min(device_.next_deadline(), services_.next_deadline()); }

  const WireCounters& wire_counters() const { return unpacker_.counters(); }
  const ShardCounters& counters() const { return counters_; }

 private:
  enum class Flush : std::uint8_t { kDone, kFull };

  bool pack(const wire::Burst& burst, Wire& wire, Time now);
  bool make_room(const wire::Address& to, const wire::Header& header, std::uint32_t payload, IpChoice ip,
                 Wire& wire, Time now);
  bool send_services(Wire& wire, Time now);
  void take_services(Time now, Wire& wire, const RxTrain& train);
  bool hand_over(Time now, Wire& wire, const RxTrain& train, std::span<const std::uint8_t> mad);
  Flush flush(Wire& wire, Packer& packer, Time now);
  void deliver(Time now, Wire& wire, const RxTrain& train);
  void look_back(Time now, Wire& wire, std::span<const RxTrain> trains);
  void take_from_group(Time now, const wire::Address& group);
  void deliver_to_members(Time now, const wire::Address& group, RxBatch& batch);
  void keep_for_members(const wire::Header& header, std::uint32_t payload, IpChoice ip);
  bool own(Qpn qpn) const { return ((qpn.v ^ device_.config().qpn_base) & ~qpn_mask_) == 0; }

  Device device_;
  GeneralServices services_;
  Addresses own_;
  std::uint8_t slot_;
  Memberships memberships_;
  WirePsn services_psn_{};  // of the next datagram from queue pair 1
  std::uint32_t qpn_mask_;
  std::vector<std::uint8_t*> regions_;
  std::vector<std::uint8_t*> inline_areas_;
  Unpacker unpacker_;
  RxBatch batch_;
  RxBatch own_copies_;  // of datagrams to a group, for its members here
  // The train under construction, and the full one that waits for the wire.
  std::array<std::unique_ptr<Packer>, 2> packers_;
  std::uint32_t filling_ = 0;
  bool blocked_ = false;
  bool sent_home_ = false;
  // Everything that arrived before `heard_` was received. Since `counted_from_`, so much was.
  Time heard_{};
  Time counted_from_{};
  std::uint64_t counted_ = 0;
  const std::uint64_t socket_bytes_;
  ShardCounters counters_;
};

}  // namespace weft::live
