// A wiretap over all connections of a world: finds the half connection that each packet belongs to from
// its destination queue pair and its opcode, and lets it judge (half_connection.h).
//
// The world reports the packets that its devices emit, and those of them that reach a device. It does not
// report packets that it forged itself. If a device reacts to a forged packet, the observer sees a reaction
// without a cause, which is a finding.
#pragma once
#include <map>
#include <memory>

#include "check/half_connection.h"
#include "check/ledger.h"

namespace weft::check {

class WireObserver {
 public:
  explicit WireObserver(Report& report) : report_(report) {}

  // Both ends are known: the two half connections begin.
  void connected(const QpFacts& a, const QpFacts& b);
  void sent(HostId from, HostId to, const wire::Header& h, std::uint32_t payload, Time now);
  // True if its requester has learned something new from it.
  bool arrived(HostId at, const wire::Header& h, Time now, bool marked);
  void placed(const Placed& p, const wire::Header& h, Time now);
  void posted(End requester, const SendWr& wr);
  void draining(End requester, bool on);
  void drained(End requester, Time now);
  bool requester_failed(End requester, Time now);  // false if that was known
  Silence silence(End requester) const;
  // The half connection of this requester is in working order at the end of the run.
  void finish(End requester, Time now);

 private:
  enum class Role : unsigned char { kRequest, kResponse, kAck, kReadAck, kOther };
  static Role role(std::uint8_t opcode);
  // The half connection that a packet to this queue pair belongs to.
  HalfConnection* of(End requester) const;
  HalfConnection* half(End destination, Role role) const;

  // docs/protocol/congestion.md#notification-point: a receiver tells the sender of every mark that it got,
  // and of no other.
  struct Congestion {
    Duration interval{};
    std::uint64_t marks = 0;   // marked packets that arrived here
    std::uint64_t echoes = 0;  // acknowledgements that said so
    std::uint64_t cnps = 0;
    Time first = kNever;  // when the first mark arrived
  };
  void congestion_sent(End from, const wire::Header& h, Time now);

  Report& report_;
  std::map<End, Congestion> congestion_;
  std::map<End, std::unique_ptr<HalfConnection>> by_requester_;
  std::map<End, End> peer_;
};

}  // namespace weft::check
