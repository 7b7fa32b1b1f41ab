// Where the memory cache has its memory (X-RDMA §7.6): requests whose frames lie in pages that are not
// contiguous, in contiguous ones, in huge ones and in the program's heap. Rows take turns.
#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"

namespace weft::bench {
namespace {

constexpr std::uint16_t kContext = 13;
constexpr std::uint32_t kBytes = 16'000;

struct Mode {
  const char* name;
  std::uint32_t number;  // of the parameter memory_mode
};
constexpr std::array<Mode, 4> kModes{{{"pages", 1}, {"huge", 2}, {"heap", 3}, {"contiguous", 4}}};

}  // namespace

Result<Measured> pages(FarEnd& far, const Options& o) {
  std::array<std::unique_ptr<Pair>, kModes.size()> pairs;
  std::array<std::uint64_t, kModes.size()> plain{};
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    auto pair = Pair::open(far, static_cast<std::uint16_t>(kContext + i),
                           {"channels=2", "keepalive_intv_ms=600000", "small_msg_size=16384",
                            "memory_mode=" + std::to_string(kModes[i].number)});
    if (!pair) return fail(std::string(kModes[i].name) + ": " + pair.error().message);
    pairs[i] = std::move(*pair);
    turn_for(pairs[i]->session(), kPageAge);
    const auto now = count_of("channels", "context", "plain_regions");
    if (!now) return tl::unexpected(now.error());
    plain[i] = *now - before;
    before = *now;
  }
  std::array<std::vector<double>, kModes.size()> us;
  for (std::uint32_t turn = 0; turn < o.turns; ++turn) {
    for (std::size_t k = 0; k < kModes.size(); ++k) {
      const std::size_t i = (turn + k) % kModes.size();
      if (auto begun = pairs[i]->serve(); !begun) return tl::unexpected(begun.error());
      const auto one = call_us(*pairs[i], kBytes, o.rounds, 0);
      if (!one) return tl::unexpected(one.error());
      us[i].push_back(*one);
      if (auto ended = pairs[i]->stop(); !ended) return tl::unexpected(ended.error());
    }
  }
  Measured out;
  out.record.set("bytes", std::uint64_t{kBytes}).set("turns", std::uint64_t{o.turns});
  out.text = "             request (us)   over pages   regions that lack such pages\n";
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t turn = 0; turn < us[i].size(); ++turn) ratios.push_back(us[i][turn] / us[0][turn]);
    record::Record r;
    r.set("us", median(us[i])).set("over_pages", median(ratios)).set("plain_regions", plain[i]);
    out.record.set(kModes[i].name, std::move(r));
    std::array<char, 120> line{};
    std::snprintf(line.data(), line.size(), "%-11s %13.2f %12.3f %30llu\n", kModes[i].name, median(us[i]),
                  median(ratios), static_cast<unsigned long long>(plain[i]));
    out.text += line.data();
  }
  out.text += "requests of " + std::to_string(kBytes) + " bytes in one frame, and their answers\n";
  return out;
}

}  // namespace weft::bench
