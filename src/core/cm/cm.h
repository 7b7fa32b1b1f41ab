// The connection manager: one object per process, driven like a Device. Time and MADs go in;
// MADs, events and deadlines come out. There is no clock, socket or queue pair in it.
//
// What it speaks is RDMA-CM over the CM messages of docs/protocol/connection-manager.md:
//
//        active                                    passive
//   connect      --- REQ -------------------->     kConnectRequest
//                <-------------------- REP ---     accept            (queue pair in RTR before)
//   kConnectResponse
//   establish    --- RTU -------------------->     kEstablished      (queue pairs: RTS before it, RTS now)
//   disconnect   --- DREQ ------------------->     kDisconnected
//   kDisconnected <------------------- DREP ---
//        …time wait, then kTimewaitExit on both sides
//
// How a world drives it, in any order and as often as it likes:
//
//   on_mad(now, facts, bytes)      one received MAD; false: not a CM message, not for this object
//   poll_mad(out)                  one MAD to send
//   on_timer(now), next_deadline() time-outs; the deadline may be early
//   poll_event(event)              results for the user, in order for each connection
//   qp_setup(conn, state)          the attributes of the connection's queue pair, for modify_qp
//
// A connection belongs to the user from connect, resolve or its request event until its last event is
// polled (terms.h) or it is abandoned. A connection can be abandoned in any state; the manager then ends it
// by the protocol's rules and raises no more events. Nothing else frees it. No state leaks at either side: a
// lost message is repeated, and a message for a connection that is gone is always answered.
//
// Differences from Linux, all compatible: a DREQ is answered at once instead of when the program disconnects
// as well; a rejection is remembered for a while, so that a repeated REQ is rejected again without asking the
// program twice; a REP is repeated at once when a repeated REQ shows that it was lost; an answer for an
// unknown REP is REJ 6.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/result.h"
#include "core/cm/config.h"
#include "core/cm/terms.h"

namespace weft::cm {

struct State;  // connections and their tables, state.h

class Cm {
 public:
  explicit Cm(const CmConfig& config);
  ~Cm();
  Cm(const Cm&) = delete;
  Cm& operator=(const Cm&) = delete;

  // --- user ---
  Outcome<ListenerId> listen(const ListenAttr& attr);  // kBusy: that port of that address is taken
  Outcome<void> close(ListenerId listener, Time now);  // undelivered requests are rejected
  Outcome<ConnId> connect(const ConnectAttr& attr, Time now);
  Outcome<void> establish(ConnId conn, Time now);
  // The REP leaves with a later poll_mad. By then the queue pair must be in RTR, or the connection abandoned;
  // the queue pair goes to RTS with kEstablished. A queue pair that goes to RTS earlier raises no
  // kCommEstablished, so nothing calls notify for it.
  Outcome<void> accept(ConnId conn, const AcceptAttr& attr, Time now);
  // Both sides may reject before the connection is established. `conn` is gone afterwards.
  Outcome<void> reject(ConnId conn, std::span<const std::uint8_t> private_data, Time now);
  // The first packet came in before the RTU (Device: kCommEstablished).
  Outcome<void> notify(ConnId conn, Time now);
  Outcome<void> disconnect(ConnId conn,
                           Time now);  // also after the peer disconnected: then nothing is left to do
  Outcome<void> abandon(ConnId conn, Time now);
  Outcome<ConnId> resolve(const ResolveAttr& attr, Time now);
  Outcome<void> answer(ConnId conn, const AnswerAttr& attr, Time now);  // `conn` is gone afterwards

  Outcome<QpSetup> qp_setup(ConnId conn, QpState state) const;  // kInit, kRtr, kRts
  Outcome<ConnInfo> info(ConnId conn) const;
  // The mode that was agreed for the connection with this queue pair of a peer; nothing if there is none.
  std::optional<wire::Mode> mode_towards(const wire::Address& peer, Qpn peer_qpn) const;
  bool poll_event(CmEvent& out);

  // --- world ---
  bool on_mad(Time now, const MadFacts& facts, std::span<const std::uint8_t> bytes);
  bool poll_mad(MadOut& out);
  bool has_mads() const;  // false: poll_mad() has nothing
  void on_timer(Time now);
  Time next_deadline() const;

  // --- what tests, tools and worlds may look at ---
  const CmConfig& config() const;
  const CmCounters& counters() const;
  std::uint32_t connections() const;  // in any state, time wait included
  std::uint32_t listeners() const;
  void check_invariants() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace weft::cm
