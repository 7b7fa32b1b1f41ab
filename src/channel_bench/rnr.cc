// Receiver not ready (X-RDMA §7.3, Figure 9): many messages to a program that takes its time with each. Over
// a plain queue pair, whose sender knows nothing of the receives, and over a channel of as many. Each turn
// has its share of the messages, over one and then over the other.
#include <unistd.h>

#include <array>
#include <cstdio>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"
#include "channel_bench/raw.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint16_t kContext = 4;
constexpr std::uint32_t kBytes = 256;
constexpr std::uint32_t kReceives = 16;
constexpr std::uint32_t kSends = 32;
constexpr std::uint32_t kHold = 20;    // us that the far program has for each
constexpr useconds_t kPage = 200'000;  // until the page of the NIC has what happened

struct Row {
  std::uint64_t naks = 0;
  double seconds = 0;
};

// Of this process's NIC, whose page there is while a device is open.
Result<std::uint64_t> naks() {
  usleep(kPage);
  std::uint64_t n = 0;
  if (!counted("nic", "nic", "nak_rnr", n))
    return fail("this process has no statistics page to count NAKs in (WEFT_STAT=0?)");
  return n;
}

Result<Row> over_verbs(FarEnd& far, std::uint32_t messages) {
  auto raw = RawEnd::open({kBytes, kReceives, kSends});
  if (!raw) return tl::unexpected(raw.error());
  const auto met =
      far.ask("raw " + std::to_string(kBytes) + " " + std::to_string(kReceives) + " " + (*raw)->introduce());
  if (!met) return tl::unexpected(met.error());
  if (auto up = (*raw)->meet(*met); !up) return tl::unexpected(up.error());
  const auto before = naks();
  if (!before) return tl::unexpected(before.error());
  if (const auto begun = far.ask("echo 0 " + std::to_string(kHold)); !begun)
    return tl::unexpected(begun.error());
  std::uint32_t posted = 0;
  RawEnd::Came came;
  const std::uint64_t began = now_ns();
  const std::uint64_t end = began + 60'000'000'000;
  while (came.sent < messages) {
    while (posted < messages && posted - came.sent < kSends && (*raw)->send(kBytes)) ++posted;
    if (!(*raw)->poll(came)) return fail("the plain queue pair has failed");
    if (now_ns() > end) return fail("the far end takes no messages");
  }
  Row r;
  r.seconds = static_cast<double>(now_ns() - began) / 1e9;
  if (const auto ended = far.ask("stop"); !ended) return tl::unexpected(ended.error());
  const auto after = naks();
  if (!after) return tl::unexpected(after.error());
  r.naks = *after - *before;
  return r;
}

Result<Row> over_channel(FarEnd& far, std::uint32_t messages) {
  // Its window of messages, and eight receives for acknowledgements, which need no place of theirs.
  auto pair = Pair::open(
      far, kContext,
      {"channels=2", "depth=" + std::to_string(kReceives), "small_msg_size=" + std::to_string(kBytes)});
  if (!pair) return tl::unexpected(pair.error());
  weft_context* const context = (*pair)->session().get();
  const auto before = naks();
  if (!before) return tl::unexpected(before.error());
  if (auto begun = (*pair)->serve(kHold); !begun) return tl::unexpected(begun.error());
  const std::uint64_t began = now_ns();
  std::uint32_t sent = 0;
  std::uint32_t taken = 0;
  std::string why;
  const auto see = [&](const weft_notice& n) {
    if (n.kind == WEFT_OUTCOME && n.fate == WEFT_DELIVERED) ++taken;
    if (n.kind == WEFT_OUTCOME && n.fate != WEFT_DELIVERED) why = "a message was not delivered";
    if (n.kind == WEFT_CLOSED) why = n.why;
    if (n.message != nullptr) weft_release(context, n.message);
  };
  const bool all = poll_until((*pair)->session(), 60, see, [&] {
    while (why.empty() && sent < messages) {
      weft_message* const m = weft_allocate(context, kBytes);
      if (m == nullptr) break;
      if (weft_send((*pair)->channel(), m, 0, WEFT_TELL) != 0) {  // the window and the queue are full
        weft_release(context, m);
        break;
      }
      ++sent;
    }
    return taken == messages || !why.empty();
  });
  if (!why.empty()) return fail(why);
  if (!all) return fail("the far end takes no messages");
  Row r;
  r.seconds = static_cast<double>(now_ns() - began) / 1e9;
  if (auto ended = (*pair)->stop(); !ended) return tl::unexpected(ended.error());
  const auto after = naks();
  if (!after) return tl::unexpected(after.error());
  r.naks = *after - *before;
  return r;
}

void tell(const char* name, const Row& r, std::uint32_t messages, Measured& out) {
  const double thousandth = 1000.0 * static_cast<double>(r.naks) / messages;
  record::Record one;
  one.set("naks", r.naks)
      .set("naks_per_thousand", thousandth)
      .set("messages_per_second", messages / r.seconds);
  out.record.set(name, std::move(one));
  std::array<char, 100> line{};
  std::snprintf(line.data(), line.size(), "%-9s %10llu %14.2f %18.0f\n", name,
                static_cast<unsigned long long>(r.naks), thousandth, messages / r.seconds);
  out.text += line.data();
}

}  // namespace

Result<Measured> not_ready(FarEnd& far, const Options& o) {
  Row verbs;
  Row channel;
  std::uint32_t left = o.messages;
  for (std::uint32_t turn = 0; turn < o.turns; ++turn) {
    const std::uint32_t share = left / (o.turns - turn);
    if (share == 0) continue;  // more turns than messages
    left -= share;
    for (const auto& [measure, row] : {std::pair{&over_verbs, &verbs}, std::pair{&over_channel, &channel}}) {
      const auto one = measure(far, share);
      if (!one) return tl::unexpected(one.error());
      row->naks += one->naks;
      row->seconds += one->seconds;
    }
  }
  Measured out;
  out.record.set("messages", std::uint64_t{o.messages}).set("turns", std::uint64_t{o.turns});
  out.text = "           RNR NAKs   per thousand   messages a second\n";
  tell("plain", verbs, o.messages, out);
  tell("channel", channel, o.messages, out);
  out.text += std::to_string(o.messages) + " messages of " + std::to_string(kBytes) + " bytes in " +
              std::to_string(o.turns) + " turns, " + std::to_string(kReceives) + " receives, " +
              std::to_string(kHold) + " us for each at the far end\n";
  return out;
}

}  // namespace weft::bench
