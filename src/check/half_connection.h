// One half connection as a wiretap sees it: the requests of one end and all that the other end sends in
// answer (docs/protocol/modes.md#half-connections). From what was sent, what arrived and what was placed, and
// from nothing else, it decides whether each next packet is legal. It keeps its own idea of both ends:
//
//   requests    una  <=  max          at the requester, from the acknowledgements that reached it
//               frontier              at the responder: everything below has arrived and is placed
//   responses   the same, for READ responses in their own numbers (irn; IRN §5.4)
//
// Rules held here (docs/protocol/reliable.md, irn.md, srnic.md; IRN §3.1-3.2, §5):
//   numbering      new packets are consecutive; a retransmission repeats its packet exactly
//   sequence       First, Middle, Last, Only in order, lengths as the MTU demands, sums as RETH says
//   marking        every packet bears the half connection's mode; AckReq where a response is owed
//   extension      irn, srnic: what every packet and every echo must say (extension.cc)
//   window         irn: never more than the BDP cap in flight
//   cause          nothing is resent without a NAK, or silence of at least the shortest time-out; nothing
//                  that is known to have arrived is resent
//                  roce: before that the oldest packet may be sent again alone, each time after twice the
//                  silence (a probe). If its ACK covers nothing more, and nothing was sent behind it that
//                  could tell, then what was sent before was not taken: a go-back-N receiver takes in order
//                  only
//   ACK            never acknowledges what has not arrived or is not placed; counts messages truthfully;
//                  in roce never overtakes READ responses; no more ACKs than packets
//   READ           answered only when its turn has come; every response belongs to a request that arrived
//
// The frontier is an upper bound of what the responder may have accepted, since a wiretap cannot see a
// receive queue. A packet that was refused for want of a receive was not placed, so the frontier does not
// pass it.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "check/facts.h"
#include "check/opcodes.h"
#include "check/report.h"
#include "check/said.h"
#include "core/base/seq.h"

namespace weft::check {

// How often a responder repeats unacknowledged responses.
inline constexpr std::uint32_t kResponderTries = 4;

// How long a requester has waited: `since` is when it last learned of progress, `naks` counts the sequence
// NAKs (explicit or implied) that reached it since, `until` is when it gave up. Each NAK may cost it one of
// retry_cnt.
struct Silence {
  Time since{};
  std::uint32_t naks = 0;
  Time until = kNever;
};

class HalfConnection {
 public:
  HalfConnection(const QpFacts& requester, const QpFacts& responder, Report& report);

  void posted(const SendWr& wr);
  void draining(bool on) { draining_ = on; }
  void drained(Time now);  // its user is told so
  void request_sent(const wire::Header& h, std::uint32_t payload, Time now);
  void response_sent(const wire::Header& h, std::uint32_t payload, Time now);
  void ack_sent(const wire::Header& h, Time now);       // by the responder, opcode 0x11
  void read_ack_sent(const wire::Header& h, Time now);  // by the requester, opcode 0x18

  void request_arrived(const wire::Header& h);
  void response_arrived(const wire::Header& h, Time now);
  void ack_arrived(const wire::Header& h, Time now);
  void read_ack_arrived(const wire::Header& h, Time now);

  void request_placed(WirePsn psn, std::uint32_t bytes);
  void response_placed(WirePsn psn, std::uint32_t bytes, Time now);

  // The requester has failed: nothing that arrives from now on counts as progress.
  bool requester_failed(Time now);  // false if that was known
  const Silence& silence() const { return silence_; }
  // The final checks: called when both ends are in working order and nothing is under way any more.
  void finish(Time now);

 private:
  // One request copy of a READ that arrived (roce: a retry may ask for the rest only).
  struct Copy {
    Seq first{};
    std::uint32_t packets = 0;
    bool arrived = false;
  };
  struct Packet {
    wire::Header header;
    Seq first{};
    std::uint32_t span = 1;  // sequence numbers it takes: a roce READ takes one per response
    std::uint32_t payload = 0;
    std::uint32_t placed = 0;
    std::uint32_t times = 1;     // sent
    std::uint64_t messages = 0;  // that are complete once this packet is, from the first on
    bool arrived = false;
    bool sacked = false;
    // READ requests.
    std::uint32_t responses = 0;
    Seq response_first{};        // irn
    std::uint32_t emitted = 0;   // roce: highest response ever sent, plus one
    std::uint32_t received = 0;  // roce: responses the requester took
    std::vector<Copy> copies;    // roce
    std::uint64_t value = 0;     // roce: what an atomic was answered with
    Seq end() const { return first + span; }
  };
  struct Stream {
    Seq max{};
    Seq una{};
    Seq told{};   // una as a host without a bitmap knows it: without the SACKed packets after it
    Seq acked{};  // highest acknowledged, READs in between not considered
    Seq frontier{};
    Seq in_order{};       // roce: next number the receiver would take
    Seq excused_below{};  // may be resent without further cause
    Time progress{};      // of una
    Time told_at{};       // of told
    std::uint64_t packets_arrived = 0;
    std::uint64_t acks_sent = 0;
    std::deque<Packet> packets;  // the last kHistory at least
    Packet* find(Seq s);
    void start(Seq s);
  };
  static constexpr std::size_t kHistory = 8192;

  bool selective() const { return requester_.mode != wire::Mode::kRoce; }
  // Atomics are READs of one packet.
  bool is_read(const Packet& p) const { return is_answered(p.header.opcode); }
  __attribute__((format(printf, 4, 5))) void bad(Time now, const char* rule, const char* format, ...);
  void check_mode(const wire::Header& h, Time now);

  void new_request(const wire::Header& h, std::uint32_t payload, Time now);
  void check_start(const wire::Header& h, Time now);
  bool answers_missing();
  // extension.cc
  bool srnic() const { return requester_.mode == wire::Mode::kSrnic; }
  std::uint32_t serial_mask() const { return srnic() ? 0xFFFFU : kPsnMask; }
  struct ReadAsked;
  void check_extension(const wire::Header& h, std::uint64_t message, Time now);
  void check_read_extension(const wire::Header& h, std::uint64_t message, Time now);
  void check_response_extension(const wire::Header& h, const ReadAsked& read, Time now);
  void check_echo(Stream& s, const wire::Header& h, const Said& said, Time now);

  void resent_request(const wire::Header& h, std::uint32_t payload, Seq seq, Time now);
  void resent(Stream& s, Packet& p, Seq seq, Duration shortest_rto, bool remembers, Time now);
  void roce_response_sent(const wire::Header& h, std::uint32_t payload, Time now);
  void selective_response_sent(const wire::Header& h, std::uint32_t payload, Time now);
  void check_ack(Stream& s, const wire::Header& h, Time now);
  Seq answered_before(std::size_t read) const;
  void reads_taken(Seq upto);
  void advance(Stream& s);
  void advance_una(Time now);
  void implied_nak();
  void heard(Stream& s, Duration rto, Time now);
  void tell(Stream& s, Seq upto, Duration rto, Time now);
  void progressed(Time now);
  Duration shortest_rto() const;
  void learn(Stream& s, const wire::Header& h, Time now);
  std::uint64_t messages_below(Seq s);
  void trim(Stream& s);
  static Seq past_sacked(Stream& s, Seq at);
  bool may_probe(const Stream& s, Seq seq, Time now);

  QpFacts requester_;
  QpFacts responder_;
  Report& report_;
  Stream requests_;
  Stream responses_;  // irn
  Silence silence_;
  Silence before_;        // the silence before this one: its last progress
  Time read_progress_{};  // irn: when an answer last came

  // roce: the oldest packet, sent again.
  struct Probe {
    Seq at{};
    bool out = false;    // it is on its way, and nothing was sent after it
    unsigned count = 0;  // probes whose only cause was silence, since una moved or a NAK came
    Time sent{};         // when the last of those was sent
  };
  Probe probe_;

  // The message being sent.
  enum class Open : std::uint8_t { kNo, kSend, kWrite };
  Open open_ = Open::kNo;
  std::uint32_t left_ = 0;   // WRITE: bytes still owed
  std::uint32_t index_ = 0;  // packet inside the message
  std::uint64_t next_va_ = 0;
  Key rkey_{};
  std::uint32_t recv_sn_ = 0;
  std::uint32_t read_sn_ = 0;
  Seq answered_{};                 // roce: every READ below has had all its responses sent once
  std::uint64_t read_cursor_ = 0;  // irn: which READ the next response belongs to, and which packet of it
  std::uint32_t read_packet_ = 0;
  struct ReadAsked {
    Seq request{};
    Seq first{};
    std::uint32_t packets = 0;
    std::uint32_t length = 0;
    std::uint32_t message = 0;  // srnic: its number
    Time acknowledged{};        // when the request was, not its answer
    bool atomic = false;
  };
  std::vector<ReadAsked> reads_;  // irn
  // Requests posted and not yet sent, in order.
  struct Posted {
    bool fence = false;
    bool begun = false;
    std::uint64_t read_left = 0;  // bytes of a READ not yet asked for: roce may ask in pieces
  };
  std::deque<Posted> posted_;
  bool draining_ = false;
  std::size_t reads_taken_ = 0;   // irn: the responder has acknowledged this many READ requests
  Seq may_know_{};                // irn: the responder may know that responses below this arrived
  std::vector<Seq> told_oldest_;  // irn: what each READ request that arrived, in whatever order, told so
  bool gave_up_ = false;          // the responder fell silent: its READ responses stayed unacknowledged
  Seq confirmed_{};               // irn: READ ACKs have said that responses below this arrived
};

}  // namespace weft::check
