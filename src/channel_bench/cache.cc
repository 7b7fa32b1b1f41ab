// The memory cache under a load that rises and falls (X-RDMA §7.5, Figure 11c): so many large requests are
// without an answer at a time, and then fewer again, and then none.
#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kContext = 12;
constexpr std::uint32_t kBytes = 256U << 10U;
// A region that messages were sent from stays a second longer than others (docs/guide/messaging.md).
constexpr std::uint64_t kStep = 2'500'000'000;  // ns, downwards
constexpr std::uint64_t kRise = 500'000'000;
constexpr std::array<std::uint32_t, 6> kLoads{1, 8, 64, 8, 1, 0};
constexpr std::array<std::uint32_t, 3> kQuickLoads{1, 64, 0};

class Load {
 public:
  explicit Load(const Pair& pair) : pair_(pair), context_(pair.session().get()) {}

  // So many requests at a time, for so long; answers per second.
  Result<double> keep(std::uint32_t wanted, std::uint64_t ns) {
    const std::uint64_t began = now_ns();
    answers_ = 0;
    poll_until(
        pair_.session(), 60, [this](const weft_notice& n) { see(n); },
        [&] {
          while (why_.empty() && under_way_ < wanted && ask()) ++under_way_;
          return !why_.empty() || now_ns() > began + ns;
        },
        1);
    if (!why_.empty()) return fail(why_);
    return static_cast<double>(answers_) / (static_cast<double>(now_ns() - began) / 1e9);
  }

 private:
  bool ask() {
    weft_message* const m = weft_allocate(context_, kBytes);
    if (m == nullptr) return false;
    if (weft_call(pair_.channel(), m, 0, 0, nullptr) == 0) return true;
    weft_release(context_, m);
    return false;
  }
  void see(const weft_notice& n) {
    if (n.kind == WEFT_RESPONSE) {
      --under_way_;
      ++answers_;
    }
    if (n.kind == WEFT_OUTCOME) why_ = "a request has no answer";
    if (n.kind == WEFT_CLOSED) why_ = n.why;
    if (n.message != nullptr) weft_release(context_, n.message);
  }

  const Pair& pair_;
  weft_context* context_;
  std::uint32_t under_way_ = 0;
  std::uint64_t answers_ = 0;
  std::string why_;
};

Result<std::uint64_t> registered() {
  const auto sent = count_of("channels", "context", "send_memory");
  const auto received = count_of("channels", "context", "recv_memory");
  if (!sent) return sent;
  if (!received) return received;
  return *sent + *received;
}

}  // namespace

Result<Measured> cache(FarEnd& far, const Options& o) {
  auto pair =
      Pair::open(far, kContext, {"channels=2", "keepalive_intv_ms=0", "depth=128", "idle_memory_ms=100"});
  if (!pair) return tl::unexpected(pair.error());
  if (auto begun = (*pair)->serve(0, true); !begun) return tl::unexpected(begun.error());
  Measured out;
  out.text = "at a time   answers/s   registered (KiB)\n";
  Load load(**pair);
  std::vector<std::uint32_t> loads(kLoads.begin(), kLoads.end());
  if (o.quick) loads.assign(kQuickLoads.begin(), kQuickLoads.end());
  std::uint32_t last = 0;
  std::uint64_t first = 0;
  std::uint64_t most = 0;
  for (const std::uint32_t wanted : loads) {
    const auto rate = load.keep(wanted, wanted < last ? kStep : kRise);
    if (!rate) return tl::unexpected(rate.error());
    last = wanted;
    const auto bytes = registered();
    if (!bytes) return tl::unexpected(bytes.error());
    if (first == 0) first = *bytes;
    most = std::max(most, *bytes);
    record::Record one;
    one.set("at_a_time", std::uint64_t{wanted}).set("answers_per_second", *rate).set("registered", *bytes);
    out.record.append("steps", std::move(one));
    std::array<char, 100> line{};
    std::snprintf(line.data(), line.size(), "%9u %11.0f %18llu\n", wanted, *rate,
                  static_cast<unsigned long long>(*bytes / 1024));
    out.text += line.data();
  }
  const auto rest = registered();
  if (!rest) return tl::unexpected(rest.error());
  out.record.set("first", first).set("most", most).set("rest", *rest);
  out.text += "requests of 256 KiB and their answers over one channel\n";
  if (auto ended = (*pair)->stop(); !ended) return tl::unexpected(ended.error());
  return out;
}

}  // namespace weft::bench
