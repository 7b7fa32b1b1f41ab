// The two worlds of the differential test. Both run the same programs at two hosts to their end, and tell
// them at each host every packet that leaves it, with the picosecond.
//
// A world carries two lanes of packets each way: those of the Device, and those of queue pair 1
// (docs/ARCHITECTURE.md#one-run-both-worlds).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cm/cm.h"
#include "core/cm/discovery.h"
#include "core/impair/impair.h"
#include "core/transport/device.h"

namespace weft::differential {

inline constexpr std::uint32_t kMemory = 3U << 16U;  // of each host, in bytes

enum class Lane : std::uint8_t { kDevice, kServices };
inline constexpr std::size_t kLanes = 2;
// One way; the lanes never deliver at the same time.
inline constexpr std::array<Duration, kLanes> kDelays = {Duration{1'234'567}, Duration{1'234'578}};

// Queue pair 1 of both hosts.
struct ServicesPlan {
  std::array<cm::CmConfig, 2> managers;
  std::array<cm::DiscoveryConfig, 2> discoveries;
  std::array<bool, 2> foreign{};  // has never heard of weft's extension
};

struct WorldPlan {
  std::uint64_t seed = 1;  // of what the network does
  std::array<DeviceConfig, 2> devices;
  std::array<impair::ImpairConfig, kLanes> networks;  // either way
  std::optional<ServicesPlan> services;
  Time end = Time{} + seconds(5);
};

// One host, as its world has it.
class Host {
 public:
  virtual ~Host() = default;
  virtual Device& device() = 0;
  virtual wire::Address address() const = 0;
  // Everything that may leave leaves now. The world does so by itself when the program has acted.
  virtual void send() = 0;
  // Only where the plan has services.
  virtual cm::Cm& manager() = 0;
  virtual cm::Discovery& discovery() = 0;
  // Where a region's bytes are: kMemory of them.
  virtual void set_region(RegionId region, std::uint8_t* bytes) = 0;
};

// What runs at both hosts, and the log of what it saw.
class Programs {
 public:
  virtual ~Programs() = default;
  virtual void set_up(std::array<Host*, 2> hosts) = 0;  // before anything runs
  // After everything that happens at a host, and at next_wake().
  virtual void act(std::size_t host, Time now) = 0;
  virtual Time next_wake(std::size_t /*host*/) const { return kNever; }
  virtual void leave(Time /*now*/) {}  // the world ends

  void log(std::size_t host, Lane lane, Time at, std::string what) {
    logs_[host][static_cast<std::size_t>(lane)].push_back(std::to_string(at.ps) + " " + std::move(what));
  }
  const std::vector<std::string>& logged(std::size_t host, Lane lane) const {
    return logs_[host][static_cast<std::size_t>(lane)];
  }
  // The first difference, or nothing.
  static std::string difference(const Programs& simulated, const Programs& live);

 private:
  std::array<std::array<std::vector<std::string>, kLanes>, 2> logs_;
};

// What a host's memory holds at first.
std::vector<std::uint8_t> fresh_memory(std::size_t host);
// A message of queue pair 1, whole.
std::string mad_text(const wire::Header& header, std::span<const std::uint8_t> mad);
// Whether a host that has never heard of weft's extension knows what to do with this message.
bool is_managers(std::span<const std::uint8_t> mad);

// Packets as structs, through links of the simulated fabric.
void run_simulated(const WorldPlan& plan, Programs& programs);
// Packets as bytes, through live::Shard. `sabotage` spoils this world only, so that the comparison is seen to
// fail. False: by chance two frames came to one host at one instant by different lanes. Both worlds may order
// them as they like, so what follows is not to be compared; one plan in a hundred thousand is so.
struct Sabotage {
  std::uint64_t forget = 0;  // this packet of host 0 is lost besides, counted from 1 in its lane; 0: none
  Lane lane = Lane::kDevice;
};
bool run_live(const WorldPlan& plan, Programs& programs, const Sabotage& sabotage = {});

}  // namespace weft::differential
