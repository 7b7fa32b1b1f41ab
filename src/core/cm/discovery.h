// Capability discovery: which modes does the peer speak? (docs/protocol/modes.md#capability-discovery)
//
// Asked by vendor MAD for queue pairs that are connected without a connection manager, between RTR and the
// first packet. Three tries, 1, 4 and 16 ms apart. A peer that stays silent or answers with an error
// speaks plain RoCE and is not asked again for ten seconds, so a foreign host gets only three packets.
//
//   look_up(now, …)  --unknown-->  kAsking: hold the first packet
//   poll_mad, on_mad, on_timer      CAP_QUERY out, CAP_REPLY in, as with Cm
//   poll_news                       look_up will say something else now: kSpeaks or kSilent
//
// An answer is kept for (address, process slot). It holds while the process there is the same: its instance
// id is in every reply and query. A full table forgets the oldest answer whose news was polled.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/cm/terms.h"

namespace weft::cm {

struct DiscoveryConfig {
  std::uint32_t max_peers = 1024;
  std::uint64_t seed = 1;  // transaction ids are drawn from it
  std::uint8_t slot = 0;   // ours; top byte of transaction ids
  std::uint8_t slot_bits =
      8;  // top bits of a queue pair number that are its process slot; 0 in the simulator
  std::uint16_t modes = wire::kAllModes;
  wire::Mode preferred = wire::Mode::kIrn;
  // What we tell of ourselves.
  std::uint8_t flags = 0;
  std::uint64_t instance = 0;  // random at process start
  std::uint32_t buffer_share = 0;
  std::uint16_t bdp_cap = 0;
  std::uint16_t mtu = 0;
  std::array<std::uint8_t, 16> host_id{};
  std::array<Duration, 3> tries = {milliseconds(1), milliseconds(4), milliseconds(16)};
  Duration silence = seconds(10);

  Result<void> validate() const;
};

enum class Knowledge : std::uint8_t { kAsking, kSpeaks, kSilent };

struct PeerId {
  wire::Address address;
  std::uint8_t slot = 0;
  bool operator==(const PeerId&) const = default;
};

struct Known {
  Knowledge knowledge = Knowledge::kSilent;
  wire::Mode mode = wire::Mode::kRoce;  // for requests to this peer
  wire::Capability capability;          // kSpeaks: its reply
};

struct DiscoveryCounters {
  std::uint64_t queries = 0;   // sent
  std::uint64_t answers = 0;   // taken
  std::uint64_t asked = 0;     // queries answered
  std::uint64_t strays = 0;    // replies to no open question
  std::uint64_t renewed = 0;   // peers whose process is another now
  std::uint64_t overflow = 0;  // no room: for a peer (it counts as silent), or for a reply
};

class Discovery {
 public:
  explicit Discovery(const DiscoveryConfig& config);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  Known look_up(Time now, const wire::Address& local, const wire::Address& peer, Qpn target);
  void forget(const PeerId& peer);  // unless it is being asked
  bool poll_news(PeerId& out);
  PeerId peer_of(const wire::Address& address, Qpn target) const;

  bool on_mad(Time now, const MadFacts& facts, std::span<const std::uint8_t> bytes);  // false: not ours
  bool poll_mad(MadOut& out);
  void on_timer(Time now);
  Time next_deadline() const;

  const DiscoveryConfig& config() const;
  const DiscoveryCounters& counters() const;
  std::uint32_t peers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The mode that both sets have: `preferred` if possible, else srnic, irn, roce. If they have none in common,
// a set with roce falls back to it and a set without uses `preferred`.
wire::Mode common_mode(std::uint16_t ours, std::uint16_t theirs, wire::Mode preferred);

}  // namespace weft::cm
