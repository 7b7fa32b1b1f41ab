// The environment table: what a program started by `weft run` reads.
#include "live/engine/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/transport/cc/controller.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;

char* nothing(const char*) { return nullptr; }

// Nothing set: loopback, the wire that needs nothing, a perfect network, ICRC on.
TEST(Options, DefaultsAreLoopbackAndAPerfectNetwork) {
  const auto o = options_from_environment(nothing);
  ASSERT_TRUE(o.has_value());
  EXPECT_EQ(o->own.first, wire::Address::v4(127, 0, 0, 1));
  EXPECT_EQ(o->wire, WireKind::kAuto);
  EXPECT_FALSE(o->mode.has_value());
  EXPECT_TRUE(o->impairments.clean());
  EXPECT_TRUE(o->icrc);
}

// Every variable reaches its field.
TEST(Options, EveryVariableReachesItsField) {
  const auto o = options_from_environment([](const char* name) -> char* {
    static char values[][2][20] = {
        {"WEFT_ADDR", "127.0.0.9"}, {"WEFT_MODE", "irn"},
        {"WEFT_CC", "dctcp"},       {"WEFT_SCHEDULE", "priority"},
        {"WEFT_LOSS", "1%"},        {"WEFT_DUPLICATE", "2%"},
        {"WEFT_REORDER", "3%"},     {"WEFT_REORDER_BY", "20us"},
        {"WEFT_CORRUPT", "4%"},     {"WEFT_MARK", "5%"},
        {"WEFT_DELAY", "50us"},     {"WEFT_JITTER", "in=5us,out=6us"},
        {"WEFT_SEED", "4711"},      {"WEFT_ICRC", "off"},
        {"WEFT_STATS", "on"},       {"WEFT_WRITE_ORDER", "strict"},
        {"WEFT_LEVEL", "dscp"},     {"WEFT_WIRE", "packet"},
        {"WEFT_RATE", "10Gbps"},    {"WEFT_QUEUE", "1MiB"},
        {"WEFT_TRACE", "t.pcapng"}, {"WEFT_TRACE_SNAP", "128"},
        {"WEFT_SHARDS", "1"},
    };
    EXPECT_EQ(std::size(values), settings().size()) << "a variable without a value here";
    for (auto& v : values) {
      if (std::strcmp(v[0], name) == 0) return v[1];
    }
    return nullptr;
  });
  ASSERT_TRUE(o.has_value()) << o.error().message;
  EXPECT_EQ(o->own.first, wire::Address::v4(127, 0, 0, 9));
  EXPECT_EQ(o->mode, wire::Mode::kIrn);
  EXPECT_EQ(o->wire, WireKind::kPacket);
  EXPECT_EQ(o->controller, find_controller("dctcp"));
  EXPECT_EQ(o->schedule, Schedule::kPriority);
  EXPECT_TRUE(o->level_from_dscp);
  EXPECT_TRUE(o->strict_write_order);
  EXPECT_EQ(o->impairments.mark, 50'000U);
  EXPECT_EQ(o->impairments.loss, 10'000U);
  EXPECT_EQ(o->impairments.duplicate, 20'000U);
  EXPECT_EQ(o->impairments.reorder, 30'000U);
  EXPECT_EQ(o->impairments.reorder_by, microseconds(20));
  EXPECT_EQ(o->impairments.corrupt, 40'000U);
  EXPECT_EQ(o->impairments.delay, microseconds(50));
  EXPECT_EQ(o->impairments.jitter, microseconds(5));
  EXPECT_EQ(o->impairments.jitter, microseconds(5));
  EXPECT_EQ(o->line.impairments.jitter, microseconds(6));
  EXPECT_EQ(o->line.impairments.delay, Duration{});
  EXPECT_EQ(o->line.rate, gigabits(10));
  EXPECT_EQ(o->line.queue.n, 1U << 20U);
  EXPECT_EQ(o->seed, 4711U);
  EXPECT_EQ(o->trace, "t.pcapng");
  EXPECT_EQ(o->trace_snap, 128U);
  EXPECT_FALSE(o->icrc);
  EXPECT_TRUE(o->stats);
}

// One address, or one of each family in the order of the GIDs.
TEST(Options, AddressesAreOneOrOneOfEachFamily) {
  const auto read = [](const char* text) {
    Options o;
    for (const Setting& s : settings()) {
      if (std::strcmp(s.variable, "WEFT_ADDR") != 0) continue;
      EXPECT_TRUE(s.parse("--addr", text, o).has_value()) << text;
    }
    return o.own;
  };
  wire::Address loopback;
  loopback.bytes[15] = 1;
  const wire::Address v4 = wire::Address::v4(127, 0, 0, 2);
  EXPECT_EQ(read("::1"), (Addresses{loopback}));
  EXPECT_EQ(read("127.0.0.2,::1"), (Addresses{v4, loopback}));
  EXPECT_EQ(read("::1,127.0.0.2"), (Addresses{loopback, v4}));
}

// A bad value is one sentence that names the field, the value and what is allowed.
TEST(Options, BadValuesAreNamed) {
  const struct {
    const char* variable;
    const char* value;
    const char* sentence;
  } cases[] = {
      {"WEFT_ADDR", "localhost", "WEFT_ADDR: 'localhost' is not an IPv4 or IPv6 address"},
      {"WEFT_ADDR", "::", "not the address of one host"},
      {"WEFT_ADDR", "ff02::1", "not the address of one host"},
      {"WEFT_ADDR", "::ffff:10.0.0.1", "write the IPv4 address itself"},
      {"WEFT_ADDR", "fe80::1%eth0", "leave out the interface"},
      {"WEFT_ADDR", "::1,", "WEFT_ADDR: '' is not an IPv4 or IPv6 address"},
      {"WEFT_ADDR", "::1,fd00::1", "one of IPv4 and one of IPv6"},
      {"WEFT_ADDR", "127.0.0.1,127.0.0.2", "one of IPv4 and one of IPv6"},
      {"WEFT_ADDR", "127.0.0.1,::1,::2", "WEFT_ADDR: '::1,::2' is not"},
      {"WEFT_ADDR", "0.0.0.0", "not the address of one host"},
      {"WEFT_ADDR", "239.1.1.1", "not the address of one host"},
      {"WEFT_MODE", "tcp", "WEFT_MODE: 'tcp' is not a mode: auto, roce, irn or srnic"},
      {"WEFT_CC", "swift", "WEFT_CC: 'swift' is not a controller: none aimd dctcp"},
      {"WEFT_SCHEDULE", "fair", "WEFT_SCHEDULE: 'fair' is not a schedule: round-robin, weighted or priority"},
      {"WEFT_LEVEL", "3", "WEFT_LEVEL: '3' is not sl or dscp"},
      {"WEFT_LOSS", "1", "WEFT_LOSS"},
      {"WEFT_LOSS", "101%", "WEFT_LOSS: '101%' is not a probability"},
      {"WEFT_DELAY", "50", "WEFT_DELAY: '50' is not a time"},
      {"WEFT_DELAY", "11s", "at most 10s"},
      {"WEFT_SEED", "x", "WEFT_SEED"},
      {"WEFT_LOSS", "up=1%",
       "WEFT_LOSS: 'up=1%' is not for a direction; write in=1%, out=1% or in=1%,out=2%"},
      {"WEFT_LOSS", "in=1%,2%", "WEFT_LOSS: '2%' is not for a direction"},
      {"WEFT_LOSS", "out=101%", "WEFT_LOSS: '101%' is not a probability"},
      {"WEFT_MARK", "out=1%", "WEFT_MARK: 'out=1%' is not a probability"},
      {"WEFT_RATE", "10", "WEFT_RATE: '10' is not a rate"},
      {"WEFT_RATE", "8kbps", "WEFT_RATE: '8kbps' is not a rate of at least 1Mbps, or 0"},
      {"WEFT_QUEUE", "1kB", "WEFT_QUEUE: '1kB' is not a size of 16KiB to 64MiB"},
      {"WEFT_TRACE", "", "WEFT_TRACE: the name of the file is empty"},
      {"WEFT_TRACE_SNAP", "10", "WEFT_TRACE_SNAP: '10' is not a size of 64 to 65535 bytes"},
      {"WEFT_WRITE_ORDER", "maybe", "WEFT_WRITE_ORDER: 'maybe' is not any or strict"},
      {"WEFT_ICRC", "maybe", "WEFT_ICRC: 'maybe' is not on or off"},
  };
  for (const auto& c : cases) {
    Options o;
    bool known = false;
    for (const Setting& s : settings()) {
      if (std::strcmp(s.variable, c.variable) != 0) continue;
      known = true;
      const auto r = s.parse(s.variable, c.value, o);
      if (std::strcmp(c.value, "1") == 0) {
        EXPECT_TRUE(r.has_value());  // certain loss is a probability too
        continue;
      }
      ASSERT_FALSE(r.has_value()) << c.variable << '=' << c.value;
      EXPECT_THAT(r.error().message, HasSubstr(c.sentence));
    }
    EXPECT_TRUE(known) << c.variable;
  }
}

// A shard has a wire of its own, so what belongs to a whole process does not go with several.
TEST(Options, ShardsAreRefusedBesideWhatTheyCannotShare) {
  struct Case {
    const char* variable;
    const char* value;
    const char* says;
  };
  static const Case* now = nullptr;
  static const Case cases[] = {
      {"WEFT_WIRE", "packet", "only the wires auto, udp and shm"},
      {"WEFT_WIRE", "xdp", "only the wires auto, udp and shm"},
      {"WEFT_RATE", "10Gbps", "--rate"},
      {"WEFT_TRACE", "t.pcapng", "--trace"},
      {"WEFT_SHARDS", "0", "WEFT_SHARDS"},
      {"WEFT_SHARDS", "17", "WEFT_SHARDS"},
  };
  for (const Case& c : cases) {
    now = &c;
    const auto o = options_from_environment([](const char* name) -> char* {
      if (std::strcmp(name, now->variable) == 0) return const_cast<char*>(now->value);
      return std::strcmp(name, "WEFT_SHARDS") == 0 ? const_cast<char*>("2") : nullptr;
    });
    ASSERT_FALSE(o.has_value()) << c.variable << "=" << c.value;
    EXPECT_THAT(o.error().message, HasSubstr(c.says));
  }
}

TEST(Options, ShardsReachTheirField) {
  for (const char* const wire : {"auto", "udp", "shm"}) {
    static const char* chosen = nullptr;
    chosen = wire;
    const auto o = options_from_environment([](const char* name) -> char* {
      if (std::strcmp(name, "WEFT_WIRE") == 0) return const_cast<char*>(chosen);
      return std::strcmp(name, "WEFT_SHARDS") == 0 ? const_cast<char*>("16") : nullptr;
    });
    ASSERT_TRUE(o.has_value()) << o.error().message;
    EXPECT_EQ(o->shards, 16U);
  }
}

}  // namespace
}  // namespace weft::live
