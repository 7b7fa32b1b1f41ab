#include "channel/slow_log.h"

#include <algorithm>

namespace weft::channel {
namespace {

constexpr std::uint64_t kLeastPause = 100'000'000;       // ns
constexpr std::uint64_t kMostPause = kLeastPause << 9U;  // 51.2 s
constexpr std::uint64_t kQuiet = 2;                      // pauses without an entry: it begins anew

std::string micros(std::uint64_t ns) {
  return std::to_string(ns / 1000) + "." + std::to_string(ns / 100 % 10);
}

std::string text(const wire::Address& a) {
  std::string out = std::to_string(a.bytes[12]);
  for (std::size_t i = 13; i < 16; ++i) out.append(".").append(std::to_string(a.bytes[i]));
  return out;
}

struct Naming {
  const char* name;
  const char* word;
};
constexpr Naming naming(Place place) {
  switch (place) {
    case Place::kPolls:
      return {"time between polls", "polls"};
    case Place::kCompletions:
      return {"completions", "complete"};
    case Place::kEvents:
      return {"events", "events"};
    case Place::kTimers:
      return {"timers", "timers"};
    case Place::kFetch:
      return {"fetch", "fetch"};
    case Place::kMemory:
      return {"memory", "memory"};
    case Place::kWay:
      return {"network", "network"};
    case Place::kRequest:
      return {"request", "request"};
  }
  return {"", ""};
}

}  // namespace

const char* name_of(Place place) { return naming(place).name; }
const char* word_of(Place place) { return naming(place).word; }

std::string sentence(const SlowEntry& e) {
  std::string out = name_of(e.place);
  if (e.place == Place::kWay) out += " from ";
  if (e.place == Place::kRequest) out += " to ";
  if (e.place == Place::kWay || e.place == Place::kRequest)
    out.append(text(e.peer)).append(":").append(std::to_string(e.service));
  out.append(" took ").append(micros(e.took_ns)).append(" us");
  if (e.place == Place::kRequest && e.trace != 0) {
    out.append(": queue ").append(micros(e.queued_ns));
    out.append(", network ").append(micros(e.ways_ns));
    out.append(", peer ").append(micros(e.there_ns));
    const std::uint64_t known = e.queued_ns + e.ways_ns + e.there_ns;
    out.append(", here ").append(micros(e.took_ns > known ? e.took_ns - known : 0));
  }
  if (e.omitted != 0) {
    out.append("; ").append(std::to_string(e.omitted)).append(" more left out, the longest ");
    out.append(micros(e.longest_ns)).append(" us");
  }
  return out;
}

SlowEntry* SlowLog::add(Place place, std::uint64_t at_ns, std::uint64_t took_ns) {
  OfPlace& p = places_[static_cast<std::size_t>(place)];
  const std::uint64_t since = at_ns - p.last_at;
  const bool due = p.pause == 0 || since >= p.pause;
  if (!due && took_ns / 2 < p.last_took) {
    ++p.omitted;
    p.longest = std::max(p.longest, took_ns);
    return nullptr;
  }
  const bool quiet = p.pause == 0 || since >= p.pause * kQuiet;
  if (due) p.pause = quiet ? kLeastPause : std::min(p.pause * 2, kMostPause);
  p.last_at = at_ns;
  p.last_took = took_ns;
  if (written_ - read_ == kEntries) {
    ++read_;
    ++lost_;
  }
  SlowEntry& e = ring_[written_++ % kEntries];
  e = {};
  e.place = place;
  e.at_ns = at_ns;
  e.took_ns = took_ns;
  e.omitted = p.omitted;
  e.longest_ns = p.longest;
  p.omitted = p.longest = 0;
  return &e;
}

bool SlowLog::next(SlowEntry& out) {
  if (read_ == written_) return false;
  out = ring_[read_++ % kEntries];
  return true;
}

}  // namespace weft::channel
