// Two and more wires of one host: what goes through memory, what does not, and what becomes of it when the
// other end sleeps, stands still or ends.
#include "live/wires/shm_test.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "core/base/prng.h"
#include "live/wires/local_sockets.h"

namespace weft::live {
namespace {

TEST_F(Shm, TrainsForAProcessOfThisHostGoThroughMemory) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(send(*a, *b, i), SendStatus::kSent);
  const Numbers got = receive(*b, 20);
  ASSERT_EQ(got.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(got[i], i);
  EXPECT_EQ(last.source, host(1));
  EXPECT_TRUE(last.header_seen);
  EXPECT_EQ(counter(*a, "shared_sent"), 100U);
  EXPECT_EQ(counter(*b, "shared_received"), 100U);
  // And back.
  ASSERT_EQ(send(*b, *a, 7), SendStatus::kSent);
  EXPECT_EQ(receive(*a), Numbers{7});
  EXPECT_EQ(counter(*a, "shared_received"), 1U);
}

TEST_F(Shm, ProcessesOfOneAddressHaveRingsOfTheirOwn) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  const auto c = open_at(host(2));
  for (std::uint32_t i = 0; i < 10; ++i) {
    send(*a, *b, i);
    send(*a, *c, 100 + i);
  }
  EXPECT_EQ(receive(*b).size(), 10U);
  const Numbers got = receive(*c);
  ASSERT_EQ(got.size(), 10U);
  EXPECT_EQ(got[0], 100U);
  EXPECT_EQ(counter(*a, "shared_sent"), 20U);
}

TEST_F(Shm, ToAProcessWithAnotherWireTheyGoByUdp) {
  const auto a = open_at(host(1));
  auto plain = UdpWire::open(host(2), kPort);
  ASSERT_TRUE(plain.has_value());
  send(*a, **plain, 5);
  send(**plain, *a, 6);
  EXPECT_EQ(receive(**plain), Numbers{5});
  EXPECT_EQ(receive(*a), Numbers{6});
  EXPECT_EQ(counter(*a, "shared_sent"), 0U);
}

TEST_F(Shm, ServicesGoByUdp) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  const Frame f = frame_for(0, 1);
  a->send({.bytes = f, .frame_size = 64, .destination = host(2), .ip = {}, .now = now});
  EXPECT_EQ(receive(*b, 20), Numbers{1});
  EXPECT_EQ(counter(*a, "shared_sent"), 0U);
}

// Without a bell it would sleep for ever; with one for each train the kernel would be back on the data path.
TEST_F(Shm, AReaderThatSleepsIsWokenOnce) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  send(*a, *b, 1);
  EXPECT_EQ(receive(*b), Numbers{1});
  ASSERT_TRUE(b->rest());
  EXPECT_FALSE(rings(*b, 0));
  send(*a, *b, 2);
  EXPECT_TRUE(rings(*b, 1000));
  // Others drive meanwhile, and take what came: the bell stays with who sleeps.
  EXPECT_EQ(receive(*b), Numbers{2});
  EXPECT_TRUE(rings(*b, 0));
  b->rise();
  EXPECT_EQ(receive(*b), Numbers{});
  EXPECT_FALSE(rings(*b, 0));
  send(*a, *b, 3);
  EXPECT_FALSE(rings(*b, 0)) << "nobody sleeps";
  EXPECT_FALSE(b->rest()) << "something has come already";
  b->rise();
  EXPECT_EQ(receive(*b), Numbers{3});
}

// The program polls while the background thread sleeps, or is awake and waits for its turn in vain.
TEST_F(Shm, WhoLooksWhileAnotherSleepsSeesNewcomersAndTellsTheSleeper) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  ASSERT_TRUE(b->rest());
  EXPECT_FALSE(rings(*b, 0));
  send(*a, *b, 1);
  EXPECT_EQ(receive(*b), Numbers{1});
  EXPECT_TRUE(rings(*b, 0)) << "the sleeper rises";
  send(*a, *b, 2);  // meanwhile
  EXPECT_EQ(receive(*b), Numbers{2});
  EXPECT_TRUE(rings(*b, 0)) << "it is still called";
  b->rise();
  EXPECT_FALSE(rings(*b, 0)) << "once it is up, nobody calls";
  ASSERT_TRUE(b->rest());
  send(*a, *b, 3);
  EXPECT_TRUE(rings(*b, 0));
  b->rise();
  EXPECT_EQ(receive(*b), Numbers{3});
}

TEST_F(Shm, TheFirstTrainWakesASleeper) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  ASSERT_TRUE(b->rest());
  send(*a, *b, 1);
  EXPECT_TRUE(rings(*b, 1000));
  b->rise();
  EXPECT_EQ(receive(*b), Numbers{1});
}

// As a process that is stopped: the ring fills, the sender waits for a moment, and then nobody does.
TEST_F(Shm, AReaderThatStandsStillLosesItsTrainsAndHoldsUpNobody) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  const auto c = open_at(host(3));
  std::uint32_t held = 0;
  while (held < 100 && send(*a, *b, held, 60'000) == SendStatus::kSent) ++held;
  EXPECT_GT(held, 5U);
  EXPECT_LT(held, 100U);
  EXPECT_EQ(send(*a, *b, 0, 60'000), SendStatus::kFull);
  EXPECT_EQ(send(*a, *c, 1), SendStatus::kSent);
  now = now + milliseconds(51);
  EXPECT_EQ(send(*a, *b, 0, 60'000), SendStatus::kFailed);
  EXPECT_EQ(send(*a, *b, 0, 60'000), SendStatus::kFailed);
  EXPECT_EQ(counter(*a, "shared_lost"), 2U);
  // It moves again.
  EXPECT_EQ(receive(*b, 40).size(), held);
  EXPECT_EQ(send(*a, *b, 77), SendStatus::kSent);
  EXPECT_EQ(receive(*b), Numbers{77});
}

// One that takes a little now and then makes no room for a large train, and may not hold up everybody for it.
TEST_F(Shm, AReaderThatIsSlowHoldsUpNobodyForLong) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  for (int i = 0; i < 100'000 && send(*a, *b, 1) == SendStatus::kSent; ++i) {
  }
  receive(*b, 1);  // it lets a in
  int held_up = 0;
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(receive(*b, 1).empty());
    held_up += send(*a, *b, 2, 60'000) == SendStatus::kFull ? 1 : 0;
    now = now + milliseconds(9);
  }
  EXPECT_GT(held_up, 0);
  EXPECT_LT(held_up, 10) << "of 30, ten milliseconds apart";
}

// Another version of ours, or one without memory: it closes what it does not want.
TEST_F(Shm, WhatLiesInARingThatIsRefusedLeavesByUdp) {
  const auto a = open_at(host(1));
  auto plain = UdpWire::open(host(2), kPort);
  ASSERT_TRUE(plain.has_value());
  const int refuser = open_local_socket();
  const LocalName name(names_of(to_text(host(2)), kPort) + "shared/" +
                       std::to_string((*plain)->facts().slot));
  ASSERT_EQ(bind(refuser, name.generic(), name.size), 0);
  ASSERT_EQ(listen(refuser, 16), 0);
  int refused = 0;
  std::vector<std::uint32_t> got;
  for (std::uint32_t i = 0; i < 300; ++i) {
    send(*a, **plain, i);
    const int fd = accept4(refuser, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      ++refused;
      close(fd);
    }
    receive(*a, 1);
    for (const std::uint32_t n : receive(**plain, 9)) got.push_back(n);
  }
  EXPECT_EQ(got.size(), 300U);
  EXPECT_GE(refused, 3);
  EXPECT_LE(refused, 8) << "in three seconds, each time after a longer pause";
  close(refuser);
}

TEST_F(Shm, WhatAProcessWroteBeforeItEndedIsRead) {
  auto a = open_at(host(1));
  const auto b = open_at(host(2));
  send(*a, *b, 1);
  EXPECT_EQ(receive(*b), Numbers{1});
  for (std::uint32_t i = 2; i < 40; ++i) send(*a, *b, i);
  a.reset();
  EXPECT_EQ(receive(*b, 20).size(), 38U);
}

TEST_F(Shm, AfterTheReaderEndedTrainsGoByUdp) {
  const auto a = open_at(host(1));
  auto b = open_at(host(2));
  const std::uint8_t slot = b->facts().slot;
  send(*a, *b, 1);
  EXPECT_EQ(receive(*b), Numbers{1});
  b.reset();
  receive(*a);  // it notices
  const std::uint64_t before = counter(*a, "shared_sent");
  const Frame f = frame_for(slot, 9);
  a->send({.bytes = f, .frame_size = 64, .destination = host(2), .ip = {}, .now = now});
  EXPECT_EQ(counter(*a, "shared_sent"), before);
}

// A dialogue of two processes that sleep whenever nothing is there: one bell that is missed, and it is silent
// for ever. Each lets some time go by in between, so that the other is met falling asleep.
class Dialogue {
 public:
  static constexpr std::uint32_t kRounds = 5000;
  Dialogue(Wire& mine, const wire::Address& peer, std::uint8_t slot)
      : mine_(mine), peer_(peer), slot_(slot) {}

  void say() {
    const Frame f = frame_for(slot_, heard_);
    mine_.send({.bytes = f, .frame_size = 64, .destination = peer_, .ip = {}, .now = at_});
  }
  // How often it heard the other.
  std::uint32_t talk(std::uint64_t seed) {
    Prng prng(seed);
    while (heard_ < kRounds) {
      at_ = at_ + microseconds(10);
      if (!mine_.receive(at_).empty()) {
        ++heard_;
        for (std::uint64_t wait = prng.below(300); wait != 0; --wait) mine_.facts();
        say();
        continue;
      }
      pollfd fd{mine_.aside(), POLLIN, 0};
      if (mine_.rest() && ::poll(&fd, 1, 10'000) != 1) break;
      mine_.rise();
    }
    return heard_;
  }

 private:
  Wire& mine_;
  wire::Address peer_;
  std::uint8_t slot_;
  Time at_ = Time{} + seconds(1);
  std::uint32_t heard_ = 0;
};

TEST_F(Shm, NoBellIsMissed) {
  const wire::Address here = host(1);
  const wire::Address there = host(2);
  std::array<int, 2> slots{};
  ASSERT_EQ(pipe(slots.data()), 0);
  const auto mine = open_at(here);
  const pid_t child = fork();
  if (child == 0) {
    const auto theirs = open_at(there);
    const std::uint8_t slot = theirs->facts().slot;
    const bool told = write(slots[1], &slot, 1) == 1;
    _exit(told && Dialogue(*theirs, here, mine->facts().slot).talk(2) == Dialogue::kRounds ? 0 : 1);
  }
  std::uint8_t slot = 0;
  ASSERT_EQ(read(slots[0], &slot, 1), 1);
  Dialogue dialogue(*mine, there, slot);
  dialogue.say();
  EXPECT_EQ(dialogue.talk(1), Dialogue::kRounds);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(counter(*mine, "shared_received"), Dialogue::kRounds);
  for (const int fd : slots) close(fd);
}

}  // namespace
}  // namespace weft::live
