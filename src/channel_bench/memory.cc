// What a context keeps ready to receive (X-RDMA §3, issue 1, and §7.1): connections x depth x message size by
// the paper's formula, in small mode and in large mode, where messages above 256 bytes are announced.
#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kContext = 5;
constexpr std::uint32_t kSmall = 4096;
constexpr std::uint32_t kLarge = 256;
constexpr std::array<std::uint32_t, 3> kDepths{8, 32, 128};
constexpr std::uint64_t kPage = 20'000'000;  // ns, until the context's page has its memory

struct Kept {
  std::uint64_t used = 0;        // by receives, in blocks
  std::uint64_t registered = 0;  // whole regions
};

Result<Kept> keep(FarEnd& far, std::uint32_t channels, std::uint32_t depth, std::uint32_t small) {
  auto pair = Pair::open(far, kContext,
                         {"channels=" + std::to_string(channels), "depth=" + std::to_string(depth),
                          "small_msg_size=" + std::to_string(small), "cached_qps=0"});
  if (!pair) return tl::unexpected(pair.error());
  const tools::Session& session = (*pair)->session();
  if (auto begun = (*pair)->serve(0, true); !begun) return tl::unexpected(begun.error());
  std::uint32_t open = 1;  // the pair's own
  std::string why;
  for (std::uint32_t i = 1; i < channels; ++i) {
    weft_channel* c = nullptr;
    if (weft_connect(session.get(), far.address().c_str(), kServices + kContext, 0, &c) != 0)
      return fail("a channel cannot be asked for");
  }
  const auto see = [&](const weft_notice& n) {
    if (n.kind == WEFT_OPENED) ++open;
    if (n.kind == WEFT_CLOSED) why = n.why;
  };
  if (!poll_until(
          session, 60, see, [&] { return open == channels || !why.empty(); }, 1) ||
      !why.empty())
    return fail("the channels do not open: " + why);
  const std::uint64_t until = now_ns() + kPage;
  poll_until(session, 1, see, [&] { return now_ns() > until; });
  Kept k;
  const bool told = counted("channels", "context", "recv_memory_used", k.used) &&
                    counted("channels", "context", "recv_memory", k.registered);
  if (auto ended = (*pair)->stop(); !ended) return tl::unexpected(ended.error());
  if (!told) return fail("this process has no statistics page to read memory from (WEFT_STAT=0?)");
  return k;
}

}  // namespace

Result<Measured> memory(FarEnd& far, const Options& o) {
  Measured out;
  out.record.set("channels", std::uint64_t{o.channels});
  out.text = "depth   formula (KiB)   small mode   over the formula   large mode   over small mode\n";
  for (const std::uint32_t depth : kDepths) {
    const auto small = keep(far, o.channels, depth, kSmall);
    if (!small) return tl::unexpected(small.error());
    const auto large = keep(far, o.channels, depth, kLarge);
    if (!large) return tl::unexpected(large.error());
    const double formula = static_cast<double>(o.channels) * depth * kSmall;
    const double factor = static_cast<double>(small->used) / formula;
    const double saved = static_cast<double>(large->used) / static_cast<double>(small->used);
    record::Record one;
    one.set("depth", std::uint64_t{depth})
        .set("formula_bytes", formula)
        .set("small_bytes", small->used)
        .set("small_registered", small->registered)
        .set("large_bytes", large->used)
        .set("large_registered", large->registered)
        .set("small_over_formula", factor)
        .set("large_over_small", saved);
    out.record.append("depths", std::move(one));
    std::array<char, 120> line{};
    std::snprintf(line.data(), line.size(), "%5u %15.0f %12llu %18.2f %12llu %17.3f\n", depth, formula / 1024,
                  static_cast<unsigned long long>(small->used / 1024), factor,
                  static_cast<unsigned long long>(large->used / 1024), saved);
    out.text += line.data();
  }
  out.text += "what " + std::to_string(o.channels) + " idle channels keep posted, in KiB\n";
  return out;
}

}  // namespace weft::bench
