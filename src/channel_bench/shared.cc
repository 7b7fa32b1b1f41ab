// One receive queue for all channels (X-RDMA §7.6): what idle channels keep posted, and what a burst over all
// of them meets at a program that takes its time.
//
//   own      each channel has receives of its own
//   shared   all have one queue, of four entries a channel
#include <algorithm>
#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"
#include "channel_bench/opening.h"

namespace weft::bench {
namespace {

constexpr std::uint16_t kContext = 11;
constexpr std::uint32_t kDepth = 32;
constexpr std::uint32_t kEntries = 4;                // of the shared queue, for each channel
constexpr std::uint32_t kLeastEntries = kDepth + 8;  // one channel's window, and its acknowledgements
constexpr std::uint32_t kBytes = 256;
constexpr std::uint32_t kHold = 20;  // us that the far program has for each message
constexpr double kLimit = 60;

struct Row {
  std::uint64_t bytes = 0;  // that the far end has posted, before
  std::uint64_t naks = 0;
  std::uint32_t sent = 0;
  std::uint32_t delivered = 0;
};

// A window of messages over one channel; how many were taken.
Result<std::uint32_t> fill(const tools::Session& session, weft_channel* c) {
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    weft_message* const m = weft_allocate(session.get(), kBytes);
    if (m == nullptr) return fail("there is no memory for the burst");
    if (weft_send(c, m, 0, WEFT_TELL) == 0) continue;
    weft_release(session.get(), m);
    return i;
  }
  return kDepth;
}

Result<Row> burst(FarEnd& far, std::uint32_t channels, std::uint32_t bursts, bool is_shared) {
  std::vector<std::string> parameters{"channels=" + std::to_string(channels),
                                      "depth=" + std::to_string(kDepth), "keepalive_intv_ms=0",
                                      "cached_qps=0"};
  if (is_shared)
    parameters.insert(
        parameters.end(),
        {"use_srq=1", "srq_size=" + std::to_string(std::max(kEntries * channels, kLeastEntries))});
  auto pair = Pair::open(far, kContext, parameters);
  if (!pair) return tl::unexpected(pair.error());
  const tools::Session& session = (*pair)->session();
  if (auto begun = (*pair)->serve(0, true); !begun) return tl::unexpected(begun.error());
  Opening opening(far, **pair);
  if (auto done = opening.wait_for(channels - 1, kLimit); !done) return tl::unexpected(done.error());
  std::vector<weft_channel*> all = opening.open();
  all.push_back((*pair)->channel());
  turn_for(session, 2 * kPageAge);
  Row r;
  const auto bytes = count_of("channels", "context", "recv_memory_used", far.process());
  const auto before = count_of("nic", "nic", "nak_rnr");
  if (!bytes) return tl::unexpected(bytes.error());
  if (!before) return tl::unexpected(before.error());
  r.bytes = *bytes;
  if (auto begun = (*pair)->serve(kHold, false); !begun) return tl::unexpected(begun.error());
  std::string why;
  const auto see = [&](const weft_notice& n) {
    if (n.kind == WEFT_OUTCOME && n.fate == WEFT_DELIVERED) ++r.delivered;
    if (n.kind == WEFT_CLOSED) why = n.why;
  };
  for (std::uint32_t turn = 0; turn < bursts && why.empty(); ++turn) {
    for (weft_channel* const c : all) {
      const auto sent = fill(session, c);
      if (!sent) return tl::unexpected(sent.error());
      r.sent += *sent;
    }
    poll_until(session, kLimit, see, [&] { return r.delivered == r.sent || !why.empty(); });
  }
  if (!why.empty()) return fail("a channel: " + why);
  turn_for(session, kPageAge);
  const auto after = count_of("nic", "nic", "nak_rnr");
  if (!after) return tl::unexpected(after.error());
  r.naks = *after - *before;
  if (auto ended = (*pair)->stop(); !ended) return tl::unexpected(ended.error());
  return r;
}

void tell(const char* name, const Row& r, Measured& out) {
  record::Record one;
  one.set("bytes", r.bytes)
      .set("naks", r.naks)
      .set("naks_per_thousand", 1000.0 * static_cast<double>(r.naks) / r.sent)
      .set("sent", std::uint64_t{r.sent})
      .set("delivered", std::uint64_t{r.delivered});
  out.record.set(name, std::move(one));
  std::array<char, 120> line{};
  std::snprintf(line.data(), line.size(), "%-7s %10llu %10llu %10u %10u\n", name,
                static_cast<unsigned long long>(r.bytes / 1024), static_cast<unsigned long long>(r.naks),
                r.sent, r.delivered);
  out.text += line.data();
}

}  // namespace

Result<Measured> shared(FarEnd& far, const Options& o) {
  Measured out;
  out.record.set("channels", std::uint64_t{o.channels});
  out.text = "               KiB   RNR NAKs       sent  delivered\n";
  for (const bool is_shared : {false, true}) {
    const auto r = burst(far, o.channels, o.turns, is_shared);
    if (!r) return tl::unexpected(r.error());
    tell(is_shared ? "shared" : "own", *r, out);
  }
  out.text += std::to_string(kDepth) + " messages over each of " + std::to_string(o.channels) +
              " channels at once, " + std::to_string(o.turns) + " times, " + std::to_string(kHold) +
              " us for each at the far end; KiB: posted before\n";
  return out;
}

}  // namespace weft::bench
