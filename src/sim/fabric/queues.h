// The packets that wait for one link: a queue per traffic class, the higher class first. Inside a class
// either one FIFO (output queueing) or a FIFO per ingress port, served round robin: the virtual output
// queues of an input-queued switch (IRN §4.1), seen from the output that they are for.
//
//   class 7  ...
//   class 0  [ FIFO ]     or    active:  input 2 -> input 0 -> input 5     each with its FIFO
//
// An input joins the end of the active list when its first packet comes, and goes to the end again after
// each packet sent: round robin over those that have something, at constant cost.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/fabric/fabric.h"

namespace weft::sim {

class Queues {
 public:
  // `inputs`: how many virtual output queues each class has; 1 is a plain FIFO.
  explicit Queues(std::uint32_t inputs) : inputs_(inputs) {}

  // A packet waits in a class that is not in `paused`.
  bool ready(std::uint32_t paused) const { return (waiting_ & ~paused) != 0; }
  bool empty() const { return waiting_ == 0; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes(std::uint8_t traffic_class) const { return class_bytes_[traffic_class]; }

  void push(WaitingRoom& room, const Transit& t, std::uint16_t ingress) {
    PerClass& c = of(t.traffic_class);
    const std::uint32_t place = room.take(t, ingress);
    const std::uint32_t input = inputs_ == 1 ? 0U : ingress;
    Fifo& f = c.fifos[input];
    if (f.head == WaitingRoom::kNone) {
      f.head = place;
      activate(c, input);
    } else {
      room.at(f.tail).next = place;
    }
    f.tail = place;
    waiting_ |= 1U << t.traffic_class;
    bytes_ += t.bytes;
    class_bytes_[t.traffic_class] += t.bytes;
  }

  struct Taken {
    Transit transit;
    std::uint16_t ingress;
  };
  // There is one: ready(paused).
  Taken pop(WaitingRoom& room, std::uint32_t paused) {
    const auto k = static_cast<std::uint32_t>(std::bit_width(waiting_ & ~paused)) - 1U;
    PerClass& c = *classes_[k];
    const std::uint32_t input = c.active_head;
    Fifo& f = c.fifos[input];
    const std::uint32_t place = f.head;
    const Taken taken{room.at(place).transit, room.at(place).ingress};
    f.head = room.at(place).next;
    room.give_back(place);
    if (inputs_ != 1) {
      c.active_head = f.next_active;
      if (f.head != WaitingRoom::kNone) activate(c, input);
    }
    // The link's next packet, which lies anywhere in the room.
    const std::uint32_t next =
        c.active_head == WaitingRoom::kNone ? c.active_head : c.fifos[c.active_head].head;
    if (next != WaitingRoom::kNone) {
      room.prefetch(next);
    } else {
      waiting_ &= ~(1U << k);
      c.active_head = WaitingRoom::kNone;
    }
    bytes_ -= taken.transit.bytes;
    class_bytes_[k] -= taken.transit.bytes;
    return taken;
  }

 private:
  struct Fifo {
    std::uint32_t head = WaitingRoom::kNone;
    std::uint32_t tail = WaitingRoom::kNone;
    std::uint32_t next_active = WaitingRoom::kNone;
  };
  struct PerClass {
    std::vector<Fifo> fifos;
    std::uint32_t active_head = WaitingRoom::kNone;
    std::uint32_t active_tail = WaitingRoom::kNone;
  };
  PerClass& of(std::uint8_t k) {
    if (classes_[k] == nullptr) [[unlikely]] {
      classes_[k] = std::make_unique<PerClass>();
      classes_[k]->fifos.resize(inputs_);
    }
    return *classes_[k];
  }
  static void activate(PerClass& c, std::uint32_t input) {
    c.fifos[input].next_active = WaitingRoom::kNone;
    if (c.active_head == WaitingRoom::kNone) {
      c.active_head = input;
    } else {
      c.fifos[c.active_tail].next_active = input;
    }
    c.active_tail = input;
  }

  std::uint32_t inputs_;
  std::uint32_t waiting_ = 0;  // bit k: class k has packets
  std::uint64_t bytes_ = 0;
  std::array<std::uint64_t, kClasses> class_bytes_{};
  std::array<std::unique_ptr<PerClass>, kClasses> classes_;  // made when first needed
};

}  // namespace weft::sim
