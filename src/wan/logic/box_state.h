// The inside of a Box: its tables and queues, and the functions of the files that work on them.
//
//   watch.cc     what passes: learning who the requester is, and asking for ownership
//   follow.cc    what the connection manager says: connections begin, and end behind their data
//   taking.cc    halves of the site's requesters: taken, acknowledged, sent over the line
//   ahead.cc     the same where packets may be taken in any order
//   answering.cc what those endpoints are told, in the form of their dialect
//   reading.cc   READs and atomics inside an ownership, where answers take the numbers of requests
//   giving.cc    halves of the partner's requesters: kept, delivered to the site's endpoints
//   keeping.cc   answers of the site's responders: kept until the partner has them
//   ordering.cc  answers for the site's requesters: held behind a gap, in order
//   covering.cc  parity for what leaves on the line
//   restoring.cc packets of the line that parity gives back
//   partner.cc   messages between the boxes
//   box.cc       which frame goes where, what leaves next, time-outs
#pragma once
#include <tsl/robin_map.h>

#include <bit>
#include <utility>
#include <vector>

#include "core/base/prng.h"
#include "core/transport/loss/pool.h"
#include "core/transport/ring.h"
#include "core/transport/sched/deadlines.h"
#include "wan/logic/answers.h"
#include "wan/logic/box.h"
#include "wan/logic/halves.h"
#include "wan/logic/message.h"
#include "wan/logic/parity.h"
#include "wan/logic/store.h"

namespace weft::wan {

// Folded products of secret and name: strangers choose names, and none that collide without knowing the
// secret.
struct NameHash {
  std::uint64_t secret = 0;
  std::size_t operator()(const HalfName& n) const {
    __extension__ using Wide = unsigned __int128;
    const auto from = std::bit_cast<std::array<std::uint64_t, 2>>(n.requester.bytes);
    const auto to = std::bit_cast<std::array<std::uint64_t, 2>>(n.responder.bytes);
    std::uint64_t h = secret;
    for (const std::uint64_t word : {from[0], from[1], to[0], to[1], std::uint64_t{n.responder_qpn.v}}) {
      const Wide product = static_cast<Wide>(h ^ word) * (secret | 1U);
      h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
    }
    return static_cast<std::size_t>(h);
  }
};
using Names = tsl::robin_map<HalfName, std::uint32_t, NameHash>;

// Numbers of which each counts once, in whatever order they come: what was recorded long ago does not.
struct Once {
  std::uint64_t newest = 0;
  std::uint64_t seen = 0;  // a bit for each of the 64 up to that

  bool fresh(std::uint64_t number) {
    if (number > newest) {
      const std::uint64_t ahead = number - newest;
      seen = ahead < 64 ? seen << ahead | 1U : 1U;
      newest = number;
      return true;
    }
    const std::uint64_t behind = newest - number;
    if (behind >= 64 || (seen >> behind & 1U) != 0) return false;
    seen |= std::uint64_t{1} << behind;
    return true;
  }
};

struct Partner {
  std::uint64_t instance = 0;  // 0: it never answered
  Time heard = kNever;         // its last answer
  Time asked = kNever;
  std::uint64_t question = 0;  // what the answer must repeat; 0: nothing is asked
  Time unanswered_since{};     // when `question` was asked first
  Duration trip{};             // of a question and its answer; 0: not known
  Duration patience{};         // its own
  ParityTerms parity;          // that it sends
  Duration parity_wait{};      // behind its data, at most
  bool ask_due = false;
  bool answer_due = false;
  std::uint64_t answer_to = 0;
  std::uint64_t answer_with = 0;
  std::uint64_t answer_asked_at = 0;
  wire::Address answer_from;  // as the question came
  wire::Address answer_at;
  HalfName answer_about;
  // Not everything on the line's side need be behind it: it is asked for once for each address.
  Names behind;
  HalfName about;  // the address that is asked about, and who asks
  Time asked_about = kNever;
  std::uint64_t about_question = 0;
  bool about_due = false;
  bool there = false;
  bool lost = false;     // it did not answer
  bool leaving = false;  // it takes nothing new: nobody asks it
  Once messages;
  Once leases;  // those that it asked for, or gave back

  bool fresh(std::uint64_t lease) { return leases.fresh(lease >> 20U); }
};

// RELEASED is said without anything that it would stand in: by who let go, and by who never had a place.
struct Farewell {
  HalfName name;
  std::uint64_t lease = 0;
};

// A connection that begins: its REQ has passed.
struct Meeting {
  Side active_at = Side::kSite;
  bool answered = false;  // its REP has passed, too
  wire::Address active;
  wire::Address passive;
  std::uint32_t id = 0;  // the active side's
  Qpn active_qpn{};
  WirePsn passive_starts{};  // the number of the passive side's first packet
  std::uint32_t mtu = 0;     // 0: an empty row
};

struct BoxState {
  explicit BoxState(const BoxConfig& c);

  BoxConfig config;
  BoxCounters counters;
  Hmac key;
  Prng random;
  std::uint64_t clock_starts;  // questions say the time since then, so that nobody reads it
  // Apart, each a half: two boxes full of what they take could give each other nothing.
  Store outgoing;
  Store incoming;
  LossPool pool;
  Counters loss;  // what core's senders count
  DeviceConfig line_terms;
  DeviceConfig site_terms;
  RoundTrip line_trip;
  RoundTrip site_trip;
  Path line_path;  // without bounds: the store bounds what is on its way
  Path site_path;

  std::vector<Taking> takings;
  std::vector<Giving> givings;
  std::vector<std::uint32_t> free_takings;
  std::vector<std::uint32_t> free_givings;
  Names taking_of;  // by name
  Names giving_of;
  Names acked_taking_of;  // by requester, responder and the requester's queue pair
  Names acked_giving_of;
  Names unlearned;           // by requester and responder: the first of those whose requester is not known
  std::uint32_t owned = 0;   // takings that are neither watching nor failed
  std::uint32_t oldest = 0;  // where the search for a place looks next
  // The last time that a stream may have passed unwatched: at the first frame, or when the table was full.
  Time blind_since = kNever;  // kNever: nothing came yet

  Ring<std::uint32_t> answering;   // takings with an ACK or NAK for their endpoint
  Ring<std::uint32_t> talking;     // takings, and givings behind them, with something to say
  Ring<std::uint32_t> line_ready;  // takings, and keepings behind them, in turn
  Ring<std::uint32_t> site_ready;
  Ring<Frame> passing[2];  // by the side to which they go
  Ring<Farewell> farewells;
  Ring<Farewell> disowned;  // ownerships that the partner agreed to, and that are over here
  std::vector<BodyId> released;
  Deadlines deadlines;

  std::vector<Keeping> keepings;
  std::vector<Ordering> orderings;
  std::vector<std::uint32_t> free_keepings;
  std::vector<std::uint32_t> free_orderings;
  Names keeping_of;  // as acknowledgements are named
  Names ordering_of;
  Ring<std::uint32_t> ordering_ready;  // with answers for their requester
  Ring<Farewell> refusals;             // streams of answers that found no place
  std::uint32_t answers_held = 0;

  std::vector<Meeting> meetings;  // a ring: who comes new takes the oldest one's row
  std::uint32_t next_meeting = 0;

  Partner partner;
  Covering covering;
  Restoring restoring;
  tsl::robin_map<std::uint64_t, std::uint32_t> giving_by_lease;
  bool leaving = false;
  bool leave_due = false;  // to be said (again)
  std::uint64_t leases = 0;
  std::uint64_t messages = 0;
  wire::Address
      here;  // hello goes between two endpoints that talk, or where the partner's messages come from
  wire::Address there;
  wire::Mad mad{};

  std::uint32_t most() const { return config.halves; }
  std::uint32_t index_of(const Taking& t) const { return static_cast<std::uint32_t>(&t - takings.data()); }
  std::uint32_t index_of(const Giving& g) const { return static_cast<std::uint32_t>(&g - givings.data()); }
  std::uint32_t row_of(const Giving& g) const {
    return most() + index_of(g);
  }  // among those that talk, and deadlines; the row between is the partner's deadline
  std::uint32_t index_of(const Keeping& k) const { return static_cast<std::uint32_t>(&k - keepings.data()); }
  std::uint32_t index_of(const Ordering& o) const {
    return static_cast<std::uint32_t>(&o - orderings.data());
  }
  std::uint32_t row_of(const Keeping& k) const { return 2 * most() + 1 + index_of(k); }
  std::uint32_t row_of(const Ordering& o) const { return 3 * most() + 1 + index_of(o); }
  std::uint32_t parity_row() const { return most() * 4 + 1; }
  Sending to_line(Taking& t);
  Sending to_site(Giving& g);
};

// --- times of the line ---

// A message to the partner that has no answer by then was lost.
inline Duration line_wait(const BoxState& b) { return std::max(b.config.line_timeout, b.partner.trip * 2); }
inline Duration between_hellos(const BoxState& b) { return std::max(b.config.hello, b.partner.trip / 4); }
inline Duration patience(const BoxState& b) { return b.config.patience + b.partner.trip * 2; }
// A half may rest for so long: an ownership costs more than a round trip.
inline Duration quiet(const BoxState& b) { return std::max(b.config.quiet, b.partner.trip); }
// So long a gap in answers is waited for: until then the partner has sent them again, and once more.
inline Duration gap_patience(const BoxState& b) { return line_wait(b) * 2; }
// Between a loss and its report, so that parity can come first.
inline Duration parity_wait(const BoxState& b) { return std::max(b.config.parity_wait, b.partner.trip / 8); }
// What passed unwatched may still be acknowledged. Nobody knows for how long before the line is known.
inline bool settled(const BoxState& b, Time since, Time now) {
  return b.partner.trip.ps != 0 && now >= since.after(line_wait(b) * 2);
}

inline HalfName acked_name(const HalfName& n, Qpn requester_qpn) {
  return {n.requester, n.responder, requester_qpn};
}
// Anything else passes, in its turn; no path takes more in one packet.
inline bool may_be_kept(const Frame& f) {
  const wire::Header& h = f.header;
  const bool kept = is_push(h.opcode) || (is_fetch(h.opcode) && numbers_answers_apart(h.mode));
  return kept && f.payload <= kMostPayload;
}
inline bool marked(const Frame& f) { return (f.tos & wire::kEcnCe) == wire::kEcnCe; }
inline void queue(Ring<std::uint32_t>& ring, bool& queued, std::uint32_t index) {
  if (queued) return;
  queued = true;
  CHECK(ring.push(index));
}

// A stream of answers gets a row, at either box; there must be a free one.
template <class Row>
Row& begin_row(std::vector<Row>& rows, std::vector<std::uint32_t>& free, Names& of, const HalfName& name,
               wire::Mode mode) {
  const std::uint32_t index = free.back();
  free.pop_back();
  of[name] = index;
  rows[index].used = true;
  rows[index].name = name;
  rows[index].mode = mode;
  return rows[index];
}
// Queues may still hold its number.
template <class Row>
void end_row(BoxState& b, std::vector<std::uint32_t>& free, Names& of, Row& row) {
  of.erase(row.name);
  b.deadlines.remove(b.row_of(row));
  const bool queued[2] = {row.talking, row.ready};
  row = Row{};
  row.talking = queued[0];
  row.ready = queued[1];
  free.push_back(b.index_of(row));
}

// Its endpoint is to be told something.
inline void answer(BoxState& b, Taking& t, bool& due) {
  due = true;
  queue(b.answering, t.answering, b.index_of(t));
}
// A packet at or behind `expected` is dropped, to be asked for again. What names the highest of them asks for
// all.
inline void hold_back(Taking& t, const Frame& f, Seq seq) {
  if (!t.held_back || seq > t.ahead.dropped.seq) t.ahead.dropped = {seq, echo_of(f.header), {}, false, false};
  t.held_back = true;
}

// box.cc
void pass(BoxState& b, Side to, const Frame& f);
void let_go(BoxState& b, const Frame& f);
void arm(BoxState& b, const Taking& t, Time now);
void arm(BoxState& b, const Giving& g);
void arm(BoxState& b, const Keeping& k);
void arm(BoxState& b, const Ordering& o);
void arm_partner(BoxState& b);

// watch.cc
// These two talk with each other through the box: the partner stands between them, if there is one.
void ask_along(BoxState& b, const HalfName& name, Time now);
void on_site_request(BoxState& b, const Frame& f, Time now);
// An acknowledgement from the line; true: it was taken.
bool on_line_acknowledge(BoxState& b, const Frame& f, Time now);
void watch_again(BoxState& b, Taking& t, Time now);
void forget(BoxState& b, Taking& t);
// What the connection manager says of a half of the site.
void follow(BoxState& b, const HalfName& name, wire::Mode mode, Qpn requester_qpn, WirePsn first,
            std::uint32_t mtu, Time now);

// follow.cc
// True: the frame waits.
bool on_connection_message(BoxState& b, Side from, const Frame& f, std::span<const std::uint8_t> mad,
                           Time now);

// taking.cc
void take(BoxState& b, Taking& t, const Frame& f, Time now);
// The packet at `expected`.
void take_next(BoxState& b, Taking& t, const Frame& f, Time now);
void refuse_again(BoxState& b, Taking& t, const Frame& f, Time now);
void begin_owning(BoxState& b, Taking& t, Time now);
void renew(BoxState& b, Taking& t, Time now);
void stop_asking(BoxState& b, Taking& t, Time now);
// Its connection is about to end, or has ended: nothing more is taken, and nothing of it is known afterwards.
void end_soon(BoxState& b, Taking& t, Time now);
// The requester says farewell with this DREQ; true: it waits for what it was acknowledged.
bool leave(BoxState& b, Taking& t, const Frame& dreq, Time now);
void pass_farewell(BoxState& b, Taking& t);
void drain(BoxState& b, Taking& t, Time now);
void fail_half(BoxState& b, Taking& t, std::uint8_t syndrome, Time now);
void on_owned(BoxState& b, Taking& t, Time now);
void on_report(BoxState& b, Taking& t, const Message& m, Time now);
void on_released(BoxState& b, Taking& t, Time now);
void on_timer(BoxState& b, Taking& t, Time now);
// One that is ready.
bool next_for_line(BoxState& b, Taking& t, Out& out, Time now);
Time deadline_of(const BoxState& b, const Taking& t);

// answering.cc
Seq answerable(const BoxState& b, const Taking& t);
bool next_answer(BoxState& b, Out& out);

// ahead.cc
void take_any(BoxState& b, Taking& t, const Frame& f, Time now);
// `expected` has moved over packets that were kept ahead: those from `from` on are in order now.
void joined(BoxState& b, Taking& t, Seq from);
void forget_ahead(BoxState& b, Taking& t);

// reading.cc
bool take_read(BoxState& b, Taking& t, const Frame& f, Seq seq, Time now);
void on_line_answer(BoxState& b, const Frame& f, Time now);

// giving.cc
// This packet is here, ahead of a gap: the next report names it.
void name_ahead(BoxState& b, Giving& g, Seq seq);
bool on_line_request(BoxState& b, const Frame& f, Time now);
bool on_site_acknowledge(BoxState& b, const Frame& f, Time now);
void on_own(BoxState& b, const Message& m, Time now);
void on_release(BoxState& b, const Message& m);
void orphan(BoxState& b, Giving& g, Time now);
// Its responder is another connection's by now.
void end_giving(BoxState& b, const HalfName& name);
void on_timer(BoxState& b, Giving& g, Time now);
bool next_for_site(BoxState& b, Out& out, Time now);
Time deadline_of(const BoxState& b, const Giving& g);

// keeping.cc
// True: the answer of the site's responder was dealt with.
bool keep_answer(BoxState& b, const Frame& f, Time now);
// Its acknowledgement must wait behind answers that wait.
bool waits_behind_kept(BoxState& b, const Frame& f);
void on_answered(BoxState& b, const Message& m, Time now);
// An answer, or an acknowledgement behind it.
bool next_for_line(BoxState& b, Keeping& k, Out& out, Time now);
// False: there is nothing to say.
bool say(Keeping& k, Message& m);
void end_keeping(BoxState& b, const HalfName& name);
// `anew`: it is there, with nothing in it.
void partner_gone_for_keepings(BoxState& b, bool anew, Time now);
void on_timer(BoxState& b, Keeping& k, Time now);
Time deadline_of(const BoxState& b, const Keeping& k);

// ordering.cc
void on_answers(BoxState& b, const Message& m, Time now);
bool order_answer(BoxState& b, const Frame& f, Time now);
bool waits_behind_held(BoxState& b, const Frame& f);
// A requester of the site asks for what it was answered, or for what is missing of it.
void ask_again(BoxState& b, const Frame& f);
bool next_answer_for_site(BoxState& b, Out& out, Time now);
bool say(Ordering& o, Message& m);
void end_ordering(BoxState& b, const HalfName& name, Time now);
void partner_gone_for_orderings(BoxState& b, Time now);
void on_timer(BoxState& b, Ordering& o, Time now);
Time deadline_of(const BoxState& b, const Ordering& o);

// covering.cc
// A data frame leaves. Which member of the open group it is; Out::kNoMember: it has no parity.
std::uint8_t cover(BoxState& b, const Taking& t, Seq seq, bool again, const Frame& f, Time now);
bool next_parity(BoxState& b, Out& out, Time now);
void on_parity_timer(BoxState& b, Time now);
void arm_parity(BoxState& b);

// restoring.cc
bool on_parity(BoxState& b, const Frame& f, std::span<const std::uint8_t> bytes, Time now);
// A frame of the line is kept; what its row in the store says of that.
std::uint32_t remember(BoxState& b, const Giving& g, Seq seq, BodyId body, Time now);
// The store lets go of it.
void let_go_of_recent(BoxState& b, std::uint32_t stamp, BodyId body);
// It came ahead of a gap; true: the partner is told later.
bool tell_later(BoxState& b, const Giving& g, Seq seq, Time now);
void tell_what_is_due(BoxState& b, Time now);
void forget_recent(BoxState& b, Time now);
void forget_groups(BoxState& b, Time now);
Time restoring_deadline(const BoxState& b);
bool next_restore(BoxState& b, Restore& out);
void on_restored(BoxState& b, const Frame& f, Time now);

// partner.cc
bool on_message(BoxState& b, const Frame& f, std::span<const std::uint8_t> mad, Time now);
bool next_message(BoxState& b, Out& out, Time now);
bool partner_there(const BoxState& b, Time now);
void wish_for_partner(BoxState& b, Time now);
// Whether the responder is known to stand behind the partner; if not, the partner is asked along that way.
bool is_behind_partner(BoxState& b, const HalfName& half, Time now);
void on_partner_timer(BoxState& b, Time now);
void leave(BoxState& b, Time now);
Time partner_deadline(const BoxState& b);

}  // namespace weft::wan
