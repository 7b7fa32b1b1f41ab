// A few runs of sequence numbers, in order and apart from each other: which answers are missing, and which
// numbers no answer has. As many as a message between boxes has room for. Where there is no room for another
// one the highest goes: what comes first is waited for first, and the rest can be found out again.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/seq.h"
#include "wan/logic/message.h"

namespace weft::wan {

// From `from` on, before `end`.
struct Span {
  Seq from{};
  Seq end{};
  bool operator==(const Span&) const = default;
};

class Spans {
 public:
  static constexpr std::size_t kMost = kMostAhead / 2;

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kMost; }
  const Span* begin() const { return spans_.data(); }
  const Span* end() const { return spans_.data() + count_; }
  const Span& front() const { return spans_[0]; }
  void clear() { count_ = 0; }
  bool contains(Seq seq) const {
    return std::any_of(begin(), end(), [seq](const Span& s) { return s.from <= seq && seq < s.end; });
  }

  void add(Seq from, Seq upto) {
    if (from >= upto) return;
    std::size_t i = 0;
    while (i < count_ && spans_[i].end < from) ++i;
    std::size_t joined = i;
    for (; joined < count_ && spans_[joined].from <= upto; ++joined) {
      from = std::min(from, spans_[joined].from);
      upto = std::max(upto, spans_[joined].end);
    }
    if (joined > i) {
      spans_[i] = {from, upto};
      erase(i + 1, joined);
    } else {
      insert(i, {from, upto});
    }
  }
  void remove(Seq from, Seq upto) {
    for (std::size_t i = 0; i < count_ && from < upto;) {
      const Span s = spans_[i];
      if (s.end <= from || s.from >= upto) {
        ++i;
        continue;
      }
      if (s.from < from && upto < s.end) {
        spans_[i].end = from;
        insert(i + 1, {upto, s.end});
        return;
      }
      if (s.from < from) {
        spans_[i++].end = from;
      } else if (upto < s.end) {
        spans_[i++].from = upto;
      } else {
        erase(i, i + 1);
      }
    }
  }
  void drop_before(Seq seq) { remove({}, seq); }

 private:
  void insert(std::size_t at, const Span& s) {
    if (at == kMost) return;
    count_ = std::min(count_ + 1, kMost);
    std::copy_backward(spans_.begin() + static_cast<std::ptrdiff_t>(at),
                       spans_.begin() + static_cast<std::ptrdiff_t>(count_ - 1),
                       spans_.begin() + static_cast<std::ptrdiff_t>(count_));
    spans_[at] = s;
  }
  void erase(std::size_t first, std::size_t last) {
    std::copy(spans_.begin() + static_cast<std::ptrdiff_t>(last),
              spans_.begin() + static_cast<std::ptrdiff_t>(count_),
              spans_.begin() + static_cast<std::ptrdiff_t>(first));
    count_ -= last - first;
  }

  std::array<Span, kMost> spans_{};
  std::size_t count_ = 0;
};

}  // namespace weft::wan
