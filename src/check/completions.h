// Watches what is reported to the user (docs/protocol/verbs.md):
//
//   order      completions of a queue come in the order of posting; an unsignaled success is skipped and
//              implied by its successor; nothing is reported twice
//   truth      a success means that every byte of the message, and of every earlier one, lies where it
//              belongs (an ACK for data not placed shows up here), with the right length, opcode and
//              immediate
//   blame      a failure has the status that the posted request deserves, or RETRY_EXC when the world
//              says that it loses packets or that the peer is gone; after the first failure every
//              other request, signaled or not, is flushed in order
//   complete   at the end nothing that was owed is missing
#pragma once
#include "check/delivery.h"
#include "check/half_connection.h"
#include "check/ledger.h"

namespace weft::check {

class Completions {
 public:
  Completions(Ledger& ledger, Delivery& delivery, Report& report)
      : ledger_(ledger), delivery_(delivery), report_(report) {}

  // `silence`: how long the queue pair's own requests have gone unanswered.
  void completed(HostId host, const Completion& c, const Silence& silence, Time now);
  // The peer's program has heard that this one ended the connection: everything that succeeded is there.
  void farewell(End end, Time now);
  void finish(Time now);

 private:
  void send_completed(Endpoint& e, std::uint64_t index, const Completion& c, const Silence& silence,
                      Time now);
  void receive_completed(Endpoint& e, std::uint64_t index, const Completion& c, Time now);
  void succeeded(Endpoint& e, std::uint64_t index, Time now);
  bool deserved(const Endpoint& e, const Message& m, WcStatus status, const Silence& silence, Time now);
  bool has_cause(const Endpoint& e);
  void owes_nothing(const Endpoint& e, Time now);
  bool credit_held(const Endpoint& e);

  Ledger& ledger_;
  Delivery& delivery_;
  Report& report_;
};

}  // namespace weft::check
