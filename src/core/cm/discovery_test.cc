// Which peers are asked, how often, what is believed and for how long
// (docs/protocol/modes.md#capability-discovery).
#include "core/cm/discovery.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::cm {
namespace {

using wire::Capability;
using wire::Mode;

const wire::Address kHere = wire::Address::v4(10, 0, 0, 1);
const wire::Address kThere = wire::Address::v4(10, 0, 0, 2);
constexpr Qpn kTarget{0x050011};  // slot 5

DiscoveryConfig config(std::uint64_t instance) {
  DiscoveryConfig c;
  c.max_peers = 4;
  c.slot = static_cast<std::uint8_t>(instance);
  c.seed = c.instance = instance;
  c.buffer_share = 1000 * static_cast<std::uint32_t>(instance);
  return c;
}

std::vector<Capability> sent(Discovery& d) {
  std::vector<Capability> all;
  for (MadOut out; d.poll_mad(out);) {
    all.emplace_back();
    wire::MadError error{};
    EXPECT_TRUE(decode(out.mad, all.back(), error));
  }
  return all;
}

void give(Discovery& d, const Capability& c, Time now, const wire::Address& from = kThere) {
  wire::Mad mad;
  encode(c, mad);
  EXPECT_TRUE(d.on_mad(now, {.source = from, .destination = kHere}, mad));
}

int news(Discovery& d) {
  int n = 0;
  for (PeerId p; d.poll_news(p); ++n) EXPECT_EQ(p, (PeerId{kThere, 5}));
  return n;
}

// The answer that a process with this config and instance gives.
Capability answer_of(const Capability& query, std::uint64_t instance, std::uint16_t modes = 3) {
  DiscoveryConfig c = config(instance);
  c.modes = modes;
  c.preferred = (modes & 1U) != 0 ? Mode::kRoce : Mode::kIrn;
  Discovery d(c);
  give(d, query, Time{}, kHere);
  return sent(d).at(0);
}

// One try, then after 1, 4 and 16 ms: silent. Ten seconds of quiet, then three more.
TEST(Silence, IsThreePacketsAndTenSecondsOfPlainRoce) {
  Discovery d(config(1));
  Time now{};
  for (int round = 0; round < 3; ++round) {
    const Time began = now;
    EXPECT_EQ(d.look_up(now, kHere, kThere, kTarget).knowledge, Knowledge::kAsking);
    std::vector<Capability> queries = sent(d);
    ASSERT_EQ(queries.size(), 1U);
    EXPECT_EQ(queries[0].target, kTarget);
    EXPECT_EQ(queries[0].instance, 1U);
    EXPECT_EQ(queries[0].transaction >> 56U, 1U);
    for (const auto& [at, packets] : {std::pair{1, 1U}, {5, 1U}, {21, 0U}}) {
      EXPECT_EQ(d.next_deadline(), began + milliseconds(at));
      now = began + milliseconds(at);
      d.on_timer(now - picoseconds(1));
      EXPECT_TRUE(sent(d).empty());
      EXPECT_EQ(d.look_up(now, kHere, kThere, kTarget).knowledge, Knowledge::kAsking);
      d.on_timer(now);
      const std::vector<Capability> more = sent(d);
      ASSERT_EQ(more.size(), packets);
      if (packets == 1) {
        EXPECT_EQ(more[0], queries[0]);
      }
    }
    EXPECT_EQ(news(d), 1);
    const Known k = d.look_up(now, kHere, kThere, kTarget);
    EXPECT_EQ(k.knowledge, Knowledge::kSilent);
    EXPECT_EQ(k.mode, Mode::kRoce);
    EXPECT_EQ(d.next_deadline(), now + seconds(10));
    now = now + seconds(10);
    d.on_timer(now - picoseconds(1));
    EXPECT_EQ(d.look_up(now, kHere, kThere, kTarget).knowledge, Knowledge::kSilent);
    EXPECT_TRUE(sent(d).empty());
    d.on_timer(now);
    EXPECT_EQ(d.peers(), 0U);
    EXPECT_EQ(d.next_deadline(), kNever);
  }
}

TEST(Answers, SettleTheModeAndAreKept) {
  Discovery d(config(1));
  d.look_up(Time{}, kHere, kThere, kTarget);
  const Capability query = sent(d).at(0);
  give(d, answer_of(query, 2), Time{});
  EXPECT_EQ(news(d), 1);
  const Known k = d.look_up(Time{}, kHere, kThere, {0x05FFFF});  // another queue pair of the same process
  EXPECT_EQ(k.knowledge, Knowledge::kSpeaks);
  EXPECT_EQ(k.mode, Mode::kIrn);
  EXPECT_EQ(k.capability.buffer_share, 2000U);
  EXPECT_EQ(k.capability.target, kTarget);
  d.on_timer(Time{} + seconds(1000));
  EXPECT_TRUE(sent(d).empty());
  EXPECT_EQ(d.look_up(Time{} + seconds(1000), kHere, kThere, kTarget).knowledge, Knowledge::kSpeaks);
  // Another process at that address is another peer.
  EXPECT_EQ(d.look_up(Time{}, kHere, kThere, {0x060011}).knowledge, Knowledge::kAsking);
}

TEST(Answers, CountOnlyFromThePeerAndForTheQuestion) {
  Discovery d(config(1));
  d.look_up(Time{}, kHere, kThere, kTarget);
  const Capability good = answer_of(sent(d).at(0), 2);
  Capability bad = good;
  ++bad.transaction;
  give(d, bad, Time{});
  bad = good;
  bad.target = {0x060011};
  give(d, bad, Time{});
  give(d, good, Time{}, wire::Address::v4(10, 0, 0, 66));
  EXPECT_EQ(news(d), 0);
  EXPECT_EQ(d.counters().strays, 3U);
  give(d, good, Time{});
  EXPECT_EQ(news(d), 1);
}

// Linux mirrors a Get that nobody answers, with an error status.
TEST(Answers, WithAnErrorStatusAreSilence) {
  Discovery d(config(1));
  d.look_up(Time{}, kHere, kThere, kTarget);
  Capability mirror = sent(d).at(0);
  mirror.reply = true;
  mirror.status = 12;
  give(d, mirror, Time{});
  EXPECT_EQ(news(d), 1);
  const Known k = d.look_up(Time{}, kHere, kThere, kTarget);
  EXPECT_EQ(k.knowledge, Knowledge::kSilent);
  EXPECT_EQ(k.mode, Mode::kRoce);
  EXPECT_EQ(d.next_deadline(), Time{} + milliseconds(1)) << "the entry may be early";
  d.on_timer(Time{} + milliseconds(1));
  EXPECT_EQ(d.next_deadline(), Time{} + seconds(10));
}

TEST(Processes, ThatReplacedAnotherAreAskedAnew) {
  for (const bool by_query : {false, true}) {
    Discovery d(config(1));
    d.look_up(Time{}, kHere, kThere, kTarget);
    const Capability query = sent(d).at(0);
    give(d, answer_of(query, 5), Time{});
    EXPECT_EQ(news(d), 1);
    if (by_query) {
      Discovery same(config(5));
      same.look_up(Time{}, kThere, kHere, {0x010001});
      Capability theirs = sent(same).at(0);
      give(d, theirs, Time{});
      EXPECT_EQ(news(d), 0) << "the same process asks us: nothing new";
      theirs.instance = 6;
      give(d, theirs, Time{});
    } else {
      give(d, answer_of(query, 5), Time{});
      EXPECT_EQ(news(d), 0) << "a repeated reply";
      give(d, answer_of(query, 6), Time{});
    }
    EXPECT_EQ(news(d), 1);
    EXPECT_EQ(d.look_up(Time{}, kHere, kThere, kTarget).knowledge, Knowledge::kAsking);
    EXPECT_EQ(d.counters().renewed, 1U);
  }
}

TEST(Queries, AreAnsweredWithWhatWeAre) {
  DiscoveryConfig c = config(2);
  c.flags = wire::kCapElideIcrc;
  c.mtu = 4096;
  c.bdp_cap = 77;
  Discovery d(c);
  Capability query;
  query.transaction = 99;
  query.target = {0x020007};
  query.flags = wire::kCapElideIcrc;
  give(d, query, Time{});
  Capability answer = sent(d).at(0);
  EXPECT_TRUE(answer.reply);
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.transaction, 99U);
  EXPECT_EQ(answer.target, Qpn{0x020007});
  EXPECT_EQ(answer.modes, wire::kAllModes);
  EXPECT_EQ(answer.mtu, 4096);
  EXPECT_EQ(answer.bdp_cap, 77);
  EXPECT_EQ(answer.flags, wire::kCapElideIcrc) << "the same host";
  query.host_id[0] = 1;
  give(d, query, Time{});
  EXPECT_EQ(sent(d).at(0).flags, 0) << "another host";
  for (int i = 0; i < 1000; ++i) give(d, query, Time{});
  EXPECT_EQ(sent(d).size() + d.counters().overflow, 1000U);
}

TEST(Peers, BeyondTheTablePushOutTheOldestAnswerButNoQuestion) {
  Discovery d(config(1));
  const auto qpn = [](std::uint32_t slot) { return Qpn{slot << 16U | 7}; };
  for (std::uint32_t slot = 1; slot <= 4; ++slot) d.look_up(Time{}, kHere, kThere, qpn(slot));
  const Known full = d.look_up(Time{}, kHere, kThere, qpn(9));
  EXPECT_EQ(full.knowledge, Knowledge::kSilent) << "no room to ask: plain RoCE";
  EXPECT_EQ(d.counters().overflow, 1U);
  std::vector<Capability> queries = sent(d);
  give(d, answer_of(queries.at(2), 3), Time{});
  give(d, answer_of(queries.at(1), 2), Time{});
  for (PeerId told; d.poll_news(told);) {
  }
  EXPECT_EQ(d.look_up(Time{}, kHere, kThere, qpn(9)).knowledge, Knowledge::kAsking);
  EXPECT_EQ(d.look_up(Time{}, kHere, kThere, qpn(2)).knowledge, Knowledge::kSpeaks);
  EXPECT_EQ(d.peers(), 4U);
}

// Every loss pattern of the first six MADs: known as soon as one query and its answer came through.
TEST(Loss, OnlyThreeLostExchangesInARowMakeAPeerSilent) {
  for (unsigned pattern = 0; pattern < 64; ++pattern) {
    Discovery a(config(1)), b(config(5));
    a.look_up(Time{}, kHere, kThere, kTarget);
    unsigned index = 0;
    bool through = false;
    Time now{};
    for (int turn = 0; turn < 10 && a.look_up(now, kHere, kThere, kTarget).knowledge == Knowledge::kAsking;
         ++turn) {
      for (const Capability& q : sent(a)) {
        if ((pattern >> index++ & 1U) == 0) give(b, q, now, kHere);
      }
      for (const Capability& r : sent(b)) {
        if ((pattern >> index++ & 1U) != 0) continue;
        give(a, r, now);
        through = true;
      }
      now = std::max(now, std::min(a.next_deadline(), now + seconds(1)));
      a.on_timer(now);
    }
    EXPECT_EQ(a.look_up(now, kHere, kThere, kTarget).knowledge,
              through ? Knowledge::kSpeaks : Knowledge::kSilent);
    EXPECT_EQ(news(a), 1);
  }
}

TEST(Modes, AreThePreferredOfWhatBothSpeak) {
  constexpr std::uint16_t kR = mode_bit(Mode::kRoce), kI = mode_bit(Mode::kIrn), kS = mode_bit(Mode::kSrnic);
  EXPECT_EQ(common_mode(kR | kI | kS, kR | kI | kS, Mode::kIrn), Mode::kIrn);
  EXPECT_EQ(common_mode(kR | kI | kS, kR | kS, Mode::kIrn), Mode::kSrnic);
  EXPECT_EQ(common_mode(kR | kI, kR | kS, Mode::kIrn), Mode::kRoce);
  EXPECT_EQ(common_mode(kR | kI, 0, Mode::kIrn), Mode::kRoce);
  EXPECT_EQ(common_mode(kI, kR, Mode::kIrn), Mode::kIrn) << "told to use nothing else";
}

// A queue pair holds its first packet until it hears news of its peer. If a full table drops the answer, the
// news must still be delivered.
TEST(News, OfAnAnswerOutliveTheAnswer) {
  DiscoveryConfig one = config(1);
  one.max_peers = 1;
  Discovery d(one);
  d.look_up(Time{}, kHere, kThere, kTarget);
  give(d, answer_of(sent(d).at(0), 5), Time{});
  d.look_up(Time{}, kHere, kThere, Qpn{0x060011});
  EXPECT_EQ(news(d), 1);
}

}  // namespace
}  // namespace weft::cm
