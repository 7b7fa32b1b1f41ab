// What the peer has written into our ring, and what it may still write: bytes by targets, messages by
// credits. No memory, no clock, no queue pair: the stream that has them asks here.
//
//            read           unread            granted, empty          not granted
//   ring  |---------|####################|------------------------|------------------|
//                   ^ offset()                                    (half a ring at a time)
//
// The ring is granted by halves, in turn. A half is granted again when as many bytes have been read.
// A data message is one credit, given back when all its bytes have been read.
#pragma once
#include <cstdint>
#include <deque>

namespace weft::live::rsockets {

class Inbox {
 public:
  // The first half and `messages` credits are granted by the offer.
  Inbox(std::uint32_t size, std::uint16_t messages)
      : half_(size / 2), messages_(messages), granted_(half_), free_(half_) {}

  std::uint32_t unread() const { return unread_; }
  std::uint32_t offset() const { return offset_; }
  std::uint32_t size() const { return half_ * 2; }

  // False: the peer wrote nothing, or more than it was granted, and says so.
  bool arrived(std::uint32_t length) {
    if (length == 0 || length > granted_ || used() >= messages_) return false;
    waiting_.push_back(length);
    granted_ -= length;
    unread_ += length;
    return true;
  }
  // A message that took a credit and has no bytes in the ring. False: there was no credit.
  bool arrived_beside() {
    if (used() >= messages_) return false;
    ++done_;
    return true;
  }
  void read(std::uint32_t length) {
    offset_ = (offset_ + length) % size();
    unread_ -= length;
    free_ += length;
    while (length != 0) {
      std::uint32_t& first = waiting_.front();
      if (length < first) {
        first -= length;
        return;
      }
      length -= first;
      waiting_.pop_front();
      ++done_;
    }
  }

  // Half a ring is empty and not granted, or half of the credits.
  bool owes() const { return free_ >= half_ || done_ >= (messages_ + 1U) / 2U; }
  struct Grant {
    std::uint16_t limit = 0;  // of data messages since the connection was made, modulo 2^16
    bool has_half = false;
    std::uint32_t half_at = 0;
    std::uint32_t half_length = 0;
  };
  Grant grant() {
    Grant g;
    taken_ = static_cast<std::uint16_t>(taken_ + done_);
    done_ = 0;
    g.limit = static_cast<std::uint16_t>(taken_ + messages_);
    if (free_ < half_) return g;
    g = {g.limit, true, next_half_ * half_, half_};
    next_half_ ^= 1U;
    free_ -= half_;
    granted_ += half_;
    return g;
  }

 private:
  // Credits that the peer has used and not got back.
  std::uint32_t used() const { return static_cast<std::uint32_t>(waiting_.size()) + done_; }

  std::uint32_t half_;
  std::uint16_t messages_;
  std::uint32_t granted_;
  std::uint32_t free_;  // read, or never used, and not granted
  std::uint32_t next_half_ = 1;
  std::uint32_t offset_ = 0;
  std::uint32_t unread_ = 0;
  std::uint32_t done_ = 0;   // messages read since the last grant
  std::uint16_t taken_ = 0;  // messages read before it
  std::deque<std::uint32_t> waiting_;
};

}  // namespace weft::live::rsockets
