#include "live/wires/place_finder.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "live/wires/entropy.h"
#include "live/wires/sockets.h"

namespace weft::live {
namespace {

constexpr Duration kFindEvery = milliseconds(5);
constexpr Duration kAnswersWithin = milliseconds(50);  // or the probes are lost
constexpr Duration kCheckEvery = milliseconds(200);
constexpr int kMostSteerings = 4;
constexpr std::uint32_t kProbeBytes = 16;
constexpr std::uint32_t kRoundOffset = 8;

}  // namespace

PlaceFinder::PlaceFinder(int fd, int source, const WireFacts& facts, Neighbours& neighbours)
    : fd_(fd),
      source_(source),
      facts_(facts),
      neighbours_(neighbours),
      round_(unpredictable<std::uint32_t>()) {
  find();
}

// A probe beyond the last place comes to whomever the kernel's hash chooses, so the first that arrives
// counts: they leave in ascending order.
void PlaceFinder::find() {
  if (!neighbours_.readable()) return;  // what others have attached is better than what we could
  ++round_;
  asked_ = false;
  alone_ = neighbours_.others().empty();
  if (alone_) {
    // Who comes later has bound its name later, and its socket after that. A program would only cost time.
    detach_steering(fd_);
    place_ = 0;
    neighbours_.announce(place_);
    alone_ = neighbours_.others().empty();  // or that was the newcomer's program
  }
  looking_ = !alone_;
  if (alone_) return;
  steer();
  const std::size_t last = std::min<std::size_t>(neighbours_.others().size() + 1, kNoPlace - 1U);
  for (std::size_t i = 0; i <= last; ++i) send_probe(kProbeOpcode, static_cast<std::uint8_t>(i));
}

// Whoever attaches last must have read everybody's name.
void PlaceFinder::steer() {
  for (int i = 0; i < kMostSteerings; ++i) {
    const std::vector<Place> places = neighbours_.places();
    attach_steering(fd_, places);
    const std::vector<Place> now = neighbours_.places();
    if (std::is_permutation(places.begin(), places.end(), now.begin(), now.end())) return;
  }
}

void PlaceFinder::send_probe(std::uint8_t opcode, std::uint8_t index) {
  std::array<std::uint8_t, kProbeBytes> frame{};
  frame[0] = opcode;
  frame[1] = index;
  frame[kSlotOffset] = facts_.slot;
  std::memcpy(&frame[kRoundOffset], &round_, sizeof round_);
  const SocketAddress to = to_sockaddr(facts_.own.first, facts_.port, facts_.interface);
  sendto(source_, frame.data(), frame.size(), MSG_DONTWAIT, to.generic(), to.size());
}

bool PlaceFinder::is_probe(const RxTrain& train) const {
  return train.bytes >= kProbeBytes && (train.data[0] == kProbeOpcode || train.data[0] == kCheckOpcode);
}

void PlaceFinder::arrived(const RxTrain& probe) {
  if (probe.data[kSlotOffset] != facts_.slot) {
    if (std::exchange(alone_, false)) check_at_ = Time{};
    return;
  }
  std::uint32_t round = 0;
  std::memcpy(&round, probe.data + kRoundOffset, sizeof round);
  if (round != round_) return;
  asked_ = false;
  if (probe.data[0] != kProbeOpcode || !std::exchange(looking_, false)) return;
  place_ = probe.data[1];
  neighbours_.announce(place_);
  steer();
}

void PlaceFinder::handed(Time now) {
  if (now < found_at_ + (looking_ ? kAnswersWithin : kFindEvery)) return;
  found_at_ = now;
  find();
}

// Only the last socket ever moves, but whoever attaches a program may miss any of them.
void PlaceFinder::look(Time now) {
  if (alone_) {
    check_at_ = kNever;
    return;
  }
  if (check_at_ == kNever || check_at_ == Time{}) check_at_ = now + kCheckEvery;
  if (now < check_at_) return;
  check_at_ = now + kCheckEvery;
  const std::size_t others = neighbours_.others().size();
  // What is for a place that is gone comes to whomever the kernel's hash chooses, perhaps to us.
  if (looking_ || asked_ || others == 0 || place_ > others) {
    handed(now);
  } else {
    asked_ = true;
    send_probe(kCheckOpcode, place_ == 0 ? 1 : 0);  // without an entry of ours it goes to another
  }
}

}  // namespace weft::live
