// An observer that knows messages and nothing else: what programs gave to channels, got from them and gave
// back, and what they were told. No window, number or connection of the middleware's is known here.
//
//   once, in order    a message is handed to the far program at most once, and never before one that was
//   accepted
//                     earlier. One is left out only if its sender is told that it did not arrive, or may not
//                     have.
//   whole             with its bytes
//   taken             a message is told delivered after the far program gave it back, not before
//   one end           a message that is to be told has one outcome; one that is not told was given back or
//   failed.
//                     An answer may reach nobody when its request was over
//   not sent          what was told so is never handed to anybody
//   window            the far program holds no more than a window of messages
//
// A program that crashed is owed nothing, and gives nothing back.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "check/report.h"
#include "core/base/units.h"

namespace weft::check {

class Messages {
 public:
  // One direction of a channel.
  struct Flow {
    std::uint32_t channel = 0;
    std::uint8_t from = 0;  // 0: the end that asked
    auto operator<=>(const Flow&) const = default;
  };
  enum class Sort : std::uint8_t { kSilent, kTold, kRequest, kAnswer };
  enum class End : std::uint8_t { kDelivered, kNotSent, kUnknown, kTooLate, kCancelled, kAnswered };

  explicit Messages(Report& report) : report_(report) {}

  void opened(Flow flow, std::uint32_t window) { flows_[flow].window = window; }
  // Accepted by the channel; answers its number. `request`: which one of the other direction an answer is
  // for.
  std::uint32_t accepted(Flow flow, Sort sort, std::uint32_t request = 0);
  // The message that was accepted last was not, after all.
  void withdrawn(Flow flow, std::uint32_t number);
  void handed(Flow flow, std::uint32_t number, bool bytes_right, Time now);
  void given_back(Flow flow, std::uint32_t number, Time now);
  void ended(Flow flow, std::uint32_t number, End end, Time now);
  void sender_crashed(Flow flow) { flows_[flow].sender_crashed = true; }
  void receiver_crashed(Flow flow) { flows_[flow].receiver_crashed = true; }
  // Both programs were told that the channel is closed, or are gone, and hold nothing.
  void finish(Time now);

  std::uint64_t count() const { return count_; }

 private:
  struct Message {
    Sort sort;
    std::uint32_t request = 0;
    bool handed = false;
    bool back = false;
    bool has_end = false;
    End end = End::kDelivered;
  };
  struct Known {
    std::vector<Message> messages;
    std::uint32_t next = 0;  // of those that may be handed
    std::uint32_t held = 0;
    std::uint32_t window = 0;
    bool sender_crashed = false;
    bool receiver_crashed = false;
  };
  bool over(Flow answer, std::uint32_t request) const;
  Message* find(Flow flow, std::uint32_t number, const char* what, Time now);

  Report& report_;
  std::map<Flow, Known> flows_;
  std::uint64_t count_ = 0;
};

}  // namespace weft::check
