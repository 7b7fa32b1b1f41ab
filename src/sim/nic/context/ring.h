// A FIFO of fixed capacity, as hardware has them: a push into a full one is our own mistake.
#pragma once
#include <cstddef>
#include <vector>

#include "core/base/check.h"

namespace weft::sim {

template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : slots_(capacity) {}
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == slots_.size(); }
  std::size_t size() const { return size_; }
  const T& front() const { return slots_[head_]; }
  // The i-th from the front.
  T& operator[](std::size_t i) { return slots_[wrap(head_ + i)]; }
  const T& operator[](std::size_t i) const { return slots_[wrap(head_ + i)]; }
  void push(const T& t) {
    CHECK_OP(size_, <, slots_.size());
    slots_[wrap(head_ + size_++)] = t;
  }
  T pop() {
    CHECK_OP(size_, >, 0);
    const T t = slots_[head_];
    head_ = wrap(head_ + 1);
    --size_;
    return t;
  }

 private:
  std::size_t wrap(std::size_t i) const { return i < slots_.size() ? i : i - slots_.size(); }
  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::sim
