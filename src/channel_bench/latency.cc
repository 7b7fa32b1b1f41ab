// Ping-pong (X-RDMA §7.1): half the time of a round trip, by size, of
//
//   raw      SENDs of a plain verbs program, as ibv_rc_pingpong's
//   bare     messages over a channel, bare data
//   traced   the same, and every message carries the head that tracing needs
//   call     requests and responses of as many bytes
//   reqrsp   the same, traced: the paper's req-rsp mode
//   large    bare, where every message is announced and fetched
//
// and, where they are asked for, of other programs (external.h).
//
// A turn measures each row once; what counts is the median of turns, and ratios are made within a turn.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "channel_bench/bench.h"
#include "channel_bench/external.h"
#include "channel_bench/raw.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint64_t kLimit = 10'000'000'000;  // of a round, in ns: then the far end is gone
constexpr std::uint16_t kMain = 0;
constexpr std::uint16_t kLarge = 1;
constexpr std::uint32_t kLeast = 256;  // of small_msg_size

// Behind kLargeMode stand the programs of others.
enum Row : std::size_t { kRaw, kBare, kTraced, kCall, kReqRsp, kLargeMode, kOwnRows };
constexpr std::size_t kRows = kOwnRows + kPrograms;
constexpr std::array<const char*, kOwnRows> kNames{"raw", "bare", "traced", "call", "reqrsp", "large"};
const char* name_of(std::size_t row) {
  return row < kOwnRows ? kNames[row] : programs()[row - kOwnRows].name;
}

// As `weft bench` was told it.
std::string own_address() {
  const char* const address = std::getenv("WEFT_ADDR");
  return address == nullptr ? kNear : address;
}

class Latency {
 public:
  Latency(FarEnd& far, const Options& o) : far_(far), o_(o), externals_(own_address(), o.far) {}

  Result<Measured> go() {
    if (auto ready = prepare(); !ready) return tl::unexpected(ready.error());
    Measured out;
    out.record.set("turns", std::uint64_t{o_.turns}).set("rounds", std::uint64_t{o_.rounds});
    std::array<char, 200> line{};
    std::snprintf(line.data(), line.size(), "%-8s", "bytes");
    out.text = line.data();
    for (std::size_t row = 0; row < rows(); ++row) {
      std::snprintf(line.data(), line.size(), row < kOwnRows ? " %10s" : " %15s", name_of(row));
      out.text += line.data();
    }
    out.text += "   bare/raw  traced/bare  reqrsp/bare  reqrsp/call\n";
    for (const std::uint32_t size : o_.sizes) {
      if (auto done = measure(size, out); !done) return tl::unexpected(done.error());
    }
    out.text += "half a round trip in us, medians of " + std::to_string(o_.turns) + " turns of " +
                std::to_string(o_.rounds) + "\n";
    for (const auto& [name, why] : externals_.absent()) {
      out.text += name + ": absent; " + why + "\n";
      record::Record one;
      one.set("name", name).set("why", why);
      out.record.append("absent", std::move(one));
    }
    return out;
  }

 private:
  std::size_t rows() const { return o_.beside ? kRows : std::size_t{kOwnRows}; }

  Result<void> prepare() {
    const std::uint32_t most = *std::max_element(o_.sizes.begin(), o_.sizes.end());
    const std::vector<std::string> parameters{"channels=4", "keepalive_intv_ms=600000"};
    auto main = Pair::open(far_, kMain, parameters);
    if (!main) return tl::unexpected(main.error());
    main_ = std::move(*main);
    auto large =
        Pair::open(far_, kLarge, {parameters[0], parameters[1], "small_msg_size=" + std::to_string(kLeast)});
    if (!large) return tl::unexpected(large.error());
    large_ = std::move(*large);
    const RawEnd::Size size{most, 16, 32};
    auto raw = RawEnd::open(size);
    if (!raw) return tl::unexpected(raw.error());
    raw_ = std::move(*raw);
    const auto met = far_.ask("raw " + std::to_string(size.bytes) + " " + std::to_string(size.receives) +
                              " " + raw_->introduce());
    if (!met) return tl::unexpected(met.error());
    return raw_->meet(*met);
  }

  Result<void> measure(std::uint32_t size, Measured& out) {
    std::array<Turns, kRows> us;
    for (std::uint32_t turn = 0; turn < o_.turns; ++turn) {
      for (std::size_t i = 0; i < rows(); ++i) {
        const std::size_t row = (turn + i) % rows();
        if (row == kLargeMode && size <= kLeast) continue;  // it would be small there, too
        if (row >= kOwnRows) {
          const auto half = externals_.half_round_trip(programs()[row - kOwnRows], size, o_.rounds);
          us[row].push_back(half);
          continue;
        }
        const auto half = half_round_trip(static_cast<Row>(row), size);
        if (!half)
          return fail(std::string(kNames[row]) + ", " + std::to_string(size) +
                      " bytes: " + half.error().message);
        us[row].push_back(*half);
      }
    }
    tell(size, us, out);
    return {};
  }

  void tell(std::uint32_t size, const std::array<Turns, kRows>& us, Measured& out) {
    record::Record one;
    one.set("bytes", std::uint64_t{size});
    std::array<char, 120> line{};
    std::snprintf(line.data(), line.size(), "%-8u", size);
    out.text += line.data();
    for (std::size_t row = 0; row < rows(); ++row) {
      const int width = row < kOwnRows ? 10 : 15;
      const std::vector<double> all = values_of(us[row]);
      if (all.empty()) {
        std::snprintf(line.data(), line.size(), " %*s", width, "-");
        out.text += line.data();
        continue;
      }
      const double middle = median(all);
      std::snprintf(line.data(), line.size(), " %*.2f", width, middle);
      out.text += line.data();
      record::Record r;
      r.set("us", middle)
          .set("least_us", *std::min_element(all.begin(), all.end()))
          .set("most_us", *std::max_element(all.begin(), all.end()))
          .set("over_raw", ratio_of(us[row], us[kRaw]))
          .set("over_bare", ratio_of(us[row], us[kBare]));
      if (row == kReqRsp) r.set("over_call", ratio_of(us[kReqRsp], us[kCall]));
      one.set(name_of(row), std::move(r));
    }
    std::snprintf(line.data(), line.size(), " %10.2f %12.2f %12.2f %12.2f\n", ratio_of(us[kBare], us[kRaw]),
                  ratio_of(us[kTraced], us[kBare]), ratio_of(us[kReqRsp], us[kBare]),
                  ratio_of(us[kReqRsp], us[kCall]));
    out.text += line.data();
    out.record.append("sizes", std::move(one));
  }

  // The median of a turn, in us.
  Result<double> half_round_trip(Row row, std::uint32_t size) {
    if (row == kRaw) return raw_turn(size);
    Pair& pair = row == kLargeMode ? *large_ : *main_;
    const bool traced = row == kTraced || row == kReqRsp;
    if (row != kLargeMode) {
      if (auto set = pair.set("trace_sample_mask", traced ? UINT64_MAX : 0); !set)
        return tl::unexpected(set.error());
    }
    if (auto begun = pair.serve(); !begun) return tl::unexpected(begun.error());
    const bool asks = row == kCall || row == kReqRsp;
    const auto half = turn([&] { return asks ? call(pair, size) : send(pair, size); });
    if (auto ended = pair.stop(); !ended) return tl::unexpected(ended.error());
    return half;
  }

  Result<double> raw_turn(std::uint32_t size) {
    if (const auto begun = far_.ask("echo " + std::to_string(size) + " 0"); !begun)
      return tl::unexpected(begun.error());
    const auto half = turn([&] { return raw_round(size); });
    if (const auto ended = far_.ask("stop"); !ended) return tl::unexpected(ended.error());
    return half;
  }

  template <class Round>
  Result<double> turn(Round round) {
    for (std::uint32_t i = 0; i < o_.rounds / 10; ++i) {
      if (!round()) return fail("a message does not come back");
    }
    std::vector<std::uint64_t> ns(o_.rounds);
    for (std::uint64_t& t : ns) {
      const std::uint64_t began = now_ns();
      if (!round()) return fail("a message does not come back");
      t = now_ns() - began;
    }
    const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
    std::nth_element(ns.begin(), middle, ns.end());
    return static_cast<double>(*middle) / 2e3;
  }

  bool raw_round(std::uint32_t size) {
    if (!raw_->send(size)) return false;
    RawEnd::Came came;
    const std::uint64_t end = now_ns() + kLimit;
    for (unsigned i = 0; came.received == 0 || came.sent == 0; ++i) {
      if (!raw_->poll(came) || (i % 4096 == 4095 && now_ns() > end)) return false;
    }
    return raw_->give_back(1);
  }

  static bool send(const Pair& pair, std::uint32_t size) {
    weft_message* const m = weft_allocate(pair.session().get(), size);
    if (m == nullptr) return false;
    if (weft_send(pair.channel(), m, 0, 0) == 0) return back(pair, WEFT_MESSAGE);
    weft_release(pair.session().get(), m);
    return false;
  }
  static bool call(const Pair& pair, std::uint32_t size) {
    weft_message* const m = weft_allocate(pair.session().get(), size);
    if (m == nullptr) return false;
    if (weft_call(pair.channel(), m, 0, 0, nullptr) == 0) return back(pair, WEFT_RESPONSE);
    weft_release(pair.session().get(), m);
    return false;
  }
  static bool back(const Pair& pair, int kind) {
    weft_context* const context = pair.session().get();
    std::array<weft_notice, 16> told;
    const std::uint64_t end = now_ns() + kLimit;
    for (unsigned i = 0; i % 4096 != 4095 || now_ns() < end; ++i) {
      const int n = weft_poll(context, told.data(), static_cast<int>(told.size()));
      bool here = false;
      for (int k = 0; k < n; ++k) {
        const weft_notice& one = told[static_cast<std::size_t>(k)];
        here = here || one.kind == kind;
        if (one.message != nullptr) weft_release(context, one.message);
        if (one.kind == WEFT_CLOSED || one.kind == WEFT_OUTCOME) return false;
      }
      if (here) return true;
    }
    return false;
  }

  FarEnd& far_;
  const Options& o_;
  Externals externals_;
  std::unique_ptr<Pair> main_;
  std::unique_ptr<Pair> large_;
  std::unique_ptr<RawEnd> raw_;
};

}  // namespace

Result<Measured> latency(FarEnd& far, const Options& o) { return Latency(far, o).go(); }

}  // namespace weft::bench
