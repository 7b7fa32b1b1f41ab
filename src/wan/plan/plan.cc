#include "wan/plan/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "account/network.h"
#include "wan/plan/frame.h"

namespace weft::wan {
namespace {

constexpr std::uint64_t kMostMessage = 1ULL << 31U;
constexpr double kWholeStore = 2;  // in round trips of line rate: one on its way, one that waits for a repair

double seconds_of(Duration d) { return static_cast<double>(d.ps) * 1e-12; }

// How a message of this size moves, whatever runs it.
struct Motion {
  double line = 0;  // seconds of the line
  double each = 0;  // seconds between messages when nothing but line and packet rate binds
  double packets = 0;
};

Motion motion(const Question& q, std::uint64_t message) {
  Motion m;
  m.line = static_cast<double>(line_bytes(message, q.mtu)) * 8 / static_cast<double>(q.rate.bps);
  m.packets = static_cast<double>(packets_of(message, q.mtu));
  m.each = m.line;
  if (q.packet_rate != 0) m.each = std::max(m.each, m.packets / static_cast<double>(q.packet_rate));
  return m;
}

double whole_trip(const Question& q) { return seconds_of(propagation(q.distance) * 2 + q.extra); }

// Requests of each queue pair that keep it busy for a round trip.
std::uint64_t depth_for(const Question& q, const Motion& m, double trip) {
  const double n = std::ceil((trip + m.line) / m.each / q.queue_pairs - 1e-9);
  return static_cast<std::uint64_t>(std::max(n, 1.0));
}

// The share of time that selective repair leaves for new packets, if it may have `trips` round trips of
// packets on their way: with two or more of them it never waits, with one it waits for each repair.
double selective_share(const Question& q, double trips, double rounds_needed) {
  const double waits = std::clamp(kWholeStore - trips, 0.0, 1.0);
  return (1 - q.loss) / (1 + (rounds_needed - 1) * waits);
}

struct Bound {
  double messages;  // a second
  Limit limit;
};

void at_most(Bound& b, double messages, Limit limit) {
  if (messages < b.messages) b = {messages, limit};
}

Reach reach(const Question& q, Way way, std::uint64_t depth, bool nic_binds) {
  const Motion m = motion(q, q.message);
  const double trip = whole_trip(q);
  const bool boxes = way == Way::kBoxes || way == Way::kBoxesParity;
  const double overhead = way == Way::kBoxesParity ? q.parity.overhead() : 1;
  const double waits = boxes ? seconds_of(q.local) : trip;
  const double posted = static_cast<double>(depth) * q.queue_pairs;

  Bound b{1 / (m.line * overhead), Limit::kLine};
  if (q.packet_rate != 0) at_most(b, static_cast<double>(q.packet_rate) / m.packets, Limit::kPacketRate);
  at_most(b, posted / (waits + m.line), nic_binds ? Limit::kNicDepth : Limit::kTxDepth);
  at_most(b, kMostUnacked / m.packets * q.queue_pairs / (trip + m.line), Limit::kNumbers);
  const double frame = static_cast<double>(line_bytes(q.message, q.mtu));
  if (boxes && q.store.n != 0)
    at_most(b, static_cast<double>(q.store.n) / frame / (trip + m.line), Limit::kStore);

  Reach r;
  r.way = way;
  r.depth = depth;
  r.limit = b.limit;
  const double in_flight = std::max(1.0, b.messages * (trip + m.line) * m.packets);
  switch (way) {
    case Way::kAtHand:
    case Way::kDeep:
      r.loss_leaves = go_back_n_share(in_flight, q.loss);
      break;
    case Way::kSelective:
      r.loss_leaves = selective_share(q, posted * m.packets / in_flight, rounds(in_flight, q.loss));
      break;
    case Way::kBoxes:
    case Way::kBoxesParity: {
      const double holds =
          q.store.n == 0 ? kWholeStore : static_cast<double>(q.store.n) / frame * m.packets / in_flight;
      const double needed =
          way == Way::kBoxes ? rounds(in_flight, q.loss) : rounds(in_flight, q.loss, q.parity);
      r.loss_leaves = selective_share(q, holds, needed);
      break;
    }
  }
  r.goodput_bps = b.messages * static_cast<double>(q.message) * 8 * r.loss_leaves;
  r.nic_bytes = depth * q.queue_pairs * kWqeBytes;
  r.buffer_bytes = depth * q.queue_pairs * q.message;
  // A box keeps what its partner, or its endpoint, has not confirmed; with losses, what waits behind them
  // too.
  if (boxes) {
    const double trips = q.loss > 0 ? kWholeStore : 1;
    const auto needs = static_cast<std::uint64_t>(b.messages * (trip + m.line) * frame * trips);
    r.box_bytes = 2 * (q.store.n != 0 ? q.store.n : needs);
  }
  return r;
}

std::uint64_t message_that_fills(const Question& q, std::uint64_t depth) {
  Question other = q;
  const auto fills = [&](std::uint64_t packets) {
    other.message = packets * q.mtu;
    return depth_for(other, motion(other, other.message), whole_trip(q)) <= depth;
  };
  std::uint64_t low = 0;  // does not fill
  std::uint64_t high = kMostMessage / q.mtu;
  if (!fills(high)) return 0;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (fills(middle) ? high : low) = middle;
  }
  return std::max(high * q.mtu, q.message);
}

DeliveryTime delivery(const Question& q, const Motion& m, double overhead, double mean, double p99) {
  const double first = m.each * overhead + whole_trip(q) / 2;
  return {(first + (mean - 1) * whole_trip(q)) * 1e6, (first + (p99 - 1) * whole_trip(q)) * 1e6};
}

Result<void> within(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return {};
  return fail(std::string(name) + ": " + std::to_string(value) + " is not from " + std::to_string(low) +
              " to " + std::to_string(high));
}

}  // namespace

const char* way_name(Way w) {
  constexpr std::array<const char*, kWays> names = {"at hand", "deep", "deep, selective", "boxes",
                                                    "boxes, parity"};
  return names[static_cast<std::size_t>(w)];
}

const char* limit_name(Limit l) {
  constexpr std::array<const char*, 6> names = {"the line",      "--tx-depth",     "--nic-depth",
                                                "--packet-rate", "packet numbers", "--store"};
  return names[static_cast<std::size_t>(l)];
}

Result<void> Question::validate() const {
  const std::array<Result<void>, 8> all = {within("--rate", rate.bps, 1'000'000, 10'000'000'000'000),
                                           within("--message", message, 1, kMostMessage),
                                           within("--queue-pairs", queue_pairs, 1, 1U << 20U),
                                           within("--tx-depth", tx_depth, 1, 1U << 20U),
                                           within("--nic-depth", nic_depth, 1, 1U << 20U),
                                           within("--packet-rate", packet_rate, 0, 100'000'000'000),
                                           within("--parity's data packets", parity.data, 1, 128),
                                           within("--parity's repair packets", parity.repair, 1, 64)};
  for (const Result<void>& each : all) {
    if (!each) return each;
  }
  if (mtu != 256 && mtu != 512 && mtu != 1024 && mtu != 2048 && mtu != 4096)
    return fail("--mtu: " + std::to_string(mtu) + " is not one of 256, 512, 1024, 2048, 4096");
  if (!(loss >= 0 && loss < 1)) return fail("--loss: a probability from 0 to below 1 is needed");
  return {};
}

Plan plan(const Question& q) {
  Plan p;
  p.round_trip = propagation(q.distance) * 2;
  p.bdp = account::bytes_in_flight(q.rate, p.round_trip + q.extra);
  p.packets = packets_of(q.message, q.mtu);
  p.line_bytes = line_bytes(q.message, q.mtu);
  p.best_bps =
      static_cast<double>(q.rate.bps) * static_cast<double>(q.message) / static_cast<double>(p.line_bytes);
  p.paper_depth = account::packets_in(p.bdp, q.mtu, frame_bytes(0));
  p.paper_depth_reth = account::packets_in(p.bdp, q.mtu, frame_bytes(0) + kReth);
  const Motion m = motion(q, q.message);
  p.full_depth = depth_for(q, m, whole_trip(q));
  p.depth_at_hand = std::min(q.tx_depth, q.nic_depth);
  const bool nic_binds = q.nic_depth < q.tx_depth;
  const std::uint64_t deep = std::min<std::uint64_t>(p.full_depth, q.nic_depth);
  p.ways = {reach(q, Way::kAtHand, p.depth_at_hand, nic_binds), reach(q, Way::kDeep, deep, true),
            reach(q, Way::kSelective, deep, true), reach(q, Way::kBoxes, p.depth_at_hand, nic_binds),
            reach(q, Way::kBoxesParity, p.depth_at_hand, nic_binds)};
  p.queue_pairs = (p.full_depth * q.queue_pairs + p.depth_at_hand - 1) / p.depth_at_hand;
  p.message = message_that_fills(q, p.depth_at_hand);
  p.repeat = delivery(q, m, 1, rounds(m.packets, q.loss), rounds_within(m.packets, q.loss, 0.99));
  p.parity = delivery(q, m, q.parity.overhead(), rounds(m.packets, q.loss, q.parity),
                      rounds_within(m.packets, q.loss, q.parity, 0.99));
  return p;
}

}  // namespace weft::wan
