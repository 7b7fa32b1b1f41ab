#include "channel_c/publisher.h"

#include <algorithm>
#include <chrono>

#include "channel/params.h"
#include "channel/report.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

using page::Column;
using page::Sort;

constexpr Duration kEvery = milliseconds(1);
constexpr std::uint32_t kRowsAtOnce = 64;
enum TableNumber : std::uint32_t { kTotals, kChannels, kSlow, kParameters };

constexpr Column kTotalColumns[] = {
    {"channels", Sort::kCount},       {"of", Sort::kCount},
    {"polls", Sort::kCount},          {"completions", Sort::kCount},
    {"longest_gap", Sort::kNanos},    {"late_polls", Sort::kCount},
    {"violations", Sort::kCount},     {"refused", Sort::kCount},
    {"late_responses", Sort::kCount}, {"starved_fetches", Sort::kCount},
    {"fetches", Sort::kCount},        {"qps_kept", Sort::kCount},
    {"qps_made", Sort::kCount},       {"qps_reused", Sort::kCount},
    {"send_memory", Sort::kBytes},    {"send_memory_used", Sort::kBytes},
    {"recv_memory", Sort::kBytes},    {"recv_memory_used", Sort::kBytes},
    {"dropped", Sort::kCount},        {"failed", Sort::kCount},
    {"traced", Sort::kCount},         {"slow_lines", Sort::kCount},
    {"adm_version", Sort::kCount},    {"adm_refused", Sort::kCount},
    {"adm_file", Sort::kCount},       {"busy_looks", Sort::kCount},
    {"sleeps", Sort::kCount},         {"woken_by_events", Sort::kCount},
    {"plain_regions", Sort::kCount},
};
constexpr Column kChannelColumns[] = {
    {"state", Sort::kWord},       {"peer", Sort::kAddress},     {"service", Sort::kCount},
    {"asked", Sort::kCount},      {"qpn", Sort::kCount},        {"depth", Sort::kCount},
    {"in_flight", Sort::kCount},  {"queued", Sort::kCount},     {"held", Sort::kCount},
    {"fetching", Sort::kCount},   {"calls", Sort::kCount},      {"sent", Sort::kCount},
    {"sent_bytes", Sort::kBytes}, {"received", Sort::kCount},   {"received_bytes", Sort::kBytes},
    {"waited", Sort::kCount},     {"reconnects", Sort::kCount}, {"acks", Sort::kCount},
    {"nops", Sort::kCount},       {"probes", Sort::kCount},     {"rtt", Sort::kNanos},
    {"rtt_last", Sort::kNanos},   {"rtt_least", Sort::kNanos},  {"rtt_count", Sort::kCount},
    {"way", Sort::kNanos},        {"way_last", Sort::kNanos},   {"way_longest", Sort::kNanos},
    {"way_count", Sort::kCount},  {"carrier", Sort::kWord},     {"moves", Sort::kCount},
    {"opening", Sort::kCount},
};
constexpr Column kSlowColumns[] = {
    {"number", Sort::kCount}, {"at", Sort::kMoment},     {"place", Sort::kWord},
    {"took", Sort::kNanos},   {"omitted", Sort::kCount}, {"longest", Sort::kNanos},
    {"peer", Sort::kAddress}, {"service", Sort::kCount}, {"trace", Sort::kCount},
    {"queued", Sort::kNanos}, {"network", Sort::kNanos}, {"there", Sort::kNanos},
};

// At most 8 letters.
const char* word_of(Channel::State state) {
  switch (state) {
    case Channel::State::kAsked:
      return "ASKED";
    case Channel::State::kAnswered:
      return "ANSWERED";
    case Channel::State::kConnecting:
      return "CONNECT";
    case Channel::State::kOpen:
      return "OPEN";
    case Channel::State::kClosing:
      return "CLOSING";
    case Channel::State::kBroken:
      return "BROKEN";
    default:
      return "CLOSED";
  }
}
std::uint64_t number_of(const wire::Address& a) {
  std::uint64_t n = 0;
  for (std::size_t i = 12; i < 16; ++i) n = n << 8U | a.bytes[i];
  return n;
}
std::uint64_t ns(Duration d) { return d.ps <= 0 ? 0 : static_cast<std::uint64_t>(d.ns()); }

}  // namespace

Publisher::Publisher(const Context& context, const Waiting& waiting)
    : context_(context),
      waiting_(waiting),
      rows_(std::min(context.config().channels, kMostChannels)),
      shown_(rows_) {
  std::vector<Column> parameters;
  for (const Param& p : params()) parameters.push_back({p.name, Sort::kCount});
  const page::Table tables[] = {{"context", kTotalColumns, 1},
                                {"channel", kChannelColumns, rows_},
                                {"slow", kSlowColumns, SlowLog::kEntries},
                                {"parameter", parameters, 1}};
  page_ = page::Page::open("channels", "", tables);
  rows_behind_ = rows_;
}

void Publisher::publish(Time now) {
  next_ = now.after(kEvery);
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  page_->updated(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()));
  if (happened() != seen_) rows_behind_ = rows_;
  seen_ = happened();
  totals();
  slow_rows();
  parameter_row();
  for (std::uint32_t i = 0; i < kRowsAtOnce && rows_behind_ != 0; ++i, --rows_behind_) {
    channel_row(cursor_);
    cursor_ = cursor_ + 1 == rows_ ? 0 : cursor_ + 1;
  }
}

void Publisher::totals() {
  const ContextCounts& n = context_.counts();
  const MemoryCounts& lent = context_.lent_memory();
  const MemoryCounts& own = context_.own_memory();
  const std::uint64_t cells[] = {context_.open_channels(),
                                 context_.config().channels,
                                 n.polls,
                                 n.completions,
                                 n.longest_gap_ns,
                                 n.late_polls,
                                 n.violations,
                                 n.refused,
                                 n.late,
                                 n.starved,
                                 context_.outstanding(),
                                 context_.cached_qps(),
                                 n.fresh_qps,
                                 n.reused_qps,
                                 lent.registered,
                                 lent.in_use,
                                 own.registered,
                                 own.in_use,
                                 n.dropped,
                                 n.failed,
                                 n.traced,
                                 context_.slow_log().written(),
                                 adm_version_,
                                 adm_refused_,
                                 adm_file_,
                                 waiting_.counts().busy,
                                 waiting_.counts().sleeps,
                                 waiting_.counts().woken,
                                 lent.plain + own.plain};
  static_assert(std::size(cells) == std::size(kTotalColumns));
  page_->put(kTotals, 0, cells);
}

void Publisher::channel_row(std::uint32_t index) {
  const Channel& c = context_.channel_at(index);
  if (c.over()) {
    if (shown_[index].opening != 0) page_->clear(kChannels, index);
    shown_[index] = {};
    return;
  }
  // Another channel may have taken the row's place since it was written.
  if (shown_[index].opening == 0 || shown_[index].session != c.session)
    shown_[index] = {c.session, ++openings_};
  const ChannelStat s = stat_of(c);
  const std::uint64_t cells[] = {page::word(word_of(s.state)),
                                 number_of(s.peer),
                                 s.service,
                                 s.asked ? 1U : 0U,
                                 c.qpn.v,
                                 s.depth,
                                 s.in_flight,
                                 s.queued,
                                 s.held,
                                 s.fetching,
                                 s.calls,
                                 s.counts.sent,
                                 s.counts.sent_bytes,
                                 s.counts.received,
                                 s.counts.received_bytes,
                                 s.counts.waited,
                                 s.counts.reconnects,
                                 s.counts.acks,
                                 s.counts.nops,
                                 s.counts.probes,
                                 ns(s.round_trips.smoothed),
                                 ns(s.round_trips.last),
                                 ns(s.round_trips.least),
                                 s.round_trips.count,
                                 c.ways.smoothed_ns,
                                 c.ways.last_ns,
                                 c.ways.longest_ns,
                                 c.ways.count,
                                 page::word(name_of(s.carrier)),
                                 s.counts.moves,
                                 shown_[index].opening};
  static_assert(std::size(cells) == std::size(kChannelColumns));
  page_->put(kChannels, index, cells);
}

void Publisher::parameter_row() {
  if (settings_seen_ == context_.settings_changed()) return;
  settings_seen_ = context_.settings_changed();
  std::array<std::uint64_t, page::kMostColumns> cells{};
  const auto all = params();
  CHECK(all.size() <= cells.size());
  for (std::size_t i = 0; i < all.size(); ++i) cells[i] = all[i].get(context_.config());
  page_->put(kParameters, 0, {cells.data(), all.size()});
}

void Publisher::slow_rows() {
  const SlowLog& log = context_.slow_log();
  for (; slow_seen_ != log.written(); ++slow_seen_) {
    const SlowEntry* const e = log.at(slow_seen_);
    if (e == nullptr) continue;
    const std::uint64_t cells[] = {slow_seen_ + 1,     e->at_ns,   page::word(word_of(e->place)),
                                   e->took_ns,         e->omitted, e->longest_ns,
                                   number_of(e->peer), e->service, e->trace,
                                   e->queued_ns,       e->ways_ns, e->there_ns};
    static_assert(std::size(cells) == std::size(kSlowColumns));
    page_->put(kSlow, static_cast<std::uint32_t>(slow_seen_ % SlowLog::kEntries), cells);
  }
}

}  // namespace weft::channel
