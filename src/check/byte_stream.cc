#include "check/byte_stream.h"

#include <algorithm>
#include <iterator>

namespace weft::check {
namespace {

using Long = unsigned long long;

}  // namespace

// --- ranges ---------------------------------------------------------------------------------------

std::uint64_t ByteRanges::add(ByteRange r) {
  if (r.first >= r.end) return 0;
  std::uint64_t fresh = r.length();
  ByteRange joined = r;
  auto at = ends_.upper_bound(r.first);
  if (at != ends_.begin() && std::prev(at)->second >= r.first) --at;
  while (at != ends_.end() && at->first <= r.end) {
    const std::uint64_t from = std::max(at->first, r.first);
    const std::uint64_t to = std::min(at->second, r.end);
    fresh -= to > from ? to - from : 0;
    joined = {std::min(joined.first, at->first), std::max(joined.end, at->second)};
    at = ends_.erase(at);
  }
  ends_[joined.first] = joined.end;
  return fresh;
}

bool ByteRanges::holds(ByteRange r) const {
  const auto at = ends_.upper_bound(r.first);
  return at != ends_.begin() && std::prev(at)->second >= r.end;
}

std::uint64_t ByteRanges::prefix() const {
  return ends_.empty() || ends_.begin()->first != 0 ? 0 : ends_.begin()->second;
}

std::uint64_t ByteRanges::above(std::uint64_t from) const {
  std::uint64_t n = 0;
  for (auto at = ends_.rbegin(); at != ends_.rend() && at->second > from; ++at)
    n += at->second - std::max(at->first, from);
  return n;
}

std::size_t ByteRanges::pieces_above(std::uint64_t from) const {
  return static_cast<std::size_t>(std::distance(ends_.upper_bound(from), ends_.end()));
}

// --- both sides -----------------------------------------------------------------------------------

ByteStreams::Stream* ByteStreams::of(std::uint32_t connection, Time now) {
  const auto at = streams_.find(connection);
  if (at != streams_.end()) return &at->second;
  report_.add(now, "tcp-unknown", "connection %u was never opened, or is closed", connection);
  return nullptr;
}

void ByteStreams::closed(std::uint32_t connection, Time now) {
  Stream* s = of(connection, now);
  if (s == nullptr) return;
  if (s->delivered != s->written || s->acknowledged != s->written)
    report_.add(now, "tcp-unfinished", "connection %u: %llu written, %llu delivered, %llu acknowledged",
                connection, Long{s->written}, Long{s->delivered}, Long{s->acknowledged});
  streams_.erase(connection);
}

void ByteStreams::finish(Time now) {
  while (!streams_.empty()) closed(streams_.begin()->first, now);
}

// --- the receiver's side --------------------------------------------------------------------------

void ByteStreams::data_arrived(std::uint32_t connection, ByteRange data) {
  const auto at = streams_.find(connection);
  if (at == streams_.end()) return;  // late
  at->second.arrived.add(data);
  at->second.latest = data;
}

void ByteStreams::delivered(std::uint32_t connection, ByteRange data, Time now) {
  Stream* s = of(connection, now);
  if (s == nullptr) return;
  if (data.first != s->delivered || data.end <= data.first)
    report_.add(now, "tcp-order", "connection %u: bytes %llu to %llu delivered when %llu was next",
                connection, Long{data.first}, Long{data.end}, Long{s->delivered});
  if (!s->arrived.holds(data))
    report_.add(now, "tcp-invented", "connection %u: bytes %llu to %llu delivered and never arrived",
                connection, Long{data.first}, Long{data.end});
  s->delivered = std::max(s->delivered, data.end);
}

void ByteStreams::ack_sent(std::uint32_t connection, std::uint64_t ack, std::span<const ByteRange> blocks,
                           Time now) {
  Stream* s = of(connection, now);
  if (s == nullptr) return;
  if (ack != s->arrived.prefix() || ack != s->delivered)
    report_.add(now, "tcp-ack", "connection %u: acknowledges %llu; arrived %llu, delivered %llu", connection,
                Long{ack}, Long{s->arrived.prefix()}, Long{s->delivered});
  for (const ByteRange& b : blocks) {
    if (b.first <= ack || b.first >= b.end || !s->arrived.holds(b))
      report_.add(now, "tcp-sack", "connection %u: reports bytes %llu to %llu, ack %llu", connection,
                  Long{b.first}, Long{b.end}, Long{ack});
  }
  const bool beyond = s->facts.sack && s->latest.first > ack;
  if (beyond && (blocks.empty() || blocks[0].first > s->latest.first || blocks[0].end < s->latest.end))
    report_.add(now, "tcp-sack-first", "connection %u: the segment at %llu is not in the first block",
                connection, Long{s->latest.first});
}

// --- the sender's side ----------------------------------------------------------------------------

// Bytes in the network, at most: sent bytes less those reported, or less one segment for each duplicate.
std::uint64_t ByteStreams::Stream::in_flight() const {
  const std::uint64_t all = sent - acknowledged;
  const std::uint64_t there = facts.sack ? reported.above(acknowledged) : duplicates * facts.mss;
  return all - std::min(all, there);
}

std::uint64_t ByteStreams::Stream::halved() const {
  return std::max<std::uint64_t>((sent - acknowledged) / 2, 2ULL * facts.mss);
}

void ByteStreams::Stream::justify() {
  justified_end = sent;
  half = std::max(half, halved());
}

// True if the first gap counts as a loss: by RFC 6675's IsLost, or by enough duplicates.
bool ByteStreams::Stream::reports_loss() const {
  return duplicates >= facts.duplicate_acks ||
         reported.above(acknowledged) > std::uint64_t{facts.duplicate_acks - 1} * facts.mss ||
         reported.pieces_above(acknowledged) >= facts.duplicate_acks;
}

void ByteStreams::ack_arrived(std::uint32_t connection, std::uint64_t ack, std::span<const ByteRange> blocks,
                              Time now) {
  const auto found = streams_.find(connection);
  if (found == streams_.end()) return;  // late
  Stream& s = found->second;
  // The retransmission timer may have expired already, with the repair still waiting to leave.
  if (s.sent > s.acknowledged && now - s.timer_from >= s.facts.rto_min) s.justify();
  std::uint64_t fresh = s.reported.add({0, ack});
  for (const ByteRange& b : blocks) fresh += s.reported.add(b);
  s.reported_since += fresh;
  if (ack > s.acknowledged) {
    s.window += std::min<std::uint64_t>(ack - s.acknowledged, s.facts.mss);
    s.acknowledged = ack;
    s.duplicates = 0;
    s.timer_from = now;
  } else if (ack == s.acknowledged && s.sent > ack) {
    ++s.duplicates;
    if (!s.facts.sack) s.reported_since += s.facts.mss;
  }
  // The sender decides on a repair now. Later news may have come by the time it leaves.
  if (!s.repairing() && s.sent > s.acknowledged && s.reports_loss()) s.justify();
}

void ByteStreams::data_sent(std::uint32_t connection, ByteRange data, Time now) {
  Stream* s = of(connection, now);
  if (s == nullptr) return;
  if (s->window == 0) s->window = std::uint64_t{s->facts.initial_window} * s->facts.mss;
  if (data.first >= data.end || data.length() > s->facts.mss || data.end > s->written)
    report_.add(now, "tcp-segment", "connection %u: bytes %llu to %llu sent of %llu, mss %u", connection,
                Long{data.first}, Long{data.end}, Long{s->written}, s->facts.mss);
  if (data.first < s->sent) return repair_sent(connection, *s, data, now);
  if (data.first != s->sent)
    report_.add(now, "tcp-hole", "connection %u: %llu sent when %llu was next", connection, Long{data.first},
                Long{s->sent});
  if (s->acknowledged == s->sent) s->timer_from = now;
  s->sent = data.end;
  const std::uint64_t allowed = s->facts.receive_window;
  if (allowed != 0 && s->sent - s->acknowledged > allowed)
    report_.add(now, "tcp-receive-window", "connection %u: %llu bytes under way, %llu wanted", connection,
                Long{s->sent - s->acknowledged}, Long{allowed});
  s->sent_since += data.length();
  if (s->repairing()) {
    // Conservation of packets during repairs: the sender may send the window with which repairs began. Beyond
    // that, each byte reported since lets one byte leave, or two in slow start.
    if (s->sent_since > s->window_then + 2 * s->reported_since + s->facts.mss)
      report_.add(now, "tcp-conservation",
                  "connection %u: %llu bytes sent since repairs began, %llu reported", connection,
                  Long{s->sent_since}, Long{s->reported_since});
  } else if (s->in_flight() > s->window) {
    report_.add(now, "tcp-window", "connection %u: %llu bytes in flight, the window is at most %llu",
                connection, Long{s->in_flight()}, Long{s->window});
  }
}

void ByteStreams::repair_sent(std::uint32_t connection, Stream& s, ByteRange data, Time now) {
  if (s.reported.holds(data))
    report_.add(now, "tcp-needless",
                "connection %u: bytes %llu to %llu sent again, and their arrival was known", connection,
                Long{data.first}, Long{data.end});
  const bool silence = now - s.timer_from >= s.facts.rto_min;
  if (!s.repairing()) {
    const bool justified = s.acknowledged < s.justified_end;
    if (!justified && !silence)
      report_.add(now, "tcp-cause",
                  "connection %u: bytes %llu to %llu sent again after %llu duplicates and %lld ps",
                  connection, Long{data.first}, Long{data.end}, Long{s.duplicates},
                  static_cast<long long>((now - s.timer_from).ps));
    s.window = justified ? s.half : s.halved();
    s.half = 0;
    s.repairs_end = justified && !silence ? s.justified_end : s.sent;
    s.window_then = s.window;
    s.sent_since = s.reported_since = 0;
  } else if (silence || s.justified_end > s.repairs_end) {
    // Another time-out, now or while its repair had to wait for the link (ack_arrived).
    s.repairs_end = silence ? s.sent : s.justified_end;
    s.window_then = s.window;
    s.sent_since = s.reported_since = 0;
  }
  if (silence) s.timer_from = now;
  // A segment that was first sent after repairs began may be sent again if bytes above it arrived (RFC 6675,
  // NextSeg 1 and 3), or if it is the last one (NextSeg 4).
  const bool gap = s.reported.above(data.end) != 0;
  const bool last = data.end == s.sent;
  if (data.first >= s.repairs_end && !(s.facts.sack && (gap || last)))
    report_.add(now, "tcp-cause", "connection %u: bytes %llu to %llu sent again, sent after repairs began",
                connection, Long{data.first}, Long{data.end});
  s.sent_since += data.length();
  if (s.sent_since > s.window_then + 2 * s.reported_since + s.facts.mss)
    report_.add(now, "tcp-conservation", "connection %u: %llu bytes sent since repairs began, %llu reported",
                connection, Long{s.sent_since}, Long{s.reported_since});
}

}  // namespace weft::check
