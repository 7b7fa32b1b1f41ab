// Every MAD of a connection, an exchange or a query leads to its process. A MAD of another protocol leads to
// none.
#include "core/cm/route.h"

#include <gtest/gtest.h>

#include "core/cm/discovery.h"
#include "core/cm/steps.h"

namespace weft::cm {
namespace {

// Carries plans to their end and asks of each MAD where it would go.
TEST(Routes, LeadEveryMadOfEveryPlanToItsManager) {
  CmConfig ca = TwoManagers::small(0x1A), cb = TwoManagers::small(0x2B);
  for (const Plan plan : kPlans) {
    TwoManagers t(ca, cb);
    t.start(plan);
    const std::uint16_t port = TwoManagers::kPort;
    const wire::PortSpace space = is_sidr(plan) ? wire::PortSpace::kUdp : wire::PortSpace::kTcp;
    const Route listener{Owner::kListener, 0, space, port};
    int carried = 0;
    for (int turn = 0; turn < 20; ++turn) {
      for (End* from : {&t.a, &t.b}) {
        End& to = from == &t.a ? t.b : t.a;
        for (MadOut out; from->cm.poll_mad(out); ++carried) {
          const Route r = route_of(out.mad, 8);
          const auto kind = out.mad[17];
          const bool request = kind == 0x10 || kind == 0x17;
          const bool unknown =
              kind == 0x12 && r.owner == Owner::kEveryone;  // a REJ whose sender never heard from us
          const Route owner{Owner::kSlot, to.cm.config().slot, wire::PortSpace::kTcp, 0};
          if (!unknown) {
            EXPECT_EQ(r, request ? listener : owner) << int{kind};
          }
          EXPECT_TRUE(to.cm.on_mad(t.now, out.facts, out.mad));
        }
      }
      t.users();
    }
    EXPECT_GE(carried, plan == Plan::kSlowPassive ? 1 : 2);
  }
}

TEST(Routes, OfCapabilityFollowTheQueuePairAndTheAsker) {
  wire::Capability c;
  c.transaction = 0x1A00'0000'0000'0001;
  c.target = {0x2B0011};
  wire::Mad mad;
  encode(c, mad);
  EXPECT_EQ(route_of(mad, 8).slot, 0x2B);
  EXPECT_EQ(route_of(mad, 4).slot, 0x2);
  EXPECT_EQ(route_of(mad, 0).slot, 0);
  c.reply = true;
  encode(c, mad);
  EXPECT_EQ(route_of(mad, 8).slot, 0x1A);
}

TEST(Routes, OfWhatWeftDoesNotSpeakLeadToNobody) {
  wire::Mad mad{};
  EXPECT_EQ(route_of(mad, 8).owner, Owner::kNobody);
  EXPECT_EQ(route_of(std::span(mad).first(20), 8).owner, Owner::kNobody);
  wire::CmMessage req;
  req.service_id = 1ULL << 40U;
  encode(req, mad);
  EXPECT_EQ(route_of(mad, 8).owner, Owner::kNobody);
}

}  // namespace
}  // namespace weft::cm
