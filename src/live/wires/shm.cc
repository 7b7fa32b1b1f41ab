#include "live/wires/shm.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/wire/ip.h"
#include "live/wires/steering.h"

namespace weft::live {
namespace {

// While rings bring trains the socket is looked at this often, and always for a while after something came by
// it: a call that finds nothing costs more than a train in memory.
constexpr Duration kSocketEvery = microseconds(10);
constexpr Duration kLinksEvery = microseconds(50);  // who comes and goes, likewise
constexpr Duration kSocketLately = milliseconds(2);
// As long as a reader may wait for a processor on a crowded machine, for services that repair nothing lose
// what is lost here. While it lasts nothing leaves for anybody, so a question to another peer may stay
// unanswered.
constexpr Duration kPatience = milliseconds(50);
constexpr std::size_t kMostTrains = 16;
// Of one receive: room for the largest train behind any other.
constexpr std::size_t kMostBytes = 4 * ring::kLargestTrain;
// A reader that waits for the processor that we use gets it.
constexpr Duration kYieldAfter = microseconds(20);

bool is_local(const void* wire, const wire::Address& address) {
  return static_cast<const UdpWire*>(wire)->of_this_host(address);
}

}  // namespace

Result<std::unique_ptr<ShmWire>> ShmWire::open(const wire::Address& address, std::uint16_t port,
                                               const UdpOptions& options) {
  auto udp = UdpWire::open(address, port, options);
  if (!udp) return tl::unexpected(udp.error());
  std::unique_ptr<ShmWire> wire(new ShmWire(std::move(*udp)));
  wire->facts_ = wire->inner_->facts();
  if (wire->facts_.slot == 0) return wire;
  auto links = SharedLinks::open(address, port, wire->facts_.slot, is_local, wire->inner_.get());
  if (!links) return wire;  // somebody has taken the name: then everything goes by UDP
  wire->links_ = std::move(*links);
  wire->bytes_.resize(kMostBytes);
  wire->trains_.reserve(kMostTrains);
  return wire;
}

void ShmWire::abandon(int nowhere) {
  inner_->abandon(nowhere);
  if (links_ != nullptr) links_->abandon(nowhere);
}

void ShmWire::visit_counters(const SeeCounter& see) const {
  see("shared_sent", "trains that left through memory shared with another process of this host", sent_);
  see("shared_received", "trains that came that way", received_);
  see("shared_lost", "trains for a process that had no room for 50 ms", lost_);
  see("shared_broken", "processes whose shared memory made no sense, and was given up", broken_);
  inner_->visit_counters(see);
}

std::span<const RxTrain> ShmWire::receive(Time now) {
  if (links_ == nullptr) return inner_->receive(now);
  if (resting_) rouse();
  const bool due = now >= socket_at_;
  // In turns: neither way hides the other.
  if (due && std::exchange(socket_first_, !socket_first_)) {
    if (const auto trains = read_socket(now); !trains.empty()) return trains;
    return read_rings();
  }
  if (const auto trains = read_rings(); !trains.empty()) return trains;
  return due ? read_socket(now) : std::span<const RxTrain>{};
}

std::span<const RxTrain> ShmWire::read_socket(Time now) {
  if (now >= links_at_) {
    links_->look();
    send_refused();
    links_at_ = now + kLinksEvery;
  }
  const std::span<const RxTrain> trains = inner_->receive(now);
  if (!trains.empty()) socket_moved_ = now;
  const bool often = links_->in().empty() || now - socket_moved_ < kSocketLately;
  socket_at_ = often ? now : now + kSocketEvery;
  return trains;
}

// A train of each ring in turn, so that none is always last.
std::span<const RxTrain> ShmWire::read_rings() {
  trains_.clear();
  const std::span<LinkIn> links = links_->in();
  std::uint8_t* at = bytes_.data();
  const std::uint8_t* const last = bytes_.data() + bytes_.size() - ring::kLargestTrain;
  std::size_t idle = 0;
  int broken = -1;
  while (idle < links.size() && trains_.size() < kMostTrains && at <= last) {
    next_ring_ = next_ring_ + 1 < links.size() ? next_ring_ + 1 : 0;
    LinkIn& link = links[next_ring_];
    RxTrain train;
    if (!link.ring.read(at, train)) {
      ++idle;
      if (link.ring.broken()) broken = link.fd;
      continue;
    }
    idle = 0;
    train.source = link.source;
    train.source_port = facts_.port;
    train.header_seen = true;
    at += train.bytes;
    trains_.push_back(train);
  }
  received_ += trains_.size();
  if (broken >= 0) {
    ++broken_;
    links_->drop(broken);
  }
  return trains_;
}

SendStatus ShmWire::send(const TxTrain& train) {
  const std::uint8_t slot = train.bytes.size() > kSlotOffset ? train.bytes[kSlotOffset] : std::uint8_t{0};
  if (links_ != nullptr && slot != 0 && !wire::is_group(train.destination)) {
    LinkOut* const link = links_->towards(train.now, train.destination, slot);
    if (link != nullptr && link->ring.write(train)) {
      if (std::exchange(link->full, false))
        link->held_up = link->ring.half_empty() ? Duration{} : link->held_up + (train.now - link->full_since);
      ++sent_;
      if (link->ring.reader_sleeps()) links_->ring_bell(*link);
      return SendStatus::kSent;
    }
    if (link != nullptr && !link->ring.broken()) return wait_or_lose(*link, train.now);
    if (link != nullptr) {
      ++broken_;
      links_->drop(link->fd);
    }
  }
  const SendStatus status = inner_->send(train);
  facts_.identification_counts = inner_->facts().identification_counts;
  return status;
}

SendStatus ShmWire::wait_or_lose(LinkOut& link, Time now) {
  if (!link.full) link.full_since = now;
  link.full = true;
  const Duration waited = now - link.full_since;
  if (waited > kYieldAfter) sched_yield();
  if (link.held_up + waited < kPatience) return SendStatus::kFull;
  ++lost_;
  return SendStatus::kFailed;
}

// A reader that wanted no ring: what was written for it leaves as it would have without one.
void ShmWire::send_refused() {
  for (const auto& link : links_->take_refused()) {
    RingReader ring(link->ring.take_back());
    RxTrain train;
    while (ring.read(bytes_.data(), train)) {
      static_cast<void>(inner_->send({.bytes = {train.data, train.bytes},
                                      .frame_size = train.frame_size,
                                      .destination = link->to,
                                      .ip = {train.tos, train.ttl}}));
    }
  }
}

// Whoever writes from here on rings; what was written before is seen now. So while a thread sleeps, either no
// reader's ring has been written to since, or a bell waits for it.
bool ShmWire::rest() {
  if (links_ == nullptr) return true;
  resting_ = true;
  for (LinkIn& link : links_->in()) link.ring.rest();
  return std::none_of(links_->in().begin(), links_->in().end(),
                      [](const LinkIn& link) { return link.ring.waiting(); });
}

void ShmWire::mark() {
  if (links_ == nullptr) return;
  for (LinkIn& link : links_->in()) link.ring.mark();
}

bool ShmWire::passed() const {
  if (links_ == nullptr) return true;
  const auto in = links_->in();
  return std::all_of(in.begin(), in.end(), [](const LinkIn& link) { return link.ring.passed(); });
}

void ShmWire::rise() {
  if (std::exchange(roused_, false)) links_->hush();
  if (std::exchange(resting_, false)) stir();
}

// Whoever looks while another thread sleeps has to see newcomers, and must not take the bells that would wake
// the sleeper. So nobody rests any more: the sleeper is told. It may take it long to come to its rise(), for
// on a crowded machine a thread that spins gives the ownership away and has it again before anybody else.
void ShmWire::rouse() {
  resting_ = false;
  roused_ = true;
  links_->call();
  stir();
}

void ShmWire::stir() {
  for (LinkIn& link : links_->in()) link.ring.wake();
  socket_at_ = links_at_ = {};  // whatever it was that woke us
}

}  // namespace weft::live
