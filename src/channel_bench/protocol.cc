// What a channel does for its messages, counted (X-RDMA §4.3, §4.4, §5.2, §5.3):
//
//   small      one way: packets that the device sent for them, acknowledgements that the far end sent
//   large      back and forth: READs for those that came
//   windows    of several depths: the most messages that were in flight
//   bounded    large ones under a bound of two fragments: the most fragments that were in flight
//   full       both ends fill their windows at once, with NOPs and with none for hours
//
// Both windows are full when neither end has looked for a while. No time is measured, so a busy machine
// changes nothing.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "channel_bench/bench.h"
#include "channel_bench/counters.h"

namespace weft::bench {
namespace {

constexpr std::uint16_t kContext = 9;
constexpr std::uint32_t kSmall = 256;
constexpr std::uint32_t kLarge = 60'000;  // one fragment
constexpr std::uint32_t kBounded = 1U << 20U;
constexpr std::uint64_t kFragments = 2;  // in flight at most, where they are bounded
constexpr std::array<std::uint32_t, 3> kDepths{4, 32, 128};
constexpr std::uint32_t kQueue = 64;
constexpr double kLimit = 60;
constexpr std::uint32_t kRounds = 3;
constexpr std::uint32_t kFullDepth = 8;
constexpr double kFullLimit = 5;  // seconds for two full windows to empty
constexpr const char* kNever = "1000000000";

using Parameters = std::vector<std::string>;

// Messages of one length over a pair, as many at a time as its window and its queue take.
class Flow {
 public:
  static Result<std::unique_ptr<Flow>> open(FarEnd& far, Parameters more, bool comes_back) {
    auto flow = std::unique_ptr<Flow>(new Flow);
    more.insert(more.end(), {"channels=2", "keepalive_intv_ms=0", "queue=" + std::to_string(kQueue)});
    auto pair = Pair::open(far, kContext, more);
    if (!pair) return tl::unexpected(pair.error());
    flow->pair_ = std::move(*pair);
    // A program that holds each message for a microsecond sends none back.
    if (auto begun = flow->pair_->serve(comes_back ? 0 : 1, false); !begun)
      return tl::unexpected(begun.error());
    return flow;
  }

  // As many as are taken without a look at what came; how many.
  std::uint32_t fill(std::uint32_t bytes, std::uint32_t most) {
    weft_context* const context = pair_->session().get();
    std::uint32_t n = 0;
    for (; n < most; ++n) {
      weft_message* const m = weft_allocate(context, bytes);
      if (m == nullptr) break;
      if (weft_send(pair_->channel(), m, 0, WEFT_TELL) != 0) {
        weft_release(context, m);
        break;
      }
      in_flight_ = std::max(in_flight_, counts().in_flight);
    }
    sent_ += n;
    return n;
  }
  // Until so many were delivered and came back; false: not in this time.
  bool wait_for(std::uint32_t delivered, std::uint32_t came, double seconds) {
    return poll_until(
        pair_->session(), seconds, [this](const weft_notice& n) { see(n); },
        [&] {
          look();
          return !why_.empty() || (delivered_ >= delivered && came_ >= came);
        });
  }
  // All of them.
  Result<void> carry(std::uint32_t bytes, std::uint32_t count, bool comes_back, std::uint32_t at_a_time) {
    for (std::uint32_t left = count; left != 0 && why_.empty();) {
      left -= fill(bytes, std::min(left, at_a_time));
      const bool here = wait_for(sent_, comes_back ? sent_ : 0, kLimit);
      if (!here || !why_.empty()) return fail(why_.empty() ? "messages are not taken" : why_);
    }
    return {};
  }
  weft_channel_counts counts() const {
    weft_channel_counts c{};
    weft_counts(pair_->channel(), &c, sizeof c);
    return c;
  }
  Result<void> stop() { return pair_->stop(); }
  const tools::Session& session() const { return pair_->session(); }
  std::uint32_t sent() const { return sent_; }
  std::uint32_t most_in_flight() const { return in_flight_; }
  std::uint64_t most_fragments() const { return fragments_; }

 private:
  void see(const weft_notice& n) {
    if (n.kind == WEFT_OUTCOME && n.fate == WEFT_DELIVERED) ++delivered_;
    if (n.kind == WEFT_OUTCOME && n.fate != WEFT_DELIVERED) why_ = "a message was not delivered";
    if (n.kind == WEFT_MESSAGE) ++came_;
    if (n.kind == WEFT_CLOSED) why_ = n.why;
    if (n.message != nullptr) weft_release(pair_->session().get(), n.message);
  }
  void look() {
    in_flight_ = std::max(in_flight_, counts().in_flight);
    std::array<char, 256> page{};
    weft_report(pair_->session().get(), page.data(), page.size());
    constexpr const char* kWords = "fragments in flight ";
    const char* const at = std::strstr(page.data(), kWords);
    if (at != nullptr)
      fragments_ = std::max<std::uint64_t>(fragments_, std::strtoull(at + std::strlen(kWords), nullptr, 10));
  }

  std::unique_ptr<Pair> pair_;
  std::uint32_t sent_ = 0, delivered_ = 0, came_ = 0, in_flight_ = 0;
  std::uint64_t fragments_ = 0;
  std::string why_;
};

class Protocol {
 public:
  Protocol(FarEnd& far, const Options& o) : far_(far), count_(o.quick ? 200 : 4000) {}

  Result<Measured> go() {
    for (const auto step :
         {&Protocol::small, &Protocol::large, &Protocol::windows, &Protocol::bounded, &Protocol::full}) {
      if (auto done = (this->*step)(); !done) return tl::unexpected(done.error());
    }
    return std::move(out_);
  }

 private:
  // Packets of our device that carried something, each once.
  static Result<std::uint64_t> packets() {
    const auto all = count_of("nic", "nic", "tx_packets");
    const auto again = count_of("nic", "nic", "tx_retransmitted");
    if (!all) return all;
    if (!again) return again;
    return *all - *again;
  }

  // The page of our device has what happened, however long a busy machine takes to write it.
  static void settle(const tools::Session& session) {
    const std::uint64_t now = tools::now_ns();
    for (int i = 0; i < 50 && !written_since("nic", now + kPageAge / 2); ++i) turn_for(session, kPageAge / 2);
  }

  Result<void> small() {
    constexpr std::uint32_t kDepth = 32;
    // Without a delay of ACKs they go out for their number alone.
    auto flow = Flow::open(far_, {"depth=" + std::to_string(kDepth), "ack_delay_us=1000000"}, false);
    if (!flow) return tl::unexpected(flow.error());
    settle((*flow)->session());
    const auto before = packets();
    if (!before) return tl::unexpected(before.error());
    if (auto done = (*flow)->carry(kSmall, count_, false, kDepth + kQueue); !done) return done;
    const weft_channel_counts counts = (*flow)->counts();
    settle((*flow)->session());
    const auto after = packets();
    const auto acks = count_of("channels", "channel", "acks", far_.process());
    if (!after) return tl::unexpected(after.error());
    if (!acks) return tl::unexpected(acks.error());
    if (auto ended = (*flow)->stop(); !ended) return ended;
    // NOPs are packets, too, and no message's.
    const double operations = static_cast<double>(*after - *before - counts.nops) / count_;
    const double quarters = static_cast<double>(*acks) * (kDepth / 4.0) / count_;
    record::Record r;
    r.set("messages", std::uint64_t{count_})
        .set("operations_per_message", operations)
        .set("nops", std::uint64_t{counts.nops})
        .set("acks", *acks)
        .set("acks_per_quarter_window", quarters);
    out_.record.set("small", std::move(r));
    say("small: %.3f operations a message, %.3f acknowledgements a quarter of the window\n", operations,
        quarters);
    return {};
  }

  Result<void> large() {
    auto flow = Flow::open(far_, {}, true);
    if (!flow) return tl::unexpected(flow.error());
    if (auto done = (*flow)->carry(kLarge, count_ / 10, true, 8); !done) return done;
    const weft_channel_counts c = (*flow)->counts();
    if (auto ended = (*flow)->stop(); !ended) return ended;
    const double operations = 1 + static_cast<double>(c.fragments) / static_cast<double>(c.received);
    record::Record r;
    r.set("messages", std::uint64_t{c.received})
        .set("reads", std::uint64_t{c.fragments})
        .set("operations_per_message", operations);
    out_.record.set("large", std::move(r));
    say("large: %.3f operations a message\n", operations);
    return {};
  }

  Result<void> windows() {
    for (const std::uint32_t depth : kDepths) {
      auto flow = Flow::open(far_, {"depth=" + std::to_string(depth)}, false);
      if (!flow) return tl::unexpected(flow.error());
      const std::uint32_t at_once = (*flow)->fill(kSmall, 4 * depth + kQueue);
      const std::uint32_t before_any = (*flow)->most_in_flight();
      if (!(*flow)->wait_for(at_once, 0, kLimit)) return fail("messages are not taken");
      if (auto done = (*flow)->carry(kSmall, count_, false, 4 * depth); !done) return done;
      if (auto ended = (*flow)->stop(); !ended) return ended;
      const std::uint32_t most = (*flow)->most_in_flight();
      record::Record r;
      r.set("depth", std::uint64_t{depth})
          .set("before_any_was_taken", std::uint64_t{before_any})
          .set("most_in_flight", std::uint64_t{most});
      out_.record.append("windows", std::move(r));
      say("depth %u: %u in flight at most\n", depth, most);
    }
    return {};
  }

  Result<void> bounded() {
    auto flow = Flow::open(far_, {"outstanding=" + std::to_string(kFragments)}, true);
    if (!flow) return tl::unexpected(flow.error());
    if (auto done = (*flow)->carry(kBounded, count_ / 50, true, 4); !done) return done;
    if (auto ended = (*flow)->stop(); !ended) return ended;
    record::Record r;
    r.set("bound", kFragments).set("most_fragments", (*flow)->most_fragments());
    out_.record.set("bounded", std::move(r));
    say("bound of %u fragments: %u in flight at most\n", static_cast<unsigned>(kFragments),
        static_cast<unsigned>((*flow)->most_fragments()));
    return {};
  }

  // Nobody looks at what came until both windows are full.
  Result<void> full() {
    for (const bool nops : {true, false}) {
      Parameters more{"depth=" + std::to_string(kFullDepth)};
      if (!nops) more.push_back(std::string("nop_us=") + kNever);
      auto flow = Flow::open(far_, more, true);
      if (!flow) return tl::unexpected(flow.error());
      std::uint32_t rounds = 0;
      std::uint64_t theirs = UINT64_MAX;
      bool ended = true;
      for (; rounds < kRounds && ended; ++rounds) {
        (*flow)->fill(kSmall, kFullDepth + kQueue);
        usleep(kPageAge / 1000);  // this end does not look: nothing that came is given back
        const auto there = count_of("channels", "channel", "in_flight", far_.process());
        if (!there) return tl::unexpected(there.error());
        theirs = std::min(theirs, *there);
        ended = (*flow)->wait_for((*flow)->sent(), (*flow)->sent(), kFullLimit);
      }
      const weft_channel_counts c = (*flow)->counts();
      if (auto stopped = (*flow)->stop(); !stopped) return stopped;
      record::Record r;
      r.set("rounds", std::uint64_t{rounds})
          .set("depth", std::uint64_t{kFullDepth})
          .set("in_flight", std::uint64_t{(*flow)->most_in_flight()})
          .set("in_flight_there", theirs)
          .set("ended", ended)
          .set("nops", std::uint64_t{c.nops});
      out_.record.set(nops ? "full" : "full_without_nops", std::move(r));
      say(nops ? "both windows full: %s, %u NOPs of this end\n" : "the same without NOPs: %s, %u\n",
          ended ? "they empty" : "they do not empty", static_cast<unsigned>(c.nops));
    }
    return {};
  }

  template <class... Values>
  void say(const char* format, Values... values) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), format, values...);
    out_.text += line.data();
  }

  FarEnd& far_;
  const std::uint32_t count_;
  Measured out_;
};

}  // namespace

Result<Measured> protocol(FarEnd& far, const Options& o) { return Protocol(far, o).go(); }

}  // namespace weft::bench
