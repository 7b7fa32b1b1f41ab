// csRNA's pending FIFO (csRNA §4.3.1, Figure 4c): requests that wait for their context to come from memory,
// or for an earlier request of their queue pair. Two FIFOs of the same size; a register says which one is
// online.
//
//            push_request (1)                              push_checked (3)
//                  v                                              v
//     offline  [ n n n n ]  ---pop_check (4)---> looked at --->  online  [ o o o o ]  ---pop_return (2)--->
//
// What is online came before what is offline. Looking at an element moves it from the head of one to the end
// of the other, so that the order of all stays as it was, but for elements that go back at (1) or (3) from
// (2). Memory answers in the order of reads. A read begins when its element is pushed at (1), and such
// elements keep their order: the next answer is for the first of them. The two change roles when an empty one
// is popped: then nothing is reordered.
#pragma once
#include <cstdint>

#include "core/base/check.h"
#include "sim/nic/context/ring.h"

namespace weft::sim {

template <class Element>
class PendingFifo {
 public:
  explicit PendingFifo(std::size_t each) : fifos_{Ring<Element>(each), Ring<Element>(each)} {}
  std::size_t size() const { return fifos_[0].size() + fifos_[1].size(); }
  void push_request(const Element& e) { offline().push(e); }
  Element pop_return() {
    if (online().empty()) online_ ^= 1U;
    return online().pop();
  }
  void push_checked(const Element& e) { online().push(e); }
  Element pop_check() {
    if (offline().empty()) online_ ^= 1U;
    return offline().pop();
  }

 private:
  Ring<Element>& online() { return fifos_[online_]; }
  Ring<Element>& offline() { return fifos_[online_ ^ 1U]; }
  Ring<Element> fifos_[2];
  std::uint32_t online_ = 0;
};

}  // namespace weft::sim
