#include "wan/box/long_line.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.h"
#include "wan/box/trains.h"

namespace weft::wan {
namespace {

constexpr std::uint32_t kAroundFrame = 24;  // preamble, gap, FCS
constexpr std::uint32_t kLongestTrain = 1U << 17U;
constexpr std::uint32_t kWrapped = UINT32_MAX;

}  // namespace

// Records in the ring: this, then the frame, rounded up to eight bytes. A record does not wrap: where the
// rest of the ring is too short, one that says kWrapped fills it.
struct Record {
  Time due;
  std::uint32_t bytes;
  Offload offload;
};

struct LongLine::Direction {
  Direction(const LongLineConfig& c, Port& in, Port& out, std::uint64_t stream)
      : from(in),
        to(out),
        network(
            [&] {
              impair::ImpairConfig i;
              i.loss = c.loss;
              i.delay = c.delay;
              return i;
            }(),
            Prng(c.seed).fork(stream)) {
    // What the rate brings in the delay, the queue, half of both for records of short frames, and a train.
    const auto flight =
        static_cast<std::uint64_t>(static_cast<double>(c.rate.bps) / 8e12 * static_cast<double>(c.delay.ps));
    size = (flight + c.queue.n) * 3 / 2 + 4 * kLongestTrain;
    size = (size + 7) & ~std::uint64_t{7};
    ring = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  }
  std::uint8_t* reserve(std::uint32_t bytes) {
    const std::uint64_t need = (sizeof(Record) + bytes + 7U) & ~std::uint64_t{7};
    const std::uint64_t rest = size - tail % size;
    const std::uint64_t skip = rest < need ? rest : 0;
    if (tail - head + skip + need > size) return nullptr;
    if (skip != 0) {
      if (skip >= sizeof(Record)) reinterpret_cast<Record*>(ring.get() + tail % size)->bytes = kWrapped;
      tail += skip;
    }
    std::uint8_t* at = ring.get() + tail % size;
    tail += need;
    return at;
  }
  // The oldest; nullptr: none.
  const Record* front() {
    if (head == tail) return nullptr;
    const std::uint64_t rest = size - head % size;
    if (rest < sizeof(Record) || at(head)->bytes == kWrapped) head += rest;
    return head == tail ? nullptr : at(head);
  }
  Record* at(std::uint64_t place) const { return reinterpret_cast<Record*>(ring.get() + place % size); }

  Port& from;
  Port& to;
  impair::Impairment network;
  LineCounters counters;
  Time free_at{};
  std::uint64_t size = 0;
  std::unique_ptr<std::uint8_t[]> ring;
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
};

LongLine::LongLine(const LongLineConfig& config, Port& a, Port& b)
    : config_(config),
      piece_(std::make_unique_for_overwrite<std::uint8_t[]>(kLongestTrain)),
      directions_{std::make_unique<Direction>(config, a, b, 1),
                  std::make_unique<Direction>(config, b, a, 2)} {
  CHECK(config.rate.bps != 0);
}
LongLine::~LongLine() = default;

const LineCounters& LongLine::counters(std::size_t from) const { return directions_[from]->counters; }

void LongLine::cut(bool yes) {
  cut_ = yes;
  for (const auto& d : directions_) {
    for (const Record* r = d->front(); cut_ && r != nullptr; r = d->front()) {
      ++d->counters.drop_cut;
      d->head += (sizeof(Record) + r->bytes + 7U) & ~std::uint64_t{7};
    }
  }
}

void LongLine::enqueue(Time now, Direction& d, const std::uint8_t* data, std::uint32_t bytes,
                       const Offload& offload) {
  LineCounters& n = d.counters;
  ++n.frames;
  n.bytes += bytes;
  const impair::Fate fate = d.network.decide();
  if (cut_) {
    ++n.drop_cut;
    return;
  }
  const Time start = std::max(now, d.free_at);
  const auto waiting = static_cast<std::uint64_t>(static_cast<double>((start - now).ps) *
                                                  static_cast<double>(config_.rate.bps) / 8e12);
  std::uint8_t* at = waiting + bytes > config_.queue.n ? nullptr : d.reserve(bytes);
  if (at == nullptr) {
    ++n.drop_queue;
    return;
  }
  n.longest_queue.n = std::max(n.longest_queue.n, waiting + bytes);
  const std::uint32_t pieces =
      offload.is_train() && offload.piece != 0 ? (bytes + offload.piece - 1) / offload.piece : 1;
  d.free_at = start.after(config_.rate.time_for(Bytes{bytes + std::uint64_t{pieces} * kAroundFrame}));
  Record r{d.free_at.after(fate.delay), bytes, offload};
  // What is lost takes its time on the line, too.
  if (fate.copies == 0) {
    ++n.lost;
    d.tail -= (sizeof(Record) + bytes + 7U) & ~std::uint64_t{7};
    return;
  }
  std::memcpy(at, &r, sizeof r);
  std::memcpy(at + sizeof r, data, bytes);
}

void LongLine::take(Time now, Direction& d) {
  for (const RxFrame& f : d.from.receive()) {
    if (!can_be_cut(f) || longest_of(f) > kLongestTrain) {
      enqueue(now, d, f.data, f.bytes, f.offload);
      continue;
    }
    for (std::uint32_t i = 0; i < frames_of(f); ++i)
      enqueue(now, d, piece_.get(), cut_frame(f, i, piece_.get()), {});
  }
  d.from.done();
}

bool LongLine::give(Time now, Direction& d) {
  std::array<TxFrame, Port::kBatch> batch;
  std::size_t n = 0;
  const Record* r = d.front();
  for (; n < batch.size() && r != nullptr && r->due <= now; r = d.front()) {
    batch[n++] = {reinterpret_cast<const std::uint8_t*>(r) + sizeof(Record), r->bytes, r->offload};
    const Duration late = now - r->due;
    d.counters.most_late = std::max(d.counters.most_late, late);
    d.counters.late_us += static_cast<std::uint64_t>(late.us());
    ++d.counters.carried;
    d.counters.carried_bytes += r->bytes;
    d.head += (sizeof(Record) + r->bytes + 7U) & ~std::uint64_t{7};
  }
  if (n != 0) d.to.send({batch.data(), n});
  return n != 0;
}

bool LongLine::turn(Time now) {
  bool moved = false;
  for (const auto& d : directions_) {
    const std::uint64_t before = d->counters.frames;
    take(now, *d);
    moved = give(now, *d) || d->counters.frames != before || moved;
  }
  return moved;
}

Time LongLine::next_due(Time) const {
  Time at = kNever;
  for (const auto& d : directions_) {
    if (const Record* r = d->front()) at = std::min(at, r->due);
  }
  return at;
}

}  // namespace weft::wan
