#include "live/wires/line_out.h"

#include <algorithm>
#include <cstring>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/ip.h"
#include "live/wires/steering.h"

namespace weft::live {

LineOut::LineOut(const LineConfig& config, Wire& to, FrameLog* log)
    : config_(config),
      to_(to),
      log_(log),
      impairment_(config.impairments, Prng(config.seed)),
      limit_(config.rate, config.rate.time_for(config.queue)),
      buffer_(new std::uint8_t[to.facts().max_bytes]) {
  in_train_.resize(kMostTrainFrames);
}

void LineOut::take(const TxTrain& train) {
  now_ = train.now;
  const bool counts = to_.facts().identification_counts;
  std::uint16_t index = 0;
  for (std::size_t at = 0; at < train.bytes.size(); at += train.frame_size, ++index) {
    const auto bytes =
        train.bytes.subspan(at, std::min<std::size_t>(train.frame_size, train.bytes.size() - at));
    Leaving what{
        .destination = train.destination, .ip = train.ip, .sealed = counts ? index : std::uint16_t{0}};
    ++counters_.frames;
    const Time departs = limit_.depart(train.now, {bytes.size() + around(train.destination)});
    if (departs == kNever) {
      ++counters_.overflow;
      tell(bytes, what, train.now, "dropped: the queue before --rate was full");
      continue;
    }
    const impair::Fate v = impairment_.decide();
    if (v.copies == 0) {
      ++counters_.dropped;
      tell(bytes, what, train.now, "dropped by --loss out");
      continue;
    }
    if (v.copies == 2) {
      ++counters_.duplicated;
      what.again = true;
      hold(departs.after(v.duplicate_delay), bytes, what, train.now);
      what.again = false;
    }
    if (v.corrupt) ++counters_.corrupted;
    what.corrupt = v.corrupt;
    what.draw = v.corrupt_draw;
    hold(departs.after(v.delay), bytes, what, train.now);
  }
}

void LineOut::hold(Time due, std::span<const std::uint8_t> bytes, const Leaving& what, Time now) {
  if (held_.hold(due, bytes, what)) return;
  ++counters_.refused;
  tell(bytes, what, now, "dropped: too many packets waited");
}

void LineOut::tell(std::span<const std::uint8_t> bytes, const Leaving& what, Time now,
                   std::string_view fate) {
  if (log_ == nullptr) return;
  log_->sent({.bytes = bytes,
              .frame_size = static_cast<std::uint32_t>(bytes.size()),
              .destination = what.destination,
              .ip = what.ip,
              .now = now},
             what.sealed, now, fate);
}

// A damaged frame travels alone: what steers a train is its first frame.
bool LineOut::fits(const Held& next) const {
  if (frames_ == 0) return true;
  const WireFacts& facts = to_.facts();
  const Leaving& first = in_train_[0];
  return last_size_ == frame_size_ && next.bytes <= frame_size_ &&
         frames_ < std::min(facts.max_frames, kMostTrainFrames) && bytes_ + next.bytes <= facts.max_bytes &&
         next.what.destination == first.destination && next.what.ip == first.ip && !first.corrupt &&
         !next.what.corrupt;
}

std::span<std::uint8_t> LineOut::frame(std::uint32_t index) {
  return {buffer_.get() + std::size_t{index} * frame_size_, index + 1 == frames_ ? last_size_ : frame_size_};
}

// Computes the ICRC anew if it was computed for another identification.
void LineOut::seal(std::uint32_t index, std::uint16_t identification) {
  Leaving& what = in_train_[index];
  if (!config_.icrc || what.sealed == identification) return;
  what.sealed = identification;
  const std::span<std::uint8_t> bytes = frame(index);
  const std::size_t covered = bytes.size() - wire::kIcrcBytes;
  wire::Icrc icrc = seeds_.get({.source = to_.facts().own.towards(what.destination),
                                .destination = what.destination,
                                .source_port = to_.facts().port,
                                .udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + bytes.size()),
                                .identification = identification});
  icrc.packet(bytes.first(covered));
  wire::store_le32(&bytes[covered], icrc.value());
}

void LineOut::append() {
  const Held h = held_.take();
  std::memcpy(buffer_.get() + bytes_, held_.bytes_of(h), h.bytes);
  held_.give_back(h.slot);
  if (frames_ == 0) frame_size_ = h.bytes;
  in_train_[frames_] = h.what;
  last_size_ = h.bytes;
  bytes_ += h.bytes;
  ++frames_;
  const std::uint32_t index = frames_ - 1;
  seal(index, to_.facts().identification_counts ? static_cast<std::uint16_t>(index) : std::uint16_t{0});
  if (h.what.corrupt) {
    const std::uint32_t bit = h.what.draw % (8U * h.bytes);
    std::uint8_t& byte = frame(index)[bit / 8U];
    byte = static_cast<std::uint8_t>(byte ^ (1U << (bit % 8U)));
  }
}

// False: the wire is full, and the train stays.
bool LineOut::send(Time now) {
  if (frames_ == 0) return true;
  const TxTrain train{{buffer_.get(), bytes_}, frame_size_, in_train_[0].destination, in_train_[0].ip, now};
  SendStatus status = to_.send(train);
  if (status == SendStatus::kUncut) {
    for (std::uint32_t i = 0; i < frames_; ++i) seal(i, 0);
    status = to_.send(train);
  }
  if (status == SendStatus::kFull) return false;
  const bool sent = status == SendStatus::kSent;
  if (!sent) counters_.refused += frames_;
  for (std::uint32_t i = 0; i < frames_ && log_ != nullptr; ++i) {
    const Leaving& what = in_train_[i];
    tell(frame(i), what, now,
         !sent          ? "dropped: the network refused it"
         : what.corrupt ? "one bit flipped by --corrupt out"
         : what.again   ? "second copy, by --duplicate out"
                        : "");
  }
  frames_ = bytes_ = frame_size_ = 0;
  return true;
}

void LineOut::leave(Time until, Time now) {
  const auto same_process = [this](const Held& next) {
    return frames_ == 0 || next.bytes <= kSlotOffset ||
           held_.bytes_of(next)[kSlotOffset] == buffer_[kSlotOffset];
  };
  while (!held_.empty() && held_.next_due() <= until) {
    const Held& next = held_.first();
    if (!(fits(next) && same_process(next)) && !send(now)) return;
    append();
  }
  send(now);
}

void LineOut::release(Time now) {
  now_ = now;
  leave(now, now);
}

void LineOut::release_all() { leave(kNever, now_); }

void LineOut::forget_all() {
  held_.forget_all();
  frames_ = bytes_ = frame_size_ = 0;
}

void LineOut::visit_counters(const Wire::SeeCounter& see) const {
#define WEFT_X(name, text) see("line_" #name, text, counters_.name);
  WEFT_LINE_COUNTERS(WEFT_X)
#undef WEFT_X
}

}  // namespace weft::live
