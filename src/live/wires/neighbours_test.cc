// Several wires on one address, as several processes have them: each gets the frames of its own slot, whoever
// comes and goes, and no other's.
#include "live/wires/neighbours.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <vector>

#include "live/wires/numbered_frames.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

using numbered::Frame;
using numbered::frame_for;
using numbered::host;
using numbered::kPort;

std::unique_ptr<UdpWire> open_wire(std::uint8_t n) {
  auto wire = UdpWire::open(host(n), kPort);
  EXPECT_TRUE(wire.has_value()) << wire.error().message;
  return std::move(*wire);
}

struct Got {
  std::uint8_t slot = 0;
  std::uint32_t number = 0;
};

struct Several {
  // Time passes with each look.
  void look(std::size_t i) {
    now = now + milliseconds(1);
    for (const RxTrain& t : wires[i]->receive(now)) {
      for (std::uint32_t at = 0; at < t.bytes; at += t.frame_size) {
        Got g;
        g.slot = t.data[at + kSlotOffset];
        std::memcpy(&g.number, t.data + at + 8, sizeof g.number);
        got[i].push_back(g);
      }
    }
  }
  void look_at_all(int times = 40) {
    for (int k = 0; k < times; ++k) {
      for (std::size_t i = 0; i < wires.size(); ++i) {
        if (wires[i] != nullptr) look(i);
      }
    }
  }
  std::uint8_t slot(std::size_t i) const { return wires[i]->facts().slot; }
  // Frames to every slot that there ever was, also to those of wires that are gone.
  void send_to_all(int rounds) {
    for (int k = 0; k < rounds; ++k) {
      for (const std::uint8_t s : slots) {
        const Frame f = frame_for(s, ++sent);
        ASSERT_EQ(sender->send({f, static_cast<std::uint32_t>(f.size()), host(1)}), SendStatus::kSent);
        ++sent_to[s];
      }
    }
  }
  explicit Several(std::size_t count) : got(count) {
    for (std::size_t i = 0; i < count; ++i) wires.push_back(open_wire(1));
    for (std::size_t i = 0; i < count; ++i) slots.push_back(slot(i));
    look_at_all();
  }
  std::uint64_t handed() const {
    std::uint64_t n = 0;
    for (const auto& w : wires) n += w != nullptr ? w->neighbours()->counters().handed : 0;
    return n;
  }
  Time now{};
  std::uint32_t sent = 0;
  std::vector<std::unique_ptr<UdpWire>> wires;
  std::vector<std::uint8_t> slots;
  std::vector<std::vector<Got>> got;
  std::map<std::uint8_t, std::size_t> sent_to;
  std::unique_ptr<UdpWire> sender = open_wire(2);
};

void expect_own_only(const Several& w) {
  for (std::size_t i = 0; i < w.got.size(); ++i) {
    for (const Got& g : w.got[i]) EXPECT_EQ(g.slot, w.slots[i]);
  }
}

TEST(Neighbours, HaveSlotsOfTheirOwn) {
  const Several w(8);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_GT(w.slots[i], 0U);
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(w.slots[i], w.slots[k]);
  }
  EXPECT_EQ(w.wires[0]->neighbours()->others().size(), 7U);
  EXPECT_EQ(w.wires[0]->neighbours()->places().size(), 8U);
}

TEST(Neighbours, KnowTheFirstPlaceWithoutLooking) {
  const auto wire = open_wire(1);
  EXPECT_EQ(wire->neighbours()->places(), (std::vector<Place>{{wire->facts().slot, 0}}));
}

// The kernel steers: nothing has to be handed over.
TEST(Neighbours, GetEachTheFramesOfItsSlotFromTheKernel) {
  Several w(8);
  w.send_to_all(5);
  w.look_at_all();
  expect_own_only(w);
  for (const auto& got : w.got) EXPECT_EQ(got.size(), 5U);
  EXPECT_EQ(w.handed(), 0U);
}

// Whoever leaves, in whatever order: nothing goes wrong for the others, and soon the kernel steers again.
TEST(Neighbours, GetTheirFramesWhoeverLeaves) {
  Several w(8);
  for (const std::size_t leaves : {0U, 5U, 2U, 7U, 1U}) {
    w.wires[leaves] = nullptr;
    w.send_to_all(3);
    w.look_at_all();
    w.send_to_all(3);
    w.look_at_all();
    const std::uint64_t handed = w.handed();
    std::map<std::size_t, std::size_t> before;
    for (std::size_t i = 0; i < 8; ++i) before[i] = w.got[i].size();
    for (std::size_t i = 0; i < 8; ++i) {
      if (w.wires[i] == nullptr) continue;
      const Frame f = frame_for(w.slots[i], ++w.sent);
      w.sender->send({f, 64, host(1)});
      ++w.sent_to[w.slots[i]];
    }
    w.look_at_all();
    EXPECT_EQ(w.handed(), handed) << "the kernel knows where everybody is";
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(w.got[i].size(), before[i] + (w.wires[i] ? 1 : 0)) << i;
  }
  expect_own_only(w);
  for (std::size_t i = 0; i < 8; ++i) {
    if (w.wires[i] == nullptr) continue;
    EXPECT_EQ(w.got[i].size(), w.sent_to[w.slots[i]]) << "nothing was lost";
  }
}

// The process that holds the frames of another does not look: the other finds out by itself that it was
// moved.
TEST(Neighbours, FindTheirPlaceThoughNobodyHandsAnythingOver) {
  Several w(3);
  w.wires[0] = nullptr;  // wire 2 is in its place now, and what is for it goes to wherever the hash says
  for (int k = 0; k < 1000; ++k) w.look(2);
  const Frame f = frame_for(w.slots[2], 1);
  w.sender->send({f, 64, host(1)});
  w.look(2);
  w.look(2);
  EXPECT_EQ(w.got[2].size(), 1U);
}

// Two that begin at once may each attach a program that lacks the other. The one that is missing finds out,
// the first too, though frames for it arrive nowhere that anybody looks.
TEST(Neighbours, FindOutThatTheKernelDoesNotKnowThem) {
  for (const std::size_t forgotten : {0U, 1U, 2U}) {
    Several w(3);
    {
      const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const int on = 1;
      ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(kPort);
      std::memcpy(&to.sin_addr, &host(1).bytes[12], 4);
      ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
      std::vector<Place> places = w.wires[0]->neighbours()->places();
      std::erase_if(places, [&](const Place& p) { return p.slot == w.slot(forgotten); });
      ASSERT_EQ(places.size(), 2U);
      ASSERT_TRUE(attach_steering(fd, places));
      close(fd);
    }
    for (int k = 0; k < 1000; ++k) w.look(forgotten);
    for (std::uint8_t from = 2; from < 10; ++from) {
      const auto sender = from == 2 ? std::move(w.sender) : open_wire(from);
      const Frame f = frame_for(w.slot(forgotten), from);
      sender->send({f, 64, host(1)});
    }
    for (int k = 0; k < 20; ++k) w.look(forgotten);
    EXPECT_EQ(w.got[forgotten].size(), 8U) << forgotten;
  }
}

// A message to the connection manager has no slot, so that somebody handed it over says nothing about places.
TEST(Neighbours, MeasureNothingWhenAMessageForNoSlotIsHandedOver) {
  Several w(2);
  Frame f = frame_for(0, 7);
  const RxTrain train{
      .data = f.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  w.look_at_all();
  w.wires[0]->neighbours()->hand_to_slot(w.slot(1), train);
  w.look(1);
  w.look(1);
  EXPECT_EQ(w.got[1].size(), 1U);
  pollfd own{w.wires[0]->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&own, 1, 0), 0) << "a probe wakes everybody";
}

// The answers wait behind other frames. A new round with each train that is handed over would never end.
TEST(Neighbours, LetAMeasurementEnd) {
  Several w(2);
  const Frame direct = frame_for(w.slot(1), 1);
  for (int k = 0; k < 200; ++k) w.sender->send({direct, 64, host(1)});
  Frame other = frame_for(w.slot(1), 2);
  const RxTrain train{
      .data = other.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  for (int k = 0; k < 20; ++k) {
    w.wires[0]->neighbours()->hand_to_slot(w.slot(1), train);
    w.now = w.now + milliseconds(5);
    w.look(1);
  }
  Frame probe(64);
  int rounds = 0;  // each has one probe for the first place
  while (recv(w.wires[0]->descriptor(), probe.data(), probe.size(), MSG_DONTWAIT) > 0)
    rounds += probe[0] == kProbeOpcode && probe[1] == 0 ? 1 : 0;
  EXPECT_GE(rounds, 1);
  EXPECT_LE(rounds, 3);
}

// A receiver's kernel may join what one sender sent to two processes.
TEST(Neighbours, SplitATrainOfSeveral) {
  Several w(2);
  Frame train;
  std::map<std::uint8_t, std::size_t> count;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::uint8_t s = w.slots[i % 5 < 2 ? 0 : 1];
    const Frame f = frame_for(s, i);
    train.insert(train.end(), f.begin(), f.end());
    ++count[s];
  }
  ASSERT_EQ(w.sender->send({train, 64, host(1)}), SendStatus::kSent);
  w.look_at_all();
  expect_own_only(w);
  EXPECT_EQ(w.got[0].size(), count[w.slots[0]]);
  EXPECT_EQ(w.got[1].size(), count[w.slots[1]]);
}

TEST(Neighbours, ServeAPortOneAtATime) {
  Several w(2);
  Neighbours& a = *w.wires[0]->neighbours();
  Neighbours& b = *w.wires[1]->neighbours();
  constexpr std::uint32_t kService = 0x0106'4A12;
  EXPECT_TRUE(a.claim(kService));
  EXPECT_TRUE(a.claim(kService)) << "a process may listen twice";
  EXPECT_FALSE(b.claim(kService));
  Frame f = frame_for(0, 7);
  const RxTrain train{
      .data = f.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  EXPECT_TRUE(b.hand_to_service(w.now, kService, train));
  w.look_at_all();
  ASSERT_EQ(w.got[0].size(), 1U);
  EXPECT_EQ(w.got[0][0].number, 7U);
  const Time until = w.now + milliseconds(500);
  a.give_back(kService, until);
  EXPECT_FALSE(b.claim(kService));
  a.give_back(kService, until);
  EXPECT_TRUE(b.hand_to_service(w.now, kService, train)) << "it may be about to listen again";
  EXPECT_TRUE(a.claim(kService));
  a.give_back(kService, until);
  while (w.now < until) w.look(0);
  w.look(0);
  EXPECT_FALSE(b.hand_to_service(w.now, kService, train));
  EXPECT_TRUE(b.claim(kService));
}

// The listener is stopped, and its queue is full: that is no reason to refuse a client, who repeats its
// request.
TEST(Neighbours, DropWhatAListenerHasNoRoomFor) {
  Several w(2);
  constexpr std::uint32_t kService = 0x0106'4A12;
  ASSERT_TRUE(w.wires[0]->neighbours()->claim(kService));
  Neighbours& b = *w.wires[1]->neighbours();
  Frame f = frame_for(0, 7);
  const RxTrain train{
      .data = f.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  std::size_t served = 0;
  for (int i = 0; i < 200; ++i) served += b.hand_to_service(w.now, kService, train) ? 1 : 0;
  EXPECT_EQ(served, 200U);
  EXPECT_GT(b.counters().lost, 0U);
  EXPECT_EQ(b.counters().lost + b.counters().handed, 200U);
  w.look_at_all(20);
  EXPECT_EQ(w.got[0].size(), b.counters().handed) << "whoever runs again takes all that waits, and soon";
}

// Without a descriptor to accept with, what waits is dropped: a descriptor that stays readable is a thread
// that never sleeps.
TEST(Neighbours, DropWhatTheyHaveNoDescriptorFor) {
  Several w(2);
  constexpr std::uint32_t kService = 0x0106'4A12;
  ASSERT_TRUE(w.wires[0]->neighbours()->claim(kService));
  Frame f = frame_for(0, 7);
  const RxTrain train{
      .data = f.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(w.wires[1]->neighbours()->hand_to_service(w.now, kService, train));
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit few{200, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> all;
  for (int fd = dup(0); fd >= 0; fd = dup(0)) all.push_back(fd);
  for (int i = 0; i < 5; ++i) w.look(0);
  pollfd mail{w.wires[0]->neighbours()->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&mail, 1, 0), 0);
  for (const int fd : all) close(fd);
  setrlimit(RLIMIT_NOFILE, &usual);
  ASSERT_TRUE(w.wires[1]->neighbours()->hand_to_service(w.now, kService, train));
  w.look_at_all();
  EXPECT_EQ(w.got[0].size(), 1U);
}

// What others hand over without a pause must not hide what arrives on the own socket: neither frames, nor the
// probes that end the handing over.
TEST(Neighbours, ReadTheirOwnSocketBesideAFullMailbox) {
  Several w(2);
  const Frame direct = frame_for(w.slot(1), 1);
  Frame other = frame_for(w.slot(1), 2);
  const RxTrain train{
      .data = other.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  const auto hand_and_look = [&] {
    w.wires[0]->neighbours()->hand_to_slot(w.slot(1), train);
    w.look(1);
  };
  for (int k = 0; k < 3; ++k) hand_and_look();
  w.wires[0]->neighbours()->hand_to_slot(w.slot(1), train);
  ASSERT_EQ(w.sender->send({direct, 64, host(1)}), SendStatus::kSent);
  bool came = false;
  for (int k = 0; k < 10 && !came; ++k) {
    hand_and_look();
    came = w.got[1].size() != 0 && w.got[1].back().number == 1;
  }
  EXPECT_TRUE(came);
}

// Timers fire when nothing is there to be read, so a probe or a frame of another process is no end.
TEST(Neighbours, ReadOnBehindWhatIsNotTheirs) {
  Several w(1);
  w.wires.push_back(open_wire(1));  // sends its probes, which nobody has read
  w.got.resize(2);
  const Frame f = frame_for(w.slot(0), 1);
  ASSERT_EQ(w.sender->send({f, 64, host(1)}), SendStatus::kSent);
  w.look(0);
  EXPECT_EQ(w.got[0].size(), 1U);
}

// One small frame of a stranger must not cost a look at all sockets of the system and a message to everybody.
TEST(Neighbours, TellAllOfThemOnlyNowAndThen) {
  Several w(3);
  Neighbours& a = *w.wires[0]->neighbours();
  Frame f = frame_for(0, 7);
  const RxTrain train{
      .data = f.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  for (int i = 0; i < 1000; ++i) a.hand_to_all(w.now, train);
  EXPECT_EQ(a.counters().handed, 2U);
  EXPECT_EQ(a.counters().lost, 999U);
  a.hand_to_all(w.now + milliseconds(1), train);
  EXPECT_EQ(a.counters().handed, 4U);
  w.look_at_all();
  EXPECT_EQ(w.got[1].size(), 2U);
  EXPECT_EQ(w.got[2].size(), 2U);
  w.wires[1] = nullptr;
  a.hand_to_all(w.now + milliseconds(200), train);
  EXPECT_EQ(a.counters().handed, 5U);
  EXPECT_EQ(a.counters().lost, 999U) << "it knows by then who is there";
}

// A client's request comes to a neighbour of the server that is about to listen: it is dropped, and repeated.
TEST(Neighbours, RefuseNobodyWhileOneOfThemBegins) {
  Several w(2);
  constexpr std::uint32_t kService = 0x0106'4A12;
  Frame f = frame_for(0, 7);
  const RxTrain train{
      .data = f.data(), .bytes = 64, .frame_size = 64, .source = host(2), .source_port = kPort};
  Neighbours& a = *w.wires[0]->neighbours();
  EXPECT_FALSE(a.hand_to_service(w.now, kService, train));
  w.now = w.now + milliseconds(10);
  const Time until = w.now + milliseconds(500);
  w.wires[1]->neighbours()->begins(until);
  EXPECT_TRUE(a.hand_to_service(w.now, kService, train));
  EXPECT_EQ(a.counters().lost, 1U);
  while (w.now < until) w.look(1);
  w.look(1);
  EXPECT_FALSE(a.hand_to_service(w.now, kService, train));
}

// In a user namespace all users that it does not know look alike, and so does a process that is one of them.
TEST(Neighbours, AreNotTrustedWhereUsersLookAlike) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER) != 0) _exit(2);
    const auto wire = UdpWire::open(host(1), kPort);
    _exit(wire.has_value() && (*wire)->neighbours() == nullptr && (*wire)->facts().slot == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(status, 0);
}

// The names are the parent's, and its connections too: a child that took one would keep it from everybody.
TEST(Neighbours, TakeNoNamesInAForkedChild) {
  Several w(1);
  Neighbours& a = *w.wires[0]->neighbours();
  const int nowhere = open("/dev/null", O_RDONLY);
  a.abandon(nowhere);
  close(nowhere);
  EXPECT_FALSE(a.claim(0x0106'4A12));
}

TEST(Neighbours, ForgetWhoClosed) {
  Several w(2);
  w.wires[1] = nullptr;
  EXPECT_TRUE(w.wires[0]->neighbours()->others().empty());
  w.send_to_all(1);
  w.look_at_all();
  expect_own_only(w);
  EXPECT_EQ(w.got[0].size(), 1U);
}

}  // namespace
}  // namespace weft::live
