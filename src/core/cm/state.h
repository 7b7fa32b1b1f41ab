// The inside of the connection manager: the row of a connection, the tables that find it, and one function
// per message and per step. Shared by the files of this folder only:
//
//   state.cc        tables, sending, events, the life of a row
//   active.cc       connect, REP, establish
//   passive.cc      listen, REQ, accept, RTU
//   teardown.cc     REJ, DREQ, DREP, abandon
//   datagrams.cc    SIDR
//   cm.cc           dispatch, timers, queue pair attributes
//
// Which phase leads where:
//
//   active   kReqSent -> kRepReceived -> kEstablished -> kDreqSent -> kTimewait -> kOver
//   passive  kReqReceived -> kRepSent -> kEstablished -> …
//   SIDR     kSidrSent -> kOver        kSidrReceived -> kAnswered -> kOver
//   and from each to kOver, or through kAnswered when this side said no: it stays to say no again.
//
// A row in phase kOver stays only until its events are polled.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "core/cm/cm.h"
#include "core/cm/peer_table.h"
#include "core/transport/sched/deadlines.h"

namespace weft::cm {

inline constexpr std::uint32_t kNone = UINT32_MAX;

enum class Phase : std::uint8_t {
  kFree,
  kReqSent,
  kReqReceived,
  kRepReceived,
  kRepSent,
  kEstablished,
  kDreqSent,
  kTimewait,
  kSidrSent,
  kSidrReceived,
  kAnswered,  // `last` is a REJ or a SIDR_REP, sent again when the peer asks again
  kOver,
};

struct Connection {
  ConnId id{};
  Phase phase = Phase::kFree;
  bool active = false;
  bool abandoned = false;  // no more events
  bool owes_mra = false;   // an MRA is owed; mra_about says for which message
  bool owes_last = false;  // `last` waits to be sent
  bool in_outbox = false;  // both survive the reuse of the row, because its index is still in that list
  bool in_events = false;
  std::uint8_t mra_about = 0;
  std::uint16_t pending = 0;  // bits of CmEventKind
  std::uint16_t reason = 0;
  std::uint8_t retries_left = 0;
  Duration interval{};
  Time deadline = kNever;
  ListenerId listener{kNone};
  std::uint32_t peer_id = 0;  // the peer's communication id
  std::uint64_t transaction = 0;
  std::uint8_t peer_response_timeout = 0;
  std::uint8_t max_retries = 0;
  ConnInfo info;
  std::uint32_t private_length = 0;  // of what came last
  std::array<std::uint8_t, kAcceptPrivate> private_data{};
  wire::Mad last{};  // what a time-out, or the peer's repetition, sends again

  bool is_pending(CmEventKind kind) const { return (pending >> static_cast<unsigned>(kind) & 1U) != 0; }
};

struct Listener {
  bool used = false;
  ListenAttr attr;
  std::uint32_t waiting = 0;  // requests without an answer
};

struct State {
  explicit State(const CmConfig& c);

  // --- rows ---
  Connection* find(ConnId id);
  Connection* find(PeerTable& table, const wire::Address& peer, std::uint32_t number);
  Connection* find_mine(const wire::CmMessage& m, const MadFacts& facts);  // by remote_id, from its peer
  Connection* create();                                                    // null when the table is full
  Connection* create_from_answered();
  std::uint32_t index_of(const Connection& c) const { return c.id.v & index_mask; }
  void free_if_over(Connection& c);
  std::uint64_t new_transaction();
  WirePsn new_psn() { return {static_cast<std::uint32_t>(random.next()) & kPsnMask}; }

  // --- leaving a phase ---
  // A time that a message named. Codes go up to 31, two and a half hours: nobody keeps a row here by a word
  // for longer than an MRA of RDMA-CM's own does, 69 s at a time.
  static Duration believed(std::uint8_t code) { return timeout_of(std::min<std::uint8_t>(code, 24)); }
  void wait(Connection& c, Time now, Duration interval, std::uint8_t retries);  // for an answer to `last`
  void stop_waiting(Connection& c) { c.deadline = kNever; }
  void over(Connection& c);  // nothing more to say
  void over(Connection& c, CmEventKind kind, std::uint16_t reason);
  void enter_timewait(Connection& c, Time now);
  void linger(Connection& c, Time now);  // in kAnswered
  void leave_backlog(Connection& c);

  // --- sending ---
  wire::CmMessage message(const Connection& c, wire::CmKind kind) const;  // ids and transaction filled in
  void send(Connection& c, const wire::CmMessage& m);                     // and keep it as `last`
  void send_again(Connection& c);
  void reply(const MadFacts& received, const wire::CmMessage& m);  // kept nowhere
  void reply_rej(const MadFacts& received, const wire::CmMessage& to, std::uint16_t reason,
                 std::uint8_t about);
  void reject_with(Connection& c, std::uint16_t reason, std::uint8_t about,
                   std::span<const std::uint8_t> private_data);
  void owe_mra(Connection& c, std::uint8_t about);
  void to_outbox(Connection& c);

  // --- events ---
  void raise(Connection& c, CmEventKind kind);
  void keep_private(Connection& c, const wire::CmMessage& m, std::size_t skip);

  // --- one per message ---
  void on_req(const MadFacts& f, const wire::CmMessage& m, Time now);
  void on_req_again(Connection& c, const MadFacts& f, const wire::CmMessage& m, Time now);
  void on_rep(const MadFacts& f, const wire::CmMessage& m, Time now);
  void on_rtu(Connection& c);
  void on_mra(Connection& c, const wire::CmMessage& m, Time now);
  void on_rej(const MadFacts& f, const wire::CmMessage& m, Time now);
  void on_dreq(const MadFacts& f, const wire::CmMessage& m, Time now);
  void on_drep(Connection& c, Time now);
  void on_sidr_req(const MadFacts& f, const wire::CmMessage& m, Time now);
  void on_sidr_rep(const MadFacts& f, const wire::CmMessage& m);
  void on_timeout(Connection& c, Time now);

  // --- shared steps ---
  Listener* find_listener(wire::PortSpace space, std::uint16_t port, const wire::Address& local);
  void start_disconnect(Connection& c, Time now);
  void abandon(Connection& c, Time now);
  void answer_sidr(Connection& c, const AnswerAttr& a, Time now);
  // The peer connects anew a queue pair that our connection still has as its other end: it has forgotten that
  // connection, which ends here. True: the peer must be told so (REJ 10).
  bool end_stale(const wire::Address& peer, Qpn peer_qpn, Time now);
  void agree_on_modes(Connection& c, const wire::CmMessage& m);
  void offer_modes(wire::CmMessage& m) const;
  void accept_modes(const Connection& c, wire::CmMessage& m) const;

  CmConfig config;
  CmCounters counters;
  Prng random;
  std::uint32_t index_mask = 0;
  std::uint32_t live = 0;
  std::vector<std::unique_ptr<Connection>> rows;  // grown on demand, reused for ever
  std::vector<std::uint32_t> free_rows;
  std::vector<Listener> listeners;
  PeerTable by_peer_id;   // passive connections and SIDR requests
  PeerTable by_peer_qpn;  // every connection with a known peer queue pair, time wait included
  Deadlines deadlines;
  std::vector<std::uint32_t> outbox;  // rings of row indices, at most one entry a row
  std::vector<std::uint32_t> event_rows;
  std::uint64_t outbox_head = 0, outbox_tail = 0;
  std::uint64_t events_head = 0, events_tail = 0;
  static constexpr std::size_t kReplies = 64;
  std::vector<MadOut> replies;  // ring
  std::uint64_t replies_head = 0, replies_tail = 0;
};

void set_private(wire::CmMessage& m, std::span<const std::uint8_t> bytes, std::size_t skip = 0);
// An MTU as verbs' code 1 to 5, and as bytes; 0 if it is none of the five.
std::uint8_t mtu_code(std::uint32_t bytes);
std::uint32_t mtu_bytes(std::uint8_t code);

}  // namespace weft::cm
