// The patterns, a class and a row each.
#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "core/base/parse.h"
#include "sim/traffic/pattern.h"
#include "sim/traffic/variates.h"

namespace weft::sim {
namespace {

using Made = Result<std::unique_ptr<Arrivals>>;

WrOpcode draw_verb(Verb verb, Prng& random) {
  constexpr std::array kVerbs{WrOpcode::kWrite, WrOpcode::kSend, WrOpcode::kRead};
  return verb == Verb::kMixed ? kVerbs[random.below(3)] : kVerbs[static_cast<std::size_t>(verb)];
}

std::uint32_t draw_other(std::uint32_t hosts, std::uint32_t self, Prng& random) {
  const auto other = static_cast<std::uint32_t>(random.below(hosts - 1U));
  return other < self ? other : other + 1U;
}

// A list made beforehand, of at most so many.
constexpr std::uint64_t kMostListed = 1U << 20U;
// No flow begins later than two days. Twice that still fits a Time.
constexpr std::uint64_t kLatestPs = 172'800'000'000'000'000;
class Listed final : public Arrivals {
 public:
  explicit Listed(std::vector<Arrival> list) : list_(std::move(list)) {
    std::stable_sort(list_.begin(), list_.end(),
                     [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  }
  bool next(Arrival& out) override {
    if (next_ == list_.size()) return false;
    out = list_[next_++];
    return true;
  }

 private:
  std::vector<Arrival> list_;
  std::size_t next_ = 0;
};

// Every host begins flows as a Poisson process of its own, to a random other one (IRN §4.1): together a
// Poisson process with random senders.
class Poisson final : public Arrivals {
 public:
  Poisson(const TrafficSpec& spec, const TrafficGround& g, SizeDistribution sizes)
      : spec_(spec), hosts_(g.hosts), sizes_(std::move(sizes)), random_(g.seed), at_(Time{} + spec.start) {
    // Bytes on the wire of an average flow; a million draws are within a percent of any of our tails.
    Prng sample(1);
    constexpr std::uint64_t kSample = 1U << 18U;
    std::uint64_t packets = 0;
    for (std::uint64_t i = 0; i < kSample; ++i) packets += (sizes_.draw(sample) + g.mtu - 1U) / g.mtu;
    const std::uint64_t wire = sizes_.mean() + packets * g.packet_overhead / kSample;
    __extension__ using Wide = unsigned __int128;
    const Wide bits = Wide{wire} * 8U * 1'000'000'000'000ULL * 1'000'000U;
    const Wide gap = bits / (Wide{g.rate.bps} * g.hosts * spec.load);
    gap_ps_ = static_cast<std::uint64_t>(std::min<Wide>(gap, kLatestPs));
  }
  bool next(Arrival& out) override {
    const std::uint64_t gap = std::min(exponential(random_, gap_ps_), kLatestPs);
    at_ = Time{std::min(at_.ps + static_cast<std::int64_t>(gap), static_cast<std::int64_t>(kLatestPs))};
    if (spec_.flows != 0 ? made_ == spec_.flows : at_ >= Time{} + spec_.start + spec_.duration) return false;
    ++made_;
    out = {};
    out.at = at_;
    out.from = static_cast<std::uint32_t>(random_.below(hosts_));
    out.to = draw_other(hosts_, out.from, random_);
    out.bytes = sizes_.draw(random_);
    out.op = draw_verb(spec_.verb, random_);
    return true;
  }

 private:
  TrafficSpec spec_;
  std::uint32_t hosts_;
  SizeDistribution sizes_;
  Prng random_;
  Time at_;
  std::uint64_t gap_ps_ = 0;
  std::uint64_t made_ = 0;
};

Made poisson(const TrafficSpec& s, const TrafficGround& g) {
  if (s.load == 0) return fail("load: must be above 0");
  if ((s.flows == 0) == (s.duration.ps == 0)) return fail("flows: give either flows or duration");
  if (g.rate.bps == 0) return fail("load: means nothing with links of unlimited rate");
  auto sizes = sizes_of(s);
  if (!sizes) return tl::unexpected(sizes.error());
  return std::make_unique<Poisson>(s, g, std::move(*sizes));
}

// `fan_in` random hosts send to one at the same time; again `every` so often.
Made incast(const TrafficSpec& s, const TrafficGround& g) {
  const std::uint32_t fan_in = s.fan_in != 0 ? s.fan_in : g.hosts - 1U;
  if (fan_in >= g.hosts)
    return fail("fan_in: " + std::to_string(fan_in) + " senders and a receiver are more than " +
                std::to_string(g.hosts) + " hosts");
  if (s.target != UINT32_MAX && s.target >= g.hosts)
    return fail("target: hosts are numbered 0 to " + std::to_string(g.hosts - 1));
  if (s.requests > 1 && s.every.ps == 0) return fail("every: several requests need a time between them");
  auto sizes = sizes_of(s);
  if (!sizes) return tl::unexpected(sizes.error());
  const std::uint64_t stripes = std::uint64_t{fan_in} * s.connections;
  if (s.total.n != 0 && s.total.n / stripes >= 1ULL << 31U)
    return fail("total: more than 2 GiB for each connection");
  if (s.total.n != 0 && s.total.n < stripes) return fail("total: less than a byte for each connection");
  if (stripes * s.requests > kMostListed)
    return fail("requests: " + std::to_string(s.requests) + " of " + std::to_string(stripes) +
                " flows each are more than a million flows");
  __extension__ using Wide = unsigned __int128;
  if (Wide{static_cast<std::uint64_t>(s.every.ps)} * s.requests > kLatestPs / 2)
    return fail("every: the last request would come after more than a day");
  Prng random(g.seed);
  std::vector<Arrival> list;
  std::vector<std::uint32_t> order(g.hosts);
  for (std::uint32_t r = 0; r < s.requests; ++r) {
    const std::uint32_t target =
        s.target != UINT32_MAX ? s.target : static_cast<std::uint32_t>(random.below(g.hosts));
    std::iota(order.begin(), order.end(), 0U);
    std::swap(order[target], order.back());
    for (std::uint32_t i = 0; i < fan_in; ++i) {
      std::swap(order[i], order[i + random.below(g.hosts - 1U - i)]);
      Arrival a;
      a.at = Time{} + s.start + s.every * r;
      a.from = order[i];
      a.to = target;
      a.group = r;
      for (std::uint32_t c = 0; c < s.connections; ++c) {
        // The first connections carry the remainder of the division.
        const std::uint64_t stripe = std::uint64_t{i} * s.connections + c;
        a.bytes = s.total.n != 0 ? s.total.n / stripes + (stripe < s.total.n % stripes ? 1U : 0U)
                                 : sizes->draw(random);
        a.op = draw_verb(s.verb, random);
        list.push_back(a);
      }
    }
  }
  return std::make_unique<Listed>(std::move(list));
}

// A random cycle through all hosts: each host sends once and receives once.
Made permutation(const TrafficSpec& s, const TrafficGround& g) {
  auto sizes = sizes_of(s);
  if (!sizes) return tl::unexpected(sizes.error());
  Prng random(g.seed);
  std::vector<std::uint32_t> order(g.hosts);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = g.hosts; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<Arrival> list;
  for (std::uint32_t i = 0; i < g.hosts; ++i) {
    list.push_back({Time{} + s.start, order[i], order[(i + 1) % g.hosts], sizes->draw(random),
                    draw_verb(s.verb, random), 0});
  }
  return std::make_unique<Listed>(std::move(list));
}

// Every host to every other, each in an order of its own, all at once.
Made all_to_all(const TrafficSpec& s, const TrafficGround& g) {
  auto sizes = sizes_of(s);
  if (!sizes) return tl::unexpected(sizes.error());
  if (g.hosts > 1024) return fail("pattern: all-to-all of more than 1024 hosts is more than a million flows");
  Prng random(g.seed);
  std::vector<Arrival> list;
  for (std::uint32_t step = 1; step < g.hosts; ++step) {
    for (std::uint32_t h = 0; h < g.hosts; ++h)
      list.push_back(
          {Time{} + s.start, h, (h + step) % g.hosts, sizes->draw(random), draw_verb(s.verb, random), 0});
  }
  return std::make_unique<Listed>(std::move(list));
}

std::string next_word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(" \t\r,"), line.size());
  const auto end = std::min(line.find_first_of(" \t\r,", begin), line.size());
  std::string word(line.substr(begin, end - begin));
  line.remove_prefix(end);
  return word;
}

Result<Arrival> trace_line(std::string_view line, const std::string& first, const TrafficSpec& s,
                           const TrafficGround& g, Prng& random) {
  const auto at = parse_duration("time", first);
  if (!at) return tl::unexpected(at.error());
  const auto from = parse_integer("from", next_word(line), 0, g.hosts - 1U);
  if (!from) return tl::unexpected(from.error());
  const auto to = parse_integer("to", next_word(line), 0, g.hosts - 1U);
  if (!to) return tl::unexpected(to.error());
  const auto size = parse_size("bytes", next_word(line));
  if (!size) return tl::unexpected(size.error());
  if (*from == *to) return fail("from and to are the same host");
  if (size->n == 0 || size->n > 1ULL << 31U) return fail("bytes: not between 1 and a message's 2 GiB");
  Arrival a{Time{} + s.start + *at,          static_cast<std::uint32_t>(*from),
            static_cast<std::uint32_t>(*to), size->n,
            draw_verb(s.verb, random),       0};
  if (const std::string verb = next_word(line); !verb.empty()) {
    if (verb != "write" && verb != "send" && verb != "read")
      return fail("'" + verb + "' is not write, send or read");
    a.op = verb == "write" ? WrOpcode::kWrite : verb == "send" ? WrOpcode::kSend : WrOpcode::kRead;
  }
  return a;
}

Made trace(const TrafficSpec& s, const TrafficGround& g) {
  Prng random(g.seed);
  std::vector<Arrival> list;
  std::string_view rest = s.trace_text;
  for (std::uint32_t number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line = line.substr(0, line.find('#'));
    const std::string first = next_word(line);
    if (first.empty()) continue;
    const auto a = trace_line(line, first, s, g, random);
    if (!a) return fail("trace, line " + std::to_string(number) + ": " + a.error().message);
    list.push_back(*a);
  }
  if (list.empty()) return fail("trace: there is no flow in it");
  return std::make_unique<Listed>(std::move(list));
}

constexpr std::array kPatterns{
    PatternRow{"poisson", "flows begin at random, between random hosts, at a load of the host links",
               "load, flows or duration", poisson},
    PatternRow{"incast", "many hosts send to one at the same time",
               "fan_in, connections, target, total, requests, every", incast},
    PatternRow{"permutation", "every host sends to one other and receives from one", "-", permutation},
    PatternRow{"all-to-all", "every host sends to every other", "-", all_to_all},
    PatternRow{"trace", "flows listed in a file: time from to bytes [verb]", "trace", trace},
};

}  // namespace

std::span<const PatternRow> pattern_rows() { return kPatterns; }

Result<SizeDistribution> sizes_of(const TrafficSpec& spec) {
  if (!spec.sizes_text.empty()) return SizeDistribution::parse("sizes", spec.sizes_text);
  for (const SizeRow& row : size_rows()) {
    if (spec.sizes == row.name) return SizeDistribution::parse(row.name, row.points);
  }
  const auto size = parse_size("sizes", spec.sizes);
  if (!size || size->n == 0 || size->n > 1ULL << 31U)
    return fail("sizes: '" + spec.sizes +
                "' is neither a size from 1 byte to 2 GiB, nor a file, nor one of the distributions of weft "
                "sim --list");
  return SizeDistribution::fixed(*size);
}

Result<std::unique_ptr<Arrivals>> make_arrivals(const TrafficSpec& spec, const TrafficGround& ground) {
  std::string all;
  for (const PatternRow& row : kPatterns) {
    if (spec.pattern == row.name) return row.make(spec, ground);
    all += (all.empty() ? "" : ", ") + std::string(row.name);
  }
  return fail("pattern: '" + spec.pattern + "' is not one of " + all);
}

}  // namespace weft::sim
