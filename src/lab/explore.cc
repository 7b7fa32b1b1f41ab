#include "lab/explore.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/nic/memory.h"
#include "sim/world/nic_design.h"

namespace weft::lab {
namespace {

using sim::ContextPolicy;
using sim::Design;
using sim::Place;

std::uint64_t stride_of(const Design& d) {
  return d.context.stride != 0 ? d.context.stride : d.context.bytes;
}
bool translates(const Design& d) { return d.translation.cache != 0 && !d.translation.on_chip; }
bool all_on_chip(const Design& d) { return d.context.policy == ContextPolicy::kOnChip; }

// Part of accesses that a cache of `entries` cannot hold of `all` that are used in turn.
double must_miss(double entries, double all) { return all <= entries ? 0 : 1 - entries / all; }

double bound_of(const ExploreSpace& space, const Design& d, std::uint32_t connections, bool misses) {
  sim::MessageLoad load = space.load;
  load.queue_pairs = connections;
  if (misses && !all_on_chip(d)) {
    // What a turn sends one behind the other shares a look-up.
    const double together = std::max(1U, std::min(d.scheduler.wqes, load.depth));
    load.miss = must_miss(d.context.cache, connections) / together;
  }
  if (misses && translates(d)) {
    const auto page = static_cast<double>(d.translation.page.n);
    const double pages = static_cast<double>(space.touched) * connections / page;
    // A read brings the neighbours of an entry, and a page serves several messages.
    const double entries = std::max(1U, d.translation.fetch_bytes / d.translation.entry_bytes);
    const double messages = std::max(1.0, page / std::max(load.bytes, 1U));
    load.untranslated = must_miss(d.translation.cache, pages) / (entries * messages);
  }
  return sim::explain(d, load).binding->per_second() / 1e6;
}

// Nothing of a hundredth tells two points apart.
constexpr double kSame = 0.01;

// One is as good as the other in all three.
bool as_good(const Explored& a, const Explored& b) {
  return a.connections >= b.connections &&
         static_cast<double>(a.chip) <= (1 + kSame) * static_cast<double>(b.chip) &&
         a.rate >= (1 - kSame) * b.rate;
}

// Of several that are as good as each other the first one stands for all.
void mark_front(std::vector<Explored>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool front = all[i].full;
    for (std::size_t j = 0; front && j < all.size(); ++j)
      front = i == j || !all[j].full || !as_good(all[j], all[i]) || (as_good(all[i], all[j]) && i < j);
    all[i].front = front;
  }
}

class Search {
 public:
  Search(const ExploreSpace& space, const ExploreMeasure& measure) : space_(space), measure_(measure) {}

  Result<Exploration> run(std::vector<Family> all, const ExploreProgress& progress) {
    // Small memories first: whatever bears as much in more is beaten by them.
    std::stable_sort(all.begin(), all.end(),
                     [](const Family& a, const Family& b) { return a.memory < b.memory; });
    for (std::size_t i = 0; i < all.size(); ++i) {
      progress(i, all.size());
      if (const auto ok = look_at(all[i]); !ok) return tl::unexpected(ok.error());
    }
    progress(all.size(), all.size());
    mark_front(found_.points);
    return std::move(found_);
  }

 private:
  std::vector<Candidate> possible(const Family& family) {
    std::vector<Candidate> open;
    for (const std::uint32_t n : space_.connections) {
      auto c = candidate_of(space_, family, n);
      if (!c) continue;
      if (c->bound < space_.full * c->peak) {
        ++found_.pruned;
      } else {
        open.push_back(std::move(*c));
      }
    }
    return open;
  }

  bool beaten(const std::vector<Candidate>& open) const {
    return std::any_of(found_.points.begin(), found_.points.end(), [&](const Explored& p) {
      return p.full && p.connections >= open.back().connections && p.chip <= open.front().chip &&
             p.rate >= open.back().bound;
    });
  }

  // The most connections at full rate lie between some that are full and some that are not.
  Result<void> look_at(const Family& family) {
    const std::vector<Candidate> open = possible(family);
    if (open.empty()) return {};
    if (beaten(open)) {
      ++found_.beaten;
      return {};
    }
    std::size_t low = 0;  // all before it are full
    std::size_t high = open.size();
    for (std::size_t at = high - 1; low < high; at = low + (high - low) / 2) {
      if (found_.points.size() >= space_.most_runs) {
        found_.cut_short = true;
        return {};
      }
      const Candidate& c = open[at];
      const auto rate = measure_(c);
      if (!rate) return tl::unexpected(rate.error());
      const bool full = *rate >= space_.full * c.peak;
      found_.points.push_back(
          {c.base, c.changes, family.split, c.connections, c.chip, c.bound, *rate, c.peak, full, false});
      (full ? low : high) = full ? at + 1 : at;
    }
    return {};
  }

  const ExploreSpace& space_;
  const ExploreMeasure& measure_;
  Exploration found_;
};

}  // namespace

Result<std::vector<Family>> families_of(const ExploreSpace& space) {
  std::vector<Family> all;
  for (const std::string& name : space.designs) {
    const auto design = sim::design_named(name, "", "");
    if (!design) return tl::unexpected(design.error());
    for (const Bytes memory : space.memories) {
      if (all_on_chip(*design)) {
        all.push_back({name, *design, memory, 0});
      } else if (!translates(*design)) {
        all.push_back({name, *design, memory, 1});
      } else {
        for (const double split : space.splits) all.push_back({name, *design, memory, split});
      }
    }
  }
  return all;
}

std::optional<Candidate> candidate_of(const ExploreSpace& space, const Family& family, std::uint32_t n) {
  std::string changes = "on_chip=0";
  if (all_on_chip(family.design)) changes += fmt::format(", context.most={}", n);
  if (family.design.context.sq_table != 0) changes += fmt::format(", context.sq_table={}", n);
  const auto plain = sim::design_named(family.base, "", changes);
  if (!plain) return std::nullopt;
  const auto account = sim::memory_of(*plain, n);
  if (!account) return std::nullopt;  // more than it can have
  const std::uint64_t shared =
      account->bytes("contexts") + account->bytes("context cache") + account->bytes("MTT cache");
  const std::uint64_t others = account->total(Place::kChip) - shared;
  if (others >= family.memory.n) return std::nullopt;
  const std::uint64_t left = family.memory.n - others;
  const std::uint64_t stride = stride_of(*plain);
  std::uint64_t contexts = n * stride;
  if (!all_on_chip(*plain)) {
    contexts = static_cast<std::uint64_t>(family.split * static_cast<double>(left));
    if (contexts < stride) return std::nullopt;
    // More of them than connections would hold nothing.
    changes += fmt::format(", context.cache={}", std::min<std::uint64_t>(contexts / stride, n));
  }
  if (contexts > left) return std::nullopt;
  if (translates(*plain)) {
    const sim::TranslationDesign& t = plain->translation;
    const std::uint64_t table = (t.reach.n + t.page.n - 1) / t.page.n;
    const std::uint64_t entries = std::min((left - contexts) / t.entry_bytes, table);
    if (entries == 0) return std::nullopt;
    changes += fmt::format(", translation.cache={}", entries);
  }
  auto design = sim::design_named(family.base, "", changes);
  if (!design) return std::nullopt;
  Candidate c;
  c.base = family.base;
  c.changes = changes;
  c.connections = n;
  c.chip = sim::memory_of(*design, n)->total(Place::kChip);
  if (c.chip > family.memory.n) return std::nullopt;
  c.peak = bound_of(space, *design, n, false);
  c.bound = bound_of(space, *design, n, true);
  c.design = std::move(*design);
  return c;
}

Result<Exploration> explore(const ExploreSpace& space, const ExploreMeasure& measure,
                            const ExploreProgress& progress) {
  auto all = families_of(space);
  if (!all) return tl::unexpected(all.error());
  return Search(space, measure).run(std::move(*all), progress);
}

}  // namespace weft::lab
