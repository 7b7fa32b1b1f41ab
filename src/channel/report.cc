#include "channel/report.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace weft::channel {
namespace {

std::string text(std::uint64_t n) { return std::to_string(n); }

std::string text(const wire::Address& a) {
  std::string out = text(a.bytes[12]);
  for (std::size_t i = 13; i < 16; ++i) out.append(".").append(text(a.bytes[i]));
  return out;
}

// Microseconds, one digit behind the point.
std::string text(Duration d) {
  const std::int64_t tenths = d.ns() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

void line(std::string& out, std::initializer_list<std::string_view> columns) {
  constexpr std::size_t kWidths[] = {11, 6, 22, 9, 7, 5, 6, 10, 14, 10, 14, 10, 10};
  std::size_t i = 0;
  for (const std::string_view c : columns) {
    const std::size_t width = kWidths[i];
    const std::string gap(width > c.size() ? width - c.size() : 1, ' ');
    const bool words = i++ < 3;  // to the left; numbers to the right
    out += words ? std::string(c) + gap : gap + std::string(c);
  }
  out += '\n';
}

}  // namespace

const char* name_of(Channel::State state) {
  switch (state) {
    case Channel::State::kFree:
      return "free";
    case Channel::State::kAsked:
      return "asked";
    case Channel::State::kAnswered:
      return "answered";
    case Channel::State::kConnecting:
      return "connecting";
    case Channel::State::kOpen:
      return "open";
    case Channel::State::kClosing:
      return "closing";
    case Channel::State::kBroken:
      return "broken";
    case Channel::State::kClosed:
    case Channel::State::kLeft:
      return "closed";
  }
  return "";
}

const char* name_of(Carrier carrier) { return carrier == Carrier::kTcp ? "TCP" : "RDMA"; }

ChannelStat stat_of(const Channel& c) {
  ChannelStat s;
  s.state = c.state;
  s.asked = c.asked;
  s.carrier = c.carrier;
  s.peer = c.peer;
  s.service = c.service;
  s.depth = c.tx.depth;
  s.in_flight = static_cast<std::uint32_t>(c.tx.seq - c.tx.acked());
  s.queued = c.waiting;
  s.held = c.rx.held;
  s.fetching = c.over() ? 0 : static_cast<std::uint32_t>(c.rx.wta - c.rx.handed);
  s.calls = c.calls;
  s.counts = c.counts();
  s.round_trips = c.round_trips;
  return s;
}

std::string report(const Context& context, std::string_view program) {
  const ContextCounts& n = context.counts();
  const MemoryCounts& lent = context.lent_memory();
  const MemoryCounts& own = context.own_memory();
  std::string out;
  const auto say = [&](const char* what, const std::string& number) { out.append(what).append(number); };
  say("channels ", text(context.open_channels()));
  say(" of ", text(context.config().channels));
  say(", fragments in flight ", text(context.outstanding()));
  say(", queue pairs kept ", text(context.cached_qps()));
  say(", memory in use ", text(lent.in_use + own.in_use));
  say(" of ", text(lent.registered + own.registered));
  say(" registered\nviolations ", text(n.violations));
  say(", refused ", text(n.refused));
  say(", late responses ", text(n.late));
  say(", fetches that waited for memory ", text(n.starved));
  say(", dropped on purpose ", text(n.dropped));
  say(", failed on purpose ", text(n.failed));
  say(", longest time between polls ", text(nanoseconds(static_cast<std::int64_t>(n.longest_gap_ns))));
  out.append(" us\n");
  if (const SharedQueue& shared = context.shared_receives(); shared.on()) {
    say("shared receives ", text(shared.posted()));
    say(" posted of ", text(shared.entries()));
    say(", peers may fill ", text(shared.due()));
    say(" and at most ", text(shared.counts().most_due));
    say(", used up ", text(shared.counts().used_up));
    say(" times, without memory for ", text(shared.counts().short_of));
    out.append("\n");
  }
  if (lent.plain + own.plain != 0) {
    const bool huge = context.config().memory_mode == MemoryMode::kHuge;
    out.append(huge ? "huge pages" : "contiguous pages");
    say(" were lacking for ", text(lent.plain + own.plain));
    say(" of ", text(lent.grown + own.grown));
    out.append(" regions, which have ordinary ones\n");
  }
  for (const MemoryCache* cache : {&context.lent_cache(), &context.own_cache()}) {
    if (cache->counts().overruns == 0) continue;
    const Overrun& o = cache->last_overrun();
    say("OVERRUN of ", text(cache->counts().overruns));
    say(cache == &context.own_cache() ? " received messages; the last had "
                                      : " messages to be sent; the last had ",
        text(o.length));
    say(" bytes and the user's number ", text(o.cookie));
    say(", and byte ", text(o.at));
    out.append(" was written\n");
  }
  out.append(program);
  line(out, {"state", "over", "peer", "in flight", "queued", "held", "calls", "sent", "bytes", "received",
             "bytes", "rtt us", "least us"});
  context.each_channel([&](const Channel& c) {
    const ChannelStat s = stat_of(c);
    const bool timed = s.round_trips.count != 0;
    line(out, {name_of(s.state), name_of(s.carrier), text(s.peer) + ":" + text(s.service),
               text(s.in_flight) + "/" + text(s.depth), text(s.queued), text(s.held), text(s.calls),
               text(s.counts.sent), text(s.counts.sent_bytes), text(s.counts.received),
               text(s.counts.received_bytes), timed ? text(s.round_trips.smoothed) : std::string("-"),
               timed ? text(s.round_trips.least) : std::string("-")});
  });
  return out;
}

}  // namespace weft::channel
