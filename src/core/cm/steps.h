// For tests: the steps of a connection one by one, between two managers whose MADs the test carries itself.
#pragma once
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/cm/two_managers.h"

namespace weft::cm {

// Everything that `end` wants to send, decoded.
inline std::vector<wire::CmMessage> mads(End& end) {
  std::vector<wire::CmMessage> all;
  for (MadOut out; end.cm.poll_mad(out);) {
    wire::CmMessage m;
    wire::MadError error{};
    CHECK(decode(out.mad, m, error));
    all.push_back(m);
  }
  return all;
}

inline CmEvent event(End& end) {
  CmEvent e;
  CHECK(end.cm.poll_event(e));
  return e;
}

inline bool silent(End& end) {
  CmEvent e;
  return !end.cm.poll_event(e);
}

// Carries what is there to the other side, once.
inline void carry(TwoManagers& t, End& from, End& to) {
  for (const wire::CmMessage& m : mads(from)) t.inject(to, m, from.address);
}

inline void listen_at(End& e, wire::PortSpace space = wire::PortSpace::kTcp, std::uint32_t backlog = 8) {
  ListenAttr l;
  l.port = TwoManagers::kPort;
  l.space = space;
  l.backlog = backlog;
  CHECK(e.cm.listen(l).has_value());
}

inline AcceptAttr accept_attr() {
  AcceptAttr t;
  t.qpn = {0x20022};
  t.responder_resources = 16;
  t.initiator_depth = 2;
  return t;
}

// Up to the REP's arrival; returns the active and the passive end's ids.
inline std::pair<ConnId, ConnId> until_response(TwoManagers& t) {
  listen_at(t.b);
  const ConnId active = *t.a.cm.connect(t.connect_attr(), t.now);
  carry(t, t.a, t.b);
  const CmEvent request = event(t.b);
  CHECK(request.kind == CmEventKind::kConnectRequest);
  CHECK(t.b.cm.accept(request.conn, accept_attr(), t.now).has_value());
  carry(t, t.b, t.a);
  CHECK(event(t.a).kind == CmEventKind::kConnectResponse);
  return {active, request.conn};
}
inline std::pair<ConnId, ConnId> until_established(TwoManagers& t) {
  const auto ids = until_response(t);
  CHECK(t.a.cm.establish(ids.first, t.now).has_value());
  carry(t, t.a, t.b);
  CHECK(event(t.a).kind == CmEventKind::kEstablished);
  CHECK(event(t.b).kind == CmEventKind::kEstablished);
  return ids;
}

}  // namespace weft::cm
