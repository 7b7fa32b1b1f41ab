// Two users of channels and a world between them: simulated NICs, or a pair world under its referee.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "pair/world_port.h"
#include "sim/fabric/topology.h"
#include "sim/nic/ideal_nic.h"
#include "tests/channel/users.h"

namespace weft::channel_test {

inline Config small_config() {
  Config c;
  c.channels = 4;
  c.region = Bytes{1U << 18U};
  c.memory = Bytes{16U << 20U};
  c.terms.timeout = 8;
  c.terms.min_rnr_timer = 1;
  return c;
}

// Two users of a world, and a test that drives them. `run` lets virtual time pass until nothing happens or
// `until`.
class World {
 public:
  virtual ~World() = default;
  virtual void run(Duration longest) = 0;
  virtual std::string findings() const = 0;
  // From here on nothing arrives at either end, until it is healed.
  virtual bool cut(bool) { return false; }
  virtual std::uint64_t not_ready() = 0;  // receiver-not-ready NAKs that were sent
  User& a() { return *users_[0]; }
  User& b() { return *users_[1]; }

  // a asks, b accepts; both are told.
  void connect(Channel*& at_a, Channel*& at_b) {
    ASSERT_TRUE(b().context->listen(kService).has_value());
    const auto made = a().context->connect(address_b(), kService, 1);
    ASSERT_TRUE(made.has_value());
    run(milliseconds(1));
    const Notice asked = b().take();
    ASSERT_EQ(asked.kind, Notice::Kind::kAsked);
    b().context->accept(*asked.channel, 2);
    run(milliseconds(1));
    const Notice at_b_opened = b().take();
    const Notice at_a_opened = a().take();
    ASSERT_EQ(at_b_opened.kind, Notice::Kind::kOpened);
    ASSERT_EQ(at_a_opened.kind, Notice::Kind::kOpened);
    ASSERT_EQ(at_a_opened.channel, *made);
    at_a = at_a_opened.channel;
    at_b = at_b_opened.channel;
  }
  virtual wire::Address address_b() const = 0;

 protected:
  void poll(Time now) {
    for (auto& u : users_) {
      if (u != nullptr) u->poll(now);
    }
  }
  Time next_wake() const {
    return std::min(users_[0]->context->next_wake(), users_[1]->context->next_wake());
  }
  std::unique_ptr<User> users_[2];
};

class NicWorld : public World {
 public:
  explicit NicWorld(const Config& config)
      : out0_(fabric_, link(), Prng(1)),
        out1_(fabric_, link(), Prng(2)),
        nic0_(exchange_, fabric_, {0}, device(), out0_, sim::Framing::kWire, nullptr),
        nic1_(exchange_, fabric_, {1}, device(), out1_, sim::Framing::kWire, nullptr) {
    out0_.connect<&sim::IdealNic::arrive>(nic1_, 0);
    out1_.connect<&sim::IdealNic::arrive>(nic0_, 0);
    users_[0] = std::make_unique<User>(nic0_, config, 1);
    users_[1] = std::make_unique<User>(nic1_, config, 2);
  }
  ~NicWorld() override {
    for (auto& u : users_) u.reset();
  }
  void run(Duration longest) override {
    for (const Time end = now_ + longest; now_ < end;) {
      poll(now_);
      now_ = now_ + nanoseconds(500);
      fabric_.timeline.run(now_, 1'000'000);
    }
  }
  std::string findings() const override { return ""; }
  wire::Address address_b() const override { return nic1_.address(); }
  wire::Address address_a() const { return nic0_.address(); }
  bool cut(bool on) override {
    for (sim::Port* p : {&out0_, &out1_}) on ? p->fail() : p->repair();
    return true;
  }
  std::uint64_t not_ready() override {
    return nic0_.device().counters().get(Counter::nak_rnr) + nic1_.device().counters().get(Counter::nak_rnr);
  }
  // The world goes on, and both programs are elsewhere.
  void pass(Duration longest) {
    now_ = now_ + longest;
    fabric_.timeline.run(now_, 1'000'000);
  }
  Time now() const { return now_; }
  VerbsPort& port_b() { return nic1_; }
  // The port of one end, for a program that is no channel's.
  VerbsPort& take_port_a() {
    users_[0].reset();
    return nic0_;
  }

 private:
  static sim::PortConfig link() {
    sim::PortConfig l;
    l.rate = gigabits(100);
    l.delay = microseconds(1);
    return l;
  }
  static DeviceConfig device() {
    DeviceConfig c;
    c.max_qp = 16;
    return c;
  }
  Time now_{};
  sim::Fabric fabric_;
  Exchange exchange_;
  sim::Port out0_;
  sim::Port out1_;
  sim::IdealNic nic0_;
  sim::IdealNic nic1_;
};

class PairWorld : public World, private pair::Programs {
 public:
  explicit PairWorld(const Config& config)
      : world_(world_config()), port0_(exchange_, world_, 0, 3), port1_(exchange_, world_, 1, 4) {
    users_[0] = std::make_unique<User>(port0_, config, 1);
    users_[1] = std::make_unique<User>(port1_, config, 2);
  }
  ~PairWorld() override {
    for (auto& u : users_) u.reset();
  }
  void run(Duration longest) override {
    const Time end = world_.now() + longest;
    end_ = end;
    stop_ = world_.now();  // what the test posted leaves now
    while (world_.now() < end && world_.step(*this)) {
    }
  }
  std::string findings() const override { return const_cast<pair::World&>(world_).referee().report().text(); }
  wire::Address address_b() const override { return port1_.address(); }
  std::uint64_t not_ready() override {
    return world_.host(0).device.counters().get(Counter::nak_rnr) +
           world_.host(1).device.counters().get(Counter::nak_rnr);
  }

 private:
  static pair::WorldConfig world_config() {
    pair::WorldConfig c;
    for (DeviceConfig& d : c.hosts) d.loss_blocks = 64, d.max_qp = 16;
    c.network.delay = microseconds(2);
    c.network.loss = 10'000;
    c.rate = gigabits(100);
    return c;
  }
  Time next_wake() const override { return std::min(World::next_wake(), stop_); }
  void act(pair::World&, Time now) override {
    stop_ = std::max(stop_, end_);
    poll(now);
  }
  bool waiting() const override { return true; }

  pair::World world_;
  Exchange exchange_;
  pair::WorldPort port0_;
  pair::WorldPort port1_;
  Time stop_ = kNever;
  Time end_{};
};

}  // namespace weft::channel_test
