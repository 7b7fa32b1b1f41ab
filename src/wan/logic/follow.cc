// What the connection manager says as it passes (docs/protocol/connection-manager.md): which two queue pairs
// are a connection and with which numbers each begins, and when it ends.
//
//   REQ    remembered, until its REP comes from the other side
//   REP    both halves are known. What stood under their names belongs to an earlier connection
//   DREQ   ends a half. What was acknowledged early goes first: the DREQ waits behind it
//
// RTU adds nothing: the first packet says as much when it is lost. REJ and DREP need no answer from a box.
//
// Anybody can write these messages, so nothing that was acknowledged is dropped because of one that came over
// the line: only the site's own endpoint says that a queue pair of the site is another connection's by now,
// and the partner hears of it in a signed report.
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

Meeting* find(BoxState& b, const wire::Address& active, const wire::Address& passive, std::uint32_t id) {
  for (Meeting& m : b.meetings) {
    if (m.mtu != 0 && m.id == id && m.active == active && m.passive == passive) return &m;
  }
  return nullptr;
}

void on_request(BoxState& b, Side from, const Frame& f, const wire::CmMessage& m) {
  if (m.transport != wire::kTransportRc || m.mtu == 0 || m.mtu > 5 || b.meetings.empty()) return;
  Meeting* e = find(b, f.source, f.destination, m.local_id);
  if (e == nullptr) {
    e = &b.meetings[b.next_meeting];
    b.next_meeting = (b.next_meeting + 1) % static_cast<std::uint32_t>(b.meetings.size());
  } else if (e->active_qpn == m.qpn && e->passive_starts == m.starting_psn) {
    return;  // repeated
  }
  *e = {from, false, f.source, f.destination, m.local_id, m.qpn, m.starting_psn, 128U << m.mtu};
}

void on_response(BoxState& b, Side from, const Frame& f, const wire::CmMessage& m, Time now) {
  Meeting* e = find(b, f.destination, f.source, m.remote_id);
  if (e == nullptr || e->active_at == from || e->answered) return;
  e->answered = true;
  const wire::EceOptions ece = wire::decode_ece(m.vendor_id, m.modifier);
  const HalfName to_passive{e->active, e->passive, m.qpn};
  const HalfName to_active{e->passive, e->active, e->active_qpn};
  const bool active_here = e->active_at == Side::kSite;
  end_giving(b, active_here ? to_active : to_passive);
  for (const HalfName& answers :
       {HalfName{e->active, e->passive, e->active_qpn}, HalfName{e->passive, e->active, m.qpn}}) {
    end_keeping(b, answers);
    end_ordering(b, answers, now);
  }
  const wire::Mode mode = ece.srnic ? wire::Mode::kSrnic : ece.irn ? wire::Mode::kIrn : wire::Mode::kRoce;
  if (active_here) {
    follow(b, to_passive, mode, e->active_qpn, m.starting_psn, e->mtu, now);
  } else {
    follow(b, to_active, mode, m.qpn, e->passive_starts, e->mtu, now);
  }
}

// True: the DREQ waits.
bool on_farewell(BoxState& b, Side from, const Frame& f, const wire::CmMessage& m, Time now) {
  if (from == Side::kSite) {
    const auto it = b.taking_of.find(HalfName{f.source, f.destination, m.qpn});
    return it != b.taking_of.end() && leave(b, b.takings[it->second], f, now);
  }
  const auto it = b.acked_taking_of.find(acked_name({f.destination, f.source, {}}, m.qpn));
  if (it != b.acked_taking_of.end()) end_soon(b, b.takings[it->second], now);
  return false;
}

}  // namespace

bool on_connection_message(BoxState& b, Side from, const Frame& f, std::span<const std::uint8_t> mad,
                           Time now) {
  wire::CmMessage m;
  wire::MadError error{};
  if (!wire::decode(mad, m, error)) return false;
  if (m.kind == wire::CmKind::kReq) on_request(b, from, f, m);
  if (m.kind == wire::CmKind::kRep) on_response(b, from, f, m, now);
  return m.kind == wire::CmKind::kDreq && on_farewell(b, from, f, m, now);
}

}  // namespace weft::wan
