// Watches every byte on its way into user memory, before it is written.
//
//   exactly once   no byte of a message is placed twice: a duplicate or a retransmission of something
//                  already placed must be recognised before placement, because the program may have put
//                  other data there since (docs/protocol/irn.md#what-a-receiver-keeps)
//   right place    inside a registered region of the right domain with the right access, in a sink that
//                  a receive, a WRITE or a READ of this very connection opened
//   right bytes    equal to the source at the time of posting
//   in order       in `roce` mode packets are placed in the order of their sequence numbers
//   atomics        executed once, in order, as posted; answered with what they found
//   not too late   nothing is placed once its message has been reported complete
//
// It can also be asked at any moment whether memory, as the program sees it, holds what the ledger expects.
#pragma once
#include <cstdint>
#include <span>

#include "check/ledger.h"

namespace weft::check {

class Delivery {
 public:
  Delivery(Ledger& ledger, Report& report) : ledger_(ledger), report_(report) {}

  // The world is about to write. `bytes` is empty in a world without bytes. The answer is the message
  // the bytes belong to, or null after a violation.
  const Message* placed(const Placed& p, const wire::Header& header, std::span<const std::uint8_t> bytes,
                        Time now);

  // The world is about to execute an atomic.
  void executed(const Executed& x, Time now);

  // The sink of a finished message holds what was sent.
  void verify_sink(const Endpoint& requester, const Message& m, Time now);
  // Every region equals its shadow: nothing was written that was not placed.
  void verify_memory(Time now);

 private:
  void compare(HostId host, const Range& sink, std::span<const std::uint8_t> expected, const Message& m,
               Time now);

  Ledger& ledger_;
  Report& report_;
};

}  // namespace weft::check
