// The cache of contexts that the caching stores share: who is there, who is in use, who has changed; and what
// an eviction costs the memory behind it.
#pragma once
#include "sim/nic/cache/tags.h"
#include "sim/nic/context/store.h"

namespace weft::sim {

class ChipCache {
 public:
  ChipCache(const ContextDesign& design, ContextMemory& memory, StoreCounters& counters)
      : tags_(design.cache, design.replacement, kSeed),
        bytes_{design.bytes},
        write_back_(design.write_back),
        memory_(memory),
        counters_(counters) {}

  bool holds(Qpn q) const { return tags_.find(q.v) != Tags::kNone; }
  // Contexts that could still come without one in use having to leave.
  std::uint32_t free() const { return tags_.free(); }
  // In use until released. False: it is not there.
  bool use(Qpn q) {
    const Tags::Slot s = tags_.find(q.v);
    if (s == Tags::kNone) return false;
    tags_.pin(s);
    return true;
  }
  // False: it is not there.
  bool touch(Qpn q) {
    const Tags::Slot s = tags_.find(q.v);
    if (s == Tags::kNone) return false;
    tags_.touch(s);
    return true;
  }
  void read(Qpn q, Time now) {
    counters_.bytes_read += bytes_.n;
    memory_.read(q, bytes_, now);
  }
  // The context has come.
  void place(Qpn q, Time now) {
    Tags::Left left;
    tags_.insert(q.v, left);
    if (!left.any) return;
    ++counters_.evictions;
    if (!left.dirty) return;
    ++counters_.write_backs;
    counters_.bytes_written += bytes_.n;
    memory_.write(Qpn{static_cast<std::uint32_t>(left.key)}, bytes_, now);
  }
  void release(Qpn q, bool dirty) {
    const Tags::Slot s = tags_.find(q.v);
    CHECK_OP(s, !=, Tags::kNone);
    if (dirty && write_back_) tags_.set_dirty(s);
    tags_.unpin(s);
  }
  void forget(Qpn q) {
    if (const Tags::Slot s = tags_.find(q.v); s != Tags::kNone) tags_.erase(s);
  }
  void check_invariants() const { tags_.check_invariants(); }

 private:
  static constexpr std::uint64_t kSeed = 0x5709'E5EE'D;  // of random replacement

  Tags tags_;
  Bytes bytes_;
  bool write_back_;
  ContextMemory& memory_;
  StoreCounters& counters_;
};

}  // namespace weft::sim
