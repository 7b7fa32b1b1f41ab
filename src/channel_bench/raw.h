// A queue pair as a plain verbs program has it: what channels are measured beside. It follows
// ibv_rc_pingpong: SENDs with completions, one buffer each way, a completion queue that is polled.
//
// The ends tell each other a line of text (`introduce`), by whatever way they have. One thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace weft::bench {

class RawEnd {
 public:
  struct Size {
    std::uint32_t bytes = 65536;  // of a message at most
    std::uint32_t receives = 16;  // posted
    std::uint32_t sends = 32;
  };
  static Result<std::unique_ptr<RawEnd>> open(const Size& size);
  virtual ~RawEnd() = default;
  RawEnd() = default;
  RawEnd(const RawEnd&) = delete;
  RawEnd& operator=(const RawEnd&) = delete;

  virtual std::string introduce() const = 0;
  virtual Result<void> meet(const std::string& peer) = 0;

  virtual bool send(std::uint32_t bytes) = 0;  // false: the queue pair has failed, or the queue is full
  // What came since the last call: receives and completed sends. False: the queue pair has failed.
  struct Came {
    std::uint32_t received = 0;
    std::uint32_t sent = 0;
  };
  virtual bool poll(Came& came) = 0;
  virtual bool give_back(std::uint32_t receives) = 0;  // posts so many receives again
};

}  // namespace weft::bench
