// The shared receive queue of a context (X-RDMA §7.6; docs/decisions/shared-receives-are-set-aside.md): all
// its channels take receives from one queue. Off by default.
//
// What peers may send is bounded as ever: each queue pair's window and its control frames. Of that, the
// queue holds what the program does not hold already, `entries` at most:
//
//   due     = queue pairs * receives of each - messages of theirs that are here
//   posted  = min(due, entries)
//
// While due <= entries every frame that a peer may send has a receive, as without the queue. Beyond that
// frames may come faster than this end looks, and find none: a receiver-not-ready NAK, after which the peer's
// device sends again. A block that a message takes is replaced at once, and the memory for all that is due is
// set aside. So what the program holds cannot empty the queue, and acknowledgements always come through.
//
// A queue pair that failed may have taken receives that no frame filled. They come back as completions,
// before the port says kLastReceive; so it serves again, or goes, only after that (Context::bury).
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "channel/memory.h"
#include "core/base/result.h"
#include "core/verbs/port.h"

namespace weft::channel {

struct SharedCounts {
  std::uint64_t used_up = 0;   // turns in which every receive had been taken: frames may have found none
  std::uint64_t short_of = 0;  // receives that could not be posted: the device had no memory
  std::uint32_t most_due = 0;
};

class SharedQueue {
 public:
  // `tag`: of work requests, whose lower 28 bits are the queue's. `each`: receives of a queue pair.
  SharedQueue(VerbsPort& port, MemoryCache& memory, std::uint64_t tag, std::uint32_t frame,
              std::uint32_t each)
      : port_(port), memory_(memory), tag_(tag), frame_(frame), each_(each) {}
  ~SharedQueue();
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

  Result<void> open(std::uint32_t entries);
  void close();  // after the queue pairs
  bool on() const { return id_ != kNoSrq; }
  SrqId id() const { return id_; }

  // One queue pair more draws from it, of a channel of which so many messages are here. False: there is no
  // memory for what its peer may send.
  bool join(std::uint32_t here);
  void leave(std::uint32_t here);  // as many as when its connection ended

  void begin_turn() { at_hand_ = posted_; }
  Message& at(std::uint32_t slot) const { return *slots_[slot]; }
  Message& take(std::uint32_t slot);  // its completion has come
  void kept() { ++here_; }            // the block that came is a message's for now
  void replace() { top_up(); }        // after kept()
  void gone() { --here_; }            // the program gave a message back, and its peer may send another
  void give(Message& block);          // back into the queue, or to the cache if the queue has what it needs

  std::uint32_t entries() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t posted() const { return posted_; }
  std::uint32_t due() const { return users_ * each_ - here_; }
  std::uint64_t bytes() const { return posted_ * memory_.frame_block(); }  // of what is posted
  std::uint32_t here() const { return here_; }
  std::uint32_t users() const { return users_; }
  const SharedCounts& counts() const { return counts_; }

 private:
  std::uint32_t wanted() const { return std::min(due(), entries()); }
  bool top_up();
  void set_aside() { memory_.set_aside_frames(due() - std::min(due(), posted_)); }
  bool post(Message& block);

  VerbsPort& port_;
  MemoryCache& memory_;
  const std::uint64_t tag_;
  const std::uint32_t frame_;
  const std::uint32_t each_;
  SrqId id_ = kNoSrq;
  Message* spare_ = nullptr;         // was to be posted when a turn ended for want of memory
  std::vector<Message*> slots_;      // by the number in the work request
  std::vector<std::uint32_t> free_;  // numbers without a block
  std::uint32_t users_ = 0;
  std::uint32_t here_ = 0;
  std::uint32_t posted_ = 0;
  std::uint32_t at_hand_ = 0;  // of those posted when the turn began, not yet seen taken
  SharedCounts counts_;
};

}  // namespace weft::channel
