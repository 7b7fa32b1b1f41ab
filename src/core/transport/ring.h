// A bounded queue: first in, first out, in place. Its size is a power of two; what does not fit is refused.
#pragma once
#include <cstdint>
#include <vector>

namespace weft {

template <class T>
class Ring {
 public:
  explicit Ring(std::size_t size) : entries_(size) {}

  bool empty() const { return head_ == tail_; }
  bool push(const T& entry) {
    if (tail_ - head_ == entries_.size()) return false;
    at(tail_++) = entry;
    return true;
  }
  const T& front() const { return entries_[head_ & (entries_.size() - 1)]; }
  void pop() { ++head_; }
  bool take(T& out) {
    if (empty()) return false;
    out = front();
    pop();
    return true;
  }
  template <class Visit>
  void each(Visit visit) {
    for (std::uint32_t i = head_; i != tail_; ++i) visit(at(i));
  }
  template <class Test>
  bool any(Test test) {
    for (std::uint32_t i = head_; i != tail_; ++i) {
      if (test(at(i))) return true;
    }
    return false;
  }

 private:
  T& at(std::uint32_t i) { return entries_[i & (entries_.size() - 1)]; }

  std::vector<T> entries_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace weft
