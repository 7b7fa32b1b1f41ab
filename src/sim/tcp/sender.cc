#include "sim/tcp/sender.h"

#include <algorithm>

namespace weft::sim::tcp {

SenderCounters& SenderCounters::operator+=(const SenderCounters& o) {
  segments += o.segments;
  again_recovery += o.again_recovery;
  again_rescue += o.again_rescue;
  again_timeout += o.again_timeout;
  recoveries += o.recoveries;
  timeouts += o.timeouts;
  duplicate_acks += o.duplicate_acks;
  return *this;
}

Sender::Sender(const Config& config)
    : config_(config),
      board_(config.mss, config.duplicate_acks),
      rto_(config),
      cwnd_(std::uint64_t{config.initial_window} * config.mss) {}

void Sender::write(std::uint64_t bytes, Time now) {
  // RFC 5681 §4.1: after an idle time the window no longer tells what the network can carry.
  if (board_.empty() && nxt_ != 0 && now - last_sent_ > rto_.value())
    cwnd_ = std::min(cwnd_, std::uint64_t{config_.initial_window} * config_.mss);
  written_ += bytes;
  ends_.push_back(written_);
}

std::uint64_t Sender::in_flight() const {
  const std::uint64_t arrived = std::uint64_t{arrived_} * config_.mss;
  return board_.pipe() - std::min(board_.pipe(), arrived);
}

std::uint64_t Sender::half_of_flight() const {
  return std::max(board_.outstanding() / 2, 2 * std::uint64_t{config_.mss});
}

Sender::Pick Sender::pick() {
  const std::uint64_t flight = in_flight();
  const auto fits = [&](std::uint32_t length) { return flight + length <= cwnd_; };
  if (state_ != State::kOpen) {
    if (const Scoreboard::Sent* lost = board_.next_lost(); lost != nullptr) {
      if (!retransmit_now_ && !fits(lost->length)) return {};
      return {lost->length, state_ == State::kLoss ? Cause::kTimeout : Cause::kRecovery, lost};
    }
  }
  if (nxt_ != written_) {
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(config_.mss, ends_.front() - nxt_));
    const bool welcome = config_.receive_window.n == 0 || nxt_ + length - una_ <= config_.receive_window.n;
    if (welcome) return fits(length) ? Pick{length, Cause::kNew, nullptr} : Pick{};
  }
  if (state_ != State::kRecovery || config_.flavour != Flavour::kSack || !fits(config_.mss)) return {};
  if (const Scoreboard::Sent* doubtful = board_.next_doubtful(); doubtful != nullptr)
    return {doubtful->length, Cause::kRecovery, doubtful};
  if (rescued_) return {};
  const Scoreboard::Sent* last = board_.last_open();
  return {last->length, Cause::kRescue, last};
}

Piece Sender::next(Time now) {
  const Pick p = pick();
  CHECK(p.length != 0);
  Piece piece{nxt_, p.length, p.cause};
  if (p.again != nullptr) {
    piece.seq = p.again->seq;
    retransmit_now_ = false;
    if (p.cause == Cause::kRescue) {
      rescued_ = true;
      board_.sent_again(*p.again, now);
    } else {
      board_.repaired(*p.again, now);
    }
  } else {
    board_.sent(nxt_, p.length, now);
    nxt_ += p.length;
    if (nxt_ == ends_.front()) ends_.pop_front();
  }
  last_sent_ = now;
  if (due_ == kNever) due_ = now.after(rto_.value());
  ++counters_.segments;
  counters_.again_recovery += p.cause == Cause::kRecovery ? 1U : 0U;
  counters_.again_rescue += p.cause == Cause::kRescue ? 1U : 0U;
  counters_.again_timeout += p.cause == Cause::kTimeout ? 1U : 0U;
  return piece;
}

void Sender::on_ack(const Segment& a, Time now) {
  if (a.ack > nxt_) return;  // acknowledges bytes that were never sent
  const bool sack = config_.flavour == Flavour::kSack;
  bool news = false;
  for (std::uint32_t i = 0; sack && i < a.block_count; ++i)
    news |= board_.sack(a.ack + a.blocks[i].first, a.ack + a.blocks[i].end);
  if (a.ack > una_) {
    advance(a.ack, now);
  } else if (a.ack == una_ && !board_.empty() && (news || !sack)) {
    ++counters_.duplicate_acks;
    ++duplicates_;
    if (!sack) arrived_ = std::min(arrived_ + 1, static_cast<std::uint32_t>(board_.segments() - 1));
  }
  if (state_ == State::kLoss) return;  // SACK is looked at again when the time-out is repaired
  if (!sack) {
    // Needless repairs bring duplicate acknowledgments, too. They must not start another recovery (RFC
    // 6582 §3.2).
    const bool old = guarded_ && una_ <= recover_;
    if (state_ == State::kOpen && duplicates_ >= config_.duplicate_acks && !old) enter_recovery();
    return;
  }
  board_.find_losses();
  if (state_ == State::kOpen && (duplicates_ >= config_.duplicate_acks || board_.loss_known()))
    enter_recovery();
}

void Sender::advance(std::uint64_t ack, Time now) {
  const std::uint64_t flight = nxt_ - una_;
  const std::uint64_t bytes = ack - una_;
  const Scoreboard::Acknowledged a = board_.acknowledge(ack);
  una_ = ack;
  if (a.measures) rto_.measured(now - a.sent_at);
  due_ = board_.empty() ? kNever : now.after(rto_.value());
  duplicates_ = 0;
  if (state_ == State::kRecovery) {
    if (una_ >= recover_ || config_.flavour == Flavour::kReno) return leave_recovery();
    if (config_.flavour == Flavour::kNewReno) {
      // A partial acknowledgment: one hole was filled, the bytes up to the next hole had arrived, and the
      // segment at the next hole is missing.
      arrived_ -= std::min(arrived_, a.segments - 1);
      board_.lose_first();
    }
    return;
  }
  arrived_ = 0;
  grow(bytes, flight);
  if (state_ == State::kLoss && una_ >= recover_) state_ = State::kOpen;
}

void Sender::grow(std::uint64_t acknowledged, std::uint64_t flight) {
  const std::uint64_t mss = config_.mss;
  if (cwnd_ < ssthresh_) {
    if (2 * flight >= cwnd_) cwnd_ += std::min(acknowledged, mss);
    return;
  }
  if (flight + mss <= cwnd_) return;
  avoided_ += acknowledged;
  if (avoided_ < cwnd_) return;
  avoided_ -= cwnd_;
  cwnd_ += mss;
}

void Sender::enter_recovery() {
  ssthresh_ = cwnd_ = half_of_flight();
  avoided_ = 0;
  recover_ = nxt_;
  guarded_ = true;
  state_ = State::kRecovery;
  retransmit_now_ = true;
  rescued_ = false;
  board_.lose_first();
  board_.begin_repair();
  ++counters_.recoveries;
}

void Sender::leave_recovery() {
  state_ = State::kOpen;
  cwnd_ = ssthresh_;
  arrived_ = 0;
  retransmit_now_ = false;
}

void Sender::on_timer(Time now) {
  if (now < due_ || board_.empty()) return;
  ++counters_.timeouts;
  // RFC 5681 §3.1: halved once, however often the same segment times out.
  if (state_ != State::kLoss || una_ > lost_at_) ssthresh_ = half_of_flight();
  lost_at_ = una_;
  cwnd_ = config_.mss;
  avoided_ = 0;
  recover_ = nxt_;
  guarded_ = true;
  state_ = State::kLoss;
  duplicates_ = 0;
  arrived_ = 0;
  retransmit_now_ = false;
  board_.lose_all();
  rto_.back_off();
  due_ = now.after(rto_.value());
}

void Sender::check_invariants() const {
  board_.check_invariants();
  CHECK_OP(una_, <=, nxt_);
  CHECK_OP(nxt_, <=, written_);
  CHECK_OP(board_.outstanding(), ==, nxt_ - una_);
  CHECK_OP(cwnd_, >=, std::uint64_t{config_.mss});
  CHECK((due_ == kNever) == board_.empty());
}

}  // namespace weft::sim::tcp
