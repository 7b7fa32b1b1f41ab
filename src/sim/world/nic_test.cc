// Designs from TOML, and scenarios whose hosts have one: a detailed NIC stands wherever the ideal one does,
// under the same observers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/nic_design.h"
#include "sim/world/whole_run.h"

namespace weft::sim {
namespace {

using testing::HasSubstr;

std::string mistake(const std::string& text) {
  const auto d = parse_design(text, "mine.toml", "");
  return d ? "none" : d.error().message;
}

TEST(NicDesign, EveryBuiltInDesignIsValid) {
  EXPECT_EQ(design_rows().size(), 10U);
  for (const DesignRow& row : design_rows()) {
    const auto d = design_named(row.name, "", "");
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->name, row.name);
    EXPECT_FALSE(d->text.empty());
  }
}

TEST(NicDesign, WhatCannotBeGetsOneSentence) {
  EXPECT_THAT(mistake("clock_mhz = 0"), HasSubstr("clock_mhz: the clock runs at 1 to 10000 MHz, not at 0"));
  EXPECT_THAT(
      mistake("on_chip = \"64KiB\"\n[context]\npolicy = \"fcfs\"\ncache = 300"),
      HasSubstr("context.cache: 300 contexts of 256 bytes are larger than the memory on chip, 65536 bytes"));
  EXPECT_THAT(mistake("on_chip = \"64KiB\"\n[context]\nmost = 1000"),
              HasSubstr("context.most: 1000 contexts of 256 bytes are larger than the memory on chip"));
  EXPECT_THAT(mistake("[turbo]\nrate = 1"), HasSubstr("turbo: there is no such setting here; there are"));
  EXPECT_THAT(mistake("[pcie]\nlanes = 16"), HasSubstr("pcie.lanes: there is no such setting here"));
  EXPECT_THAT(mistake("[context]\npolicy = \"lazy\""),
              HasSubstr("context.policy: 'lazy' is not one of on-chip, fcfs"));
  EXPECT_THAT(mistake("[context]\npolicy = \"fcfs\"\ncache = 4\nhome = \"board\""),
              HasSubstr("the board has no memory"));
  EXPECT_THAT(mistake("[pipelines]\ntransmit = 0"),
              HasSubstr("pipelines.transmit: interval and depth are from 1"));
  EXPECT_THAT(mistake("[recovery]\nevent_bytes = 16"), HasSubstr("set recovery.bitmaps to host"));
  EXPECT_THAT(mistake("pcie = 3"), HasSubstr("pcie: write a table, [pcie]"));
  EXPECT_THAT(mistake("[scheduler]\npicks = \"lucky\""),
              HasSubstr("scheduler.picks: 'lucky' is not one of ready, blind"));
  EXPECT_THAT(mistake("[recovery]\nreorder = \"some\""),
              HasSubstr("recovery.reorder: 'some' is not one of nothing, per-qp, shared"));
  EXPECT_THAT(mistake("[recovery]\nreorder_buffer = \"64KiB\""),
              HasSubstr("65536 bytes of no buffer; set recovery.reorder to per-qp or shared"));
  EXPECT_THAT(mistake("[recovery]\nreorder = \"shared\""),
              HasSubstr("0 bytes do not hold the payload of the largest packet, 4096"));
  EXPECT_THAT(mistake("on_chip = \"1MiB\"\n[context]\nmost = 100\n[recovery]\nreorder = \"per-qp\"\n"
                      "reorder_buffer = \"512KiB\""),
              HasSubstr("100 of 524288 bytes are larger than the memory on chip, 1048576 bytes"));
  EXPECT_THAT(mistake("on_chip = \"1MiB\"\n[context]\nmost = 100\n[recovery]\nreorder = \"shared\"\n"
                      "reorder_buffer = \"512KiB\""),
              testing::Eq("none"));
}

TEST(NicDesign, ChangesAreAppliedOnTop) {
  const auto d = design_named("srnic", "", "scheduler.wqes=4, pcie.rate=64Gbps,clock_mhz=500");
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->scheduler.wqes, 4U);
  EXPECT_EQ(d->pcie.rate, gigabits(64));
  EXPECT_EQ(d->clock_mhz, 500U);
  EXPECT_THAT(design_named("srnic", "", "wqes").error().message, HasSubstr("'wqes' is not NAME=VALUE"));
  EXPECT_THAT(design_named("quick", "", "").error().message,
              HasSubstr("'quick' is neither ideal, nor one of"));
}

std::string world(const std::string& design, const std::string& mode) {
  return "hosts = 3\nlimit = \"200ms\"\ncheck = true\nbytes = true\n[network]\ndelay = "
         "\"500ns\"\n[transport]\nmode = \"" +
         mode + "\"\nmtu = 1024\n[nic]\ndesign = \"" + design +
         "\"\n[[flow]]\nfrom = 0\nto = 1\nop = \"send\"\nsize = \"3000B\"\ncount = 40\nqps = 3\n"
         "[[flow]]\nfrom = 1\nto = 0\nop = \"read\"\nsize = \"5000B\"\ncount = 30\nqps = 2\ndepth = 4\n"
         "[[flow]]\nfrom = 2\nto = 0\nop = \"write\"\nsize = \"64B\"\ncount = 100\nqps = 2\n"
         "[[flow]]\nfrom = 2\nto = 1\nop = \"fetch_add\"\nsize = \"8B\"\ncount = 20\n";
}

// Every design, every mode, with real bytes, without losses and with 1 %: everything arrives, and no observer
// has anything to say, the one that watches the NICs among them.
TEST(DetailedWorld, EveryDesignCarriesEveryModeUnderTheObservers) {
  for (const DesignRow& row : design_rows()) {
    for (const char* mode : {"roce", "irn", "srnic"}) {
      for (const char* loss : {"0", "1%"}) {
        SCOPED_TRACE(std::string(row.name) + " " + mode + " " + loss);
        // Caches of a few contexts, so that they are fought for.
        const bool cached = std::string(row.text).find("cache = 2") != std::string::npos ||
                            std::string(row.text).find("cache = 3") != std::string::npos;
        const auto run =
            finished(scenario(world(row.name, mode), {std::string("network.loss=") + loss,
                                                      cached ? "nic.set=context.cache=3" : "nic.set="}));
        EXPECT_TRUE(run->complete());
        EXPECT_EQ(run->packets_in_use(), 0U);
        ASSERT_NE(run->findings(), nullptr);
        EXPECT_EQ(run->findings()->total(), 0U) << run->findings()->text();
      }
    }
  }
}

// A cache of WQEs for each queue pair, filled as far as it goes: every byte is accounted for.
TEST(DetailedWorld, ACacheOfWqesIsFilledOverPcie) {
  const auto run = finished(
      scenario(world("csrna-nb", "roce"), {"nic.set=wqe.send_cache=8, scheduler.wqes=2", "flow.depth=16"}));
  EXPECT_TRUE(run->complete());
  EXPECT_EQ(run->findings()->total(), 0U) << run->findings()->text();
}

// SRNIC §4.3.1: blind, a turn is paid for before its credit is looked at. Whatever the design and the mode,
// everything arrives all the same, losses are repaired, and every byte over PCIe is accounted for.
TEST(DetailedWorld, ABlindSchedulerLosesTurnsAndNothingElse) {
  for (const char* design : {"srnic", "csrna-nb", "cx6-like"}) {
    for (const char* mode : {"roce", "irn", "srnic"}) {
      // roce waits long for what is lost, and a blind scheduler goes round all that time.
      for (const char* loss : {"0", "1%"}) {
        if (std::string(mode) == "roce" && std::string(loss) != "0") continue;
        SCOPED_TRACE(std::string(design) + " " + mode + " " + loss);
        const auto run =
            finished(scenario(world(design, mode), {std::string("network.loss=") + loss, "flow.depth=8",
                                                    "transport.bdp_cap=4", "transport.roce_window=4",
                                                    "nic.set=scheduler.picks=blind, scheduler.turns=4"}));
        EXPECT_TRUE(run->complete());
        EXPECT_EQ(run->findings()->total(), 0U) << run->findings()->text();
        EXPECT_GT(static_cast<DetailedNic&>(run->nic(2)).counters().empty_turns, 10U);
      }
    }
  }
}

// csRNA §4.4: what is in the send window is acknowledged without its context. A window that is too small lets
// queue pairs out, and nothing is lost by that.
TEST(DetailedWorld, AnswersOfWhatIsInTheSendWindowAskForNoContext) {
  const auto asked = [](const std::string& window) {
    const auto run = finished(scenario(world("csrna-nb", "roce"), {"nic.set=context.send_window=" + window}));
    EXPECT_TRUE(run->complete());
    EXPECT_EQ(run->findings()->total(), 0U) << run->findings()->text();
    std::uint64_t n = 0;
    for (std::uint32_t h = 0; h < 3; ++h)
      n += static_cast<DetailedNic&>(run->nic(h)).contexts().counters().requests;
    return n;
  };
  const std::uint64_t all = asked("0");
  const std::uint64_t none = asked("1000");
  EXPECT_LT(none, all * 3 / 4);
  const std::uint64_t some = asked("3");
  EXPECT_GT(some, none);
  EXPECT_LE(some, all);
}

TEST(DetailedWorld, RefusesMoreQueuePairsThanTheDesignHasContexts) {
  const auto s = parse_scenario(world("ernic", "roce"), "test", std::vector<std::string>{"flow.qps=100"});
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, HasSubstr("ernic has contexts for 127 queue pairs, and host0 needs"));
}

TEST(DetailedWorld, RefusesSettingsOfTheIdealNic) {
  const auto with = [](const std::string& change) {
    const auto s = parse_scenario(world("srnic", "srnic"), "test", std::vector<std::string>{change});
    return s ? std::string("none") : s.error().message;
  };
  EXPECT_THAT(with("nic.retransmit_delay=1us"),
              HasSubstr("nic.retransmit_delay: a design has delays of its own"));
  EXPECT_THAT(with("nic.design=turbo"), HasSubstr("nic.design: 'turbo' is neither ideal"));
  EXPECT_THAT(with("nic.design=ideal"), testing::Eq("none"));
}

double wire_gbps(const char* design, const char* mode, std::uint32_t queue_pairs) {
  const auto run = finished(scenario(
      "hosts = 2\n[network]\ndelay = \"10ns\"\n[transport]\nmtu = 1024\nmode = \"" + std::string(mode) +
          "\"\n[nic]\ndesign = \"" + design + "\"\n[[flow]]\nop = \"send\"\nsize = \"512B\"\n",
      {"flow.qps=" + std::to_string(queue_pairs),
       "flow.count=" + std::to_string(std::max(20'000U / queue_pairs, 24U))}));
  EXPECT_TRUE(run->complete());
  const NicCounters c = static_cast<DetailedNic&>(run->nic(0)).counters();
  return static_cast<double>(c.frame_bytes - 20 * c.packets_out) * 8e3 /
         static_cast<double>(run->results()[0].elapsed().ps);
}

// SRNIC §2.2 and §6.1: all contexts on chip bear 128 to 4096 connections alike; a cache of 256 contexts does
// not.
TEST(DetailedWorld, ACacheOfContextsCollapsesAndAllOnChipDoNot) {
  const double few = wire_gbps("srnic", "srnic", 128);
  EXPECT_GT(few, 94);
  EXPECT_NEAR(wire_gbps("srnic", "srnic", 4096), few, 3);
  const double cached = wire_gbps("cx6-like", "roce", 128);
  EXPECT_GT(cached, 90);
  EXPECT_NEAR(wire_gbps("cx6-like", "roce", 256), cached, 4);
  EXPECT_LT(wire_gbps("cx6-like", "roce", 1024), 0.8 * cached);
}

// SRNIC §4.2: without losses nothing goes to software; with them some does, as events and not as packets.
TEST(DetailedWorld, OnlyWhatIsOutOfOrderTakesTheSlowPath) {
  const auto events = [](const char* loss) {
    const auto run = finished(scenario(world("srnic", "srnic"), {std::string("network.loss=") + loss}));
    std::uint64_t n = 0;
    for (std::uint32_t h = 0; h < 3; ++h) n += static_cast<DetailedNic&>(run->nic(h)).counters().events;
    return n;
  };
  EXPECT_EQ(events("0"), 0U);
  EXPECT_GT(events("2%"), 10U);
}

// SRNIC §3.2.2: with a buffer for each queue pair, packets ahead of a gap have room; of one of that size that
// all share, the losses of some take the room of others. Either way everything arrives.
TEST(DetailedWorld, ASharedReorderingBufferRunsOutWhereOwnOnesDoNot) {
  const auto lost_for_room = [](const char* reorder, const char* size) {
    const auto run = finished(
        scenario("hosts = 2\nlimit = \"200ms\"\ncheck = true\n[network]\ndelay = \"5us\"\nloss = \"2%\"\n"
                 "[transport]\nmode = \"irn\"\nmtu = 1024\nbdp_cap = 16\n[nic]\ndesign = \"irn-nic\"\n"
                 "[[flow]]\nop = \"write\"\nsize = \"64KiB\"\ncount = 8\nqps = 16\ndepth = 2\n"
                 "[[flow]]\nop = \"read\"\nsize = \"64KiB\"\ncount = 8\nqps = 4\ndepth = 2\n",
                 {"nic.set=context.most=64, recovery.reorder=" + std::string(reorder) +
                  ", recovery.reorder_buffer=" + size}));
    EXPECT_TRUE(run->complete());
    EXPECT_EQ(run->packets_in_use(), 0U);
    EXPECT_EQ(run->findings()->total(), 0U) << run->findings()->text();
    std::uint64_t lost = 0;
    for (std::uint32_t h = 0; h < 2; ++h)
      lost += static_cast<DetailedNic&>(run->nic(h)).counters().reorder_overflows;
    return lost;
  };
  EXPECT_EQ(lost_for_room("per-qp", "16KiB"), 0U);  // what may be in flight
  EXPECT_GT(lost_for_room("shared", "16KiB"), 0U);
  EXPECT_GT(lost_for_room("per-qp", "4KiB"), 0U);
  EXPECT_EQ(lost_for_room("shared", "320KiB"), 0U);
}

// A small receive buffer in front of a slow receiver: without PFC it drops, with PFC it stops the
// network, and nothing is dropped.
TEST(DetailedWorld, AFullReceiveBufferDropsOrStopsTheNetwork) {
  const auto drops = [](const char* pfc) {
    const auto run =
        finished(scenario(world("srnic", "roce"), {std::string("switch.pfc=") + pfc,
                                                   "nic.set=buffers.receive=48KiB, pipelines.receive=200"}));
    EXPECT_TRUE(run->complete());
    EXPECT_EQ(run->findings()->total(), 0U) << run->findings()->text();
    return run->totals().nic_overflows;
  };
  EXPECT_GT(drops("false"), 0U);
  EXPECT_EQ(drops("true"), 0U);
}

}  // namespace
}  // namespace weft::sim
