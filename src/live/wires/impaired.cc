#include "live/wires/impaired.h"

#include <algorithm>

namespace weft::live {
namespace {

constexpr std::size_t kMostReleased = 512;  // frames let go by one receive()
constexpr std::uint32_t kMostReads = 16;    // of the inner wire, by one receive()

// What several processes handed over lies back to back as well, whoever sent it.
bool same_but_for_bytes(const RxTrain& a, const RxTrain& b) {
  return a.source == b.source && a.source_port == b.source_port && a.tos == b.tos && a.ttl == b.ttl &&
         a.stray == b.stray && a.handed == b.handed && a.group == b.group && a.header_seen == b.header_seen &&
         a.dont_fragment == b.dont_fragment && a.first == b.first;
}

// What is done to a frame, for whoever reads a trace. One word for several: the one that matters most.
std::string_view word_for(const impair::Fate& v) {
  if (v.copies == 0) return "dropped by --loss";
  if (v.corrupt) return "one bit flipped by --corrupt";
  if (v.copies == 2) return "delivered twice by --duplicate";
  if (v.mark) return "marked by --mark";
  return v.delay.ps != 0 ? "held back" : "";
}

}  // namespace

ImpairedWire::ImpairedWire(std::unique_ptr<Wire> inner, const impair::ImpairConfig& config,
                           std::uint64_t seed, const LineConfig& line, std::unique_ptr<FrameLog> log)
    : WireAround(std::move(inner)),
      log_(std::move(log)),
      impairment_(config, Prng(seed)),
      impairs_(!config.clean() || config.delay.ps != 0),
      line_(line.clean() ? nullptr : std::make_unique<LineOut>(line, *inner_, log_.get())) {
  lent_.reserve(kMostReleased);
  out_.reserve(kSlots);
}

ImpairedWire::~ImpairedWire() {
  if (line_ != nullptr) line_->release_all();
}

// Joins the frame to the train before it when it follows in memory.
void ImpairedWire::pass(const RxTrain& frame) {
  if (!out_.empty()) {
    RxTrain& last = out_.back();
    if (last.data + last.bytes == frame.data && last.bytes % last.frame_size == 0 &&
        frame.bytes <= last.frame_size && same_but_for_bytes(frame, last) &&
        frame.identification ==
            static_cast<std::uint16_t>(last.identification +
                                       (frame.header_seen ? last.bytes / last.frame_size : 0))) {
      last.bytes += frame.bytes;
      return;
    }
  }
  out_.push_back(frame);
}

void ImpairedWire::visit_counters(const SeeCounter& see) const {
  if (impairs_) {
#define WEFT_X(name, text) see("impaired_" #name, text, counters_.name);
    WEFT_IMPAIRED_COUNTERS(WEFT_X)
#undef WEFT_X
  }
  if (line_ != nullptr) line_->visit_counters(see);
  if (log_ != nullptr) log_->visit_counters(see);
  inner_->visit_counters(see);
}

void ImpairedWire::hold(const RxTrain& frame, Time due) {
  ++(held_.hold(due, {frame.data, frame.bytes}, frame) ? counters_.held : counters_.overflow);
}

void ImpairedWire::release(Time now) {
  while (!held_.empty() && held_.next_due() <= now && lent_.size() < kMostReleased) {
    const auto h = held_.take();
    lent_.push_back(h.slot);
    out_.push_back(h.what);
    out_.back().data = held_.bytes_of(h);
  }
}

void ImpairedWire::flip(const RxTrain& frame, std::uint32_t draw) {
  const std::uint32_t bit = draw % (8U * frame.bytes);
  frame.data[bit / 8U] = static_cast<std::uint8_t>(frame.data[bit / 8U] ^ (1U << (bit % 8U)));
  ++counters_.corrupted;
}

void ImpairedWire::impair(const RxTrain& train, Time now) {
  RxTrain frame = train;
  for (std::uint32_t at = 0; at < train.bytes; at += frame.bytes) {
    frame.data = train.data + at;
    frame.bytes = frame.frame_size = std::min(train.frame_size, train.bytes - at);
    if (train.header_seen)
      frame.identification = static_cast<std::uint16_t>(train.identification + at / train.frame_size);
    ++counters_.frames;
    const impair::Fate v = impairment_.decide();
    if (log_ != nullptr) log_->received(frame, now, word_for(v));
    if (v.copies == 0) {
      ++counters_.dropped;
      continue;
    }
    // The second copy first: it is the one that stays whole.
    if (v.copies == 2) {
      ++counters_.duplicated;
      hold(frame, now.after(v.duplicate_delay));
    }
    if (v.corrupt) flip(frame, v.corrupt_draw);
    if (v.mark) ++counters_.marked;
    frame.tos = v.mark ? static_cast<std::uint8_t>(train.tos | wire::kEcnCe) : train.tos;
    if (v.delay.ps == 0) {
      pass(frame);
    } else {
      hold(frame, now.after(v.delay));
    }
  }
}

// The frames of a train that has left.
void ImpairedWire::log(const TxTrain& train) {
  TxTrain frame = train;
  std::uint16_t index = 0;
  for (std::size_t at = 0; at < train.bytes.size(); at += train.frame_size, ++index) {
    frame.bytes = train.bytes.subspan(at, std::min<std::size_t>(train.frame_size, train.bytes.size() - at));
    frame.frame_size = static_cast<std::uint32_t>(frame.bytes.size());
    log_->sent(frame, facts().identification_counts ? index : std::uint16_t{0}, train.now, "");
  }
}

SendStatus ImpairedWire::send(const TxTrain& train) {
  if (line_ != nullptr) {
    line_->take(train);
    line_->release(train.now);
    return SendStatus::kSent;
  }
  const SendStatus status = inner_->send(train);
  if (log_ != nullptr && status == SendStatus::kSent) log(train);
  return status;
}

void ImpairedWire::abandon(int nowhere) {
  if (line_ != nullptr) line_->forget_all();
  inner_->abandon(nowhere);
  if (log_ != nullptr) log_->abandon(nowhere);
}

void ImpairedWire::let_go() {
  if (line_ != nullptr) line_->release_all();
  inner_->let_go();
}

std::span<const RxTrain> ImpairedWire::receive(Time now) {
  if (line_ != nullptr) line_->release(now);
  for (const std::uint32_t slot : lent_) held_.give_back(slot);
  lent_.clear();
  out_.clear();
  // A batch that was dropped or held whole must not look like an empty wire: read on, within a bound.
  for (std::uint32_t reads = 0; out_.empty() && reads < kMostReads; ++reads) {
    const std::span<const RxTrain> trains = inner_->receive(now);
    for (const RxTrain& train : trains) impair(train, now);
    if (trains.empty()) break;
  }
  release(now);
  return out_;
}

}  // namespace weft::live
