// Each sentence appears where it belongs, and on a host where all is well none does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "live/doctor/diagnosis.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;

Host well() {
  Host h;
  h.interface = "eth0";
  h.mtu = 9000;
  h.receive_buffer = 64U << 20U;
  h.trains = true;
  h.cuts_late = true;
  h.processors = 8;
  h.descriptors = 1024;
  h.clock_source = "tsc";
  h.shared_memory = true;
  return h;
}

// The only thing wrong.
Symptom only(const std::function<void(Host&)>& change) {
  Host h = well();
  change(h);
  Symptom found;
  for (const Symptom& s : diagnose(h)) {
    if (s.health == Health::kGood) {
      EXPECT_EQ(s.change + s.cost, "") << s.what;
      continue;
    }
    EXPECT_EQ(found.what, "") << s.what;
    EXPECT_NE(s.change, "");
    EXPECT_NE(s.cost, "");
    found = s;
  }
  return found;
}

TEST(Doctor, FindsNothingWrongWithAHostThatIsWell) {
  EXPECT_EQ(worst(diagnose(well())), Health::kGood);
  Host silent = well();
  silent.cuts_late.reset();
  silent.clock_source.clear();
  silent.processor_quota = 4.0;
  EXPECT_EQ(worst(diagnose(silent)), Health::kGood) << "what a kernel does not tell is no symptom";
}

TEST(Doctor, PassesOnWhyAWireDoesNotOpenAndThenSaysNothingOfIt) {
  Host h = well();
  h.wire_refused = "take another address";
  h.receive_buffer = h.mtu = 0;
  const std::vector<Symptom> all = diagnose(h);
  EXPECT_EQ(worst(all), Health::kBroken);
  EXPECT_EQ(all[0].change, "take another address");
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const Symptom& s) { return s.health != Health::kGood; }),
            1);
}

TEST(Doctor, SaysWhatASmallReceiveBufferReaches) {
  const Symptom s = only([](Host& h) { h.receive_buffer = 425'984; });  // Debian's default, doubled
  EXPECT_EQ(s.what, "receive buffer");
  EXPECT_THAT(s.change, HasSubstr("net.core.rmem_max"));
  EXPECT_EQ(
      s.cost,
      "a peer may have 208 KiB under way instead of 1024 KiB: over a round trip of 1 ms that is 1.7 Gb/s");
}

TEST(Doctor, NamesTheMtuThatCarriesTheLargestPacket) {
  const Symptom s = only([](Host& h) { h.mtu = 1500; });
  EXPECT_EQ(s.what, "packet size");
  EXPECT_THAT(s.found, HasSubstr("packets of 1024 bytes"));
  EXPECT_THAT(s.cost, HasSubstr("4 times"));
  const std::size_t at = s.change.find("mtu ") + 4;
  const auto needed = static_cast<std::uint32_t>(std::stoul(s.change.substr(at)));
  EXPECT_EQ(only([&](Host& h) { h.mtu = needed; }).what, "");
  EXPECT_EQ(only([&](Host& h) { h.mtu = needed - 1; }).what, "packet size");
}

TEST(Doctor, TellsAKernelThatSendsOneByOneFromOneThatCutsTrains) {
  EXPECT_THAT(only([](Host& h) { h.trains = false; }).change, HasSubstr("4.18"));
  EXPECT_THAT(only([](Host& h) { h.cuts_late = false; }).change, HasSubstr("ethtool -K eth0"));
  EXPECT_EQ(only([](Host& h) {
              h.cuts_late = false;
              h.loopback = true;
            }).what,
            "");
}

TEST(Doctor, FindsTooLittleOfAProcess) {
  EXPECT_EQ(only([](Host& h) { h.processors = 1; }).what, "processors");
  EXPECT_THAT(only([](Host& h) { h.processor_quota = 0.5; }).found, HasSubstr("50 % of one"));
  EXPECT_EQ(only([](Host& h) { h.descriptors = 64; }).what, "open files");
  EXPECT_EQ(only([](Host& h) { h.clock_source = "hpet"; }).what, "clock");
  EXPECT_EQ(only([](Host& h) { h.shared_memory = false; }).what, "shared memory");
}

TEST(Doctor, ExaminesThisHostAsAWireFindsIt) {
  const Host h = examine(WireKind::kUdp, {wire::Address::v4(127, 0, 0, 1)});
  EXPECT_EQ(h.wire_refused, "");
  EXPECT_TRUE(h.loopback);
  EXPECT_EQ(h.interface, "lo");
  EXPECT_GT(h.receive_buffer, 0U);
  EXPECT_GT(h.mtu, 0U);
  EXPECT_GT(h.descriptors, 0U);
  EXPECT_THAT(examine(WireKind::kUdp, {wire::Address::v4(192, 0, 2, 77)}).wire_refused,
              HasSubstr("does not belong"));
  EXPECT_THAT(examine(WireKind::kXdp, {wire::Address::v4(127, 0, 0, 1)}).wire_refused, HasSubstr("Ethernet"));
}

}  // namespace
}  // namespace weft::live
