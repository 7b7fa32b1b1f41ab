#include "live/wires/both.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "core/wire/ip.h"

namespace weft::live {
namespace {

// The first takes a slot at random, and the second's has to be free.
constexpr int kMostAttempts = 32;
// The least that the kernel charges a socket for a datagram beside its bytes.
constexpr std::uint64_t kDatagramCost = 768;

}  // namespace

Result<std::unique_ptr<BothWire>> BothWire::open(const Addresses& own, std::uint16_t port,
                                                 const UdpOptions& options) {
  std::unique_ptr<BothWire> both(new BothWire);
  for (int attempt = 1;; ++attempt) {
    auto first = UdpWire::open(own.first, port, options);
    if (!first) return tl::unexpected(first.error());
    UdpOptions same = options;
    same.slot = (*first)->facts().slot;
    auto second = UdpWire::open(own.second, port, same);
    if (!second) {
      // Another process's slot is one reason; with any other it does not open at all.
      const bool opens = same.slot != 0 && (attempt > 1 || UdpWire::open(own.second, port, options));
      if (!opens || attempt == kMostAttempts) return tl::unexpected(second.error());
      continue;
    }
    both->sides_[0].wire = std::move(*first);
    both->sides_[1].wire = std::move(*second);
    break;
  }
  const WireFacts& a = both->sides_[0].wire->facts();
  const WireFacts& b = both->sides_[1].wire->facts();
  WireFacts& facts = both->facts_;
  facts = a;
  facts.own = own;
  facts.mtu = std::min(a.mtu, b.mtu);
  facts.max_frames = std::min(a.max_frames, b.max_frames);
  facts.max_bytes = std::min(a.max_bytes, b.max_bytes);
  facts.receive_buffer = std::min(a.receive_buffer, b.receive_buffer);
  facts.identification_counts = (wire::is_v4_mapped(own.first) ? a : b).identification_counts;
  if (Neighbours* const n = both->sides_[0].wire->neighbours(); n != nullptr)
    n->pair_with(*both->sides_[1].wire->neighbours());
  both->second_ = epoll_create1(EPOLL_CLOEXEC);
  if (both->second_ < 0) return fail_system("cannot open an epoll", errno);
  const UdpWire& other = *both->sides_[1].wire;
  if (!both->watch(other.descriptor()) || (other.mailbox() >= 0 && !both->watch(other.mailbox())))
    return fail_system("cannot watch a socket", errno);
  return both;
}

BothWire::~BothWire() {
  if (second_ >= 0) close(second_);
}

bool BothWire::watch(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(second_, EPOLL_CTL_ADD, fd, &event) == 0;
}

std::span<const RxTrain> BothWire::read(Side& side, Time now) {
  const std::span<const RxTrain> trains = side.wire->receive(now);
  if (trains.empty()) side.emptied = true;
  for (const RxTrain& train : trains) side.read += train.bytes + kDatagramCost;
  return trains;
}

std::span<const RxTrain> BothWire::receive(Time now) {
  turn_ ^= 1U;
  if (const auto trains = read(sides_[turn_], now); !trains.empty()) return trains;
  return read(sides_[turn_ ^ 1U], now);
}

SendStatus BothWire::send(const TxTrain& train) {
  UdpWire& wire = *towards(train.destination).wire;
  const SendStatus status = wire.send(train);
  if (status != SendStatus::kUncut) return status;
  if (!wire::is_v4_mapped(train.destination)) return wire.send(train);
  facts_.identification_counts = wire.facts().identification_counts;
  return status;
}

void BothWire::mark() {
  for (Side& side : sides_) {
    side.emptied = false;
    side.read = 0;
  }
}

bool BothWire::passed() const {
  return std::all_of(sides_.begin(), sides_.end(), [](const Side& side) {
    return side.emptied || side.read >= side.wire->facts().receive_buffer;
  });
}

void BothWire::show_headers() {
  for (Side& side : sides_) side.wire->show_headers();
}

Outcome<void> BothWire::join(const wire::Address& group) {
  UdpWire& wire = *towards(group).wire;
  const auto joined = wire.join(group);
  if (!joined || &wire != sides_[1].wire.get() || watches_groups_) return joined;
  if (!watch(wire.groups())) {
    wire.leave(group);
    return fail(Errc::kNoMemory);
  }
  watches_groups_ = true;
  return joined;
}

void BothWire::leave(const wire::Address& group) { towards(group).wire->leave(group); }

void BothWire::abandon(int nowhere) {
  for (Side& side : sides_) side.wire->abandon(nowhere);
  dup3(nowhere, second_, O_CLOEXEC);
}

Time BothWire::next_due() const { return std::min(sides_[0].wire->next_due(), sides_[1].wire->next_due()); }

// Each is the sum of both.
void BothWire::visit_counters(const SeeCounter& see) const {
  std::map<std::string, std::uint64_t> first;
  sides_[0].wire->visit_counters([&](const char* name, const char*, std::uint64_t v) { first[name] = v; });
  sides_[1].wire->visit_counters(
      [&](const char* name, const char* text, std::uint64_t v) { see(name, text, v + first[name]); });
}

}  // namespace weft::live
