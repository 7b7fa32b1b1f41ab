#include "pair/meetings.h"

#include <algorithm>
#include <bit>

#include "pair/datagram.h"

namespace weft::pair {
namespace {

constexpr Duration kPatience = milliseconds(3);

}  // namespace

Meetings::Meetings(const Plan& plan, World& world, Workload& programs) : plan_(plan), programs_(programs) {
  for (std::uint32_t i = 0; i < plan.connections.size(); ++i) {
    const ConnectionPlan& c = plan.connections[i];
    if (!world.crosses_line(c.host[0], c.host[1])) continue;
    Meeting m;
    m.connection = i;
    m.active = i & 1U;
    m.leaves = (i >> 1U) & 1U;
    meetings_.push_back(m);
  }
}

bool Meetings::all(bool Meeting::*what) const {
  return std::all_of(meetings_.begin(), meetings_.end(), [&](const Meeting& m) { return m.*what; });
}

bool Meetings::waiting() const {
  return !all(&Meeting::met) || programs_.waiting() || !all(&Meeting::parted);
}

Time Meetings::next_wake() const {
  const bool met = all(&Meeting::met);
  Time at = met ? programs_.next_wake() : kNever;
  if (met && programs_.waiting()) return at;
  for (const Meeting& m : meetings_) {
    if (met ? !m.parted : !m.met) at = std::min(at, m.again);
  }
  return at;
}

// `local_id` says which meeting it is, and is the same at both ends.
void Meetings::say(World& world, const Meeting& m, std::uint32_t side, wire::CmKind kind) {
  const ConnectionPlan& c = plan_.connections[m.connection];
  const EndConfig& peer = c.end[1 - side];
  wire::CmMessage out;
  out.kind = kind;
  out.local_id = out.remote_id = m.connection + 1;
  const bool farewell = kind == wire::CmKind::kDreq;
  out.qpn = programs_.qpn(m.connection, farewell ? 1 - side : side);
  out.starting_psn = peer.psn;
  out.mtu = static_cast<std::uint8_t>(std::countr_zero(c.mtu) - 7);
  wire::EceOptions agreed;
  for (const EndConfig& e : c.end) {
    agreed.irn = agreed.irn || e.mode == wire::Mode::kIrn;
    agreed.srnic = agreed.srnic || e.mode == wire::Mode::kSrnic;
  }
  if (agreed.irn || agreed.srnic) {
    out.vendor_id = wire::kEceVendor;
    out.modifier = wire::encode_ece(agreed);
  }
  wire::Mad mad;
  encode(out, mad);
  world.say(c.host[side], c.host[1 - side], mad);
}

void Meetings::hear(World& world, std::uint32_t host, const wire::CmMessage& m, Time now) {
  const auto it = std::find_if(meetings_.begin(), meetings_.end(),
                               [&](const Meeting& x) { return x.connection + 1 == m.local_id; });
  if (it == meetings_.end()) return;
  const ConnectionPlan& c = plan_.connections[it->connection];
  const std::uint32_t side = c.host[0] == host ? 0 : 1;
  switch (m.kind) {
    case wire::CmKind::kReq:
      return say(world, *it, side, wire::CmKind::kRep);
    case wire::CmKind::kRep:
      it->met = true;
      return;
    case wire::CmKind::kDreq:
      world.referee().farewell({world.host(c.host[1 - side]).id(), programs_.qpn(it->connection, 1 - side)},
                               now);
      return say(world, *it, side, wire::CmKind::kDrep);
    case wire::CmKind::kDrep:
      it->parted = true;
      return;
    default:
      return;
  }
}

void Meetings::act(World& world, Time now) {
  wire::Mad mad;
  for (std::uint32_t h = 0; h < world.host_count(); ++h) {
    while (world.hear(h, mad)) {
      wire::CmMessage m;
      wire::MadError error{};
      if (decode(mad, m, error)) hear(world, h, m, now);
    }
  }
  const bool met = all(&Meeting::met);
  if (met) programs_.act(world, now);
  if (met && programs_.waiting()) return;
  for (Meeting& m : meetings_) {
    if ((met ? m.parted : m.met) || m.again > now) continue;
    m.again = now + kPatience;
    say(world, m, met ? m.leaves : m.active, met ? wire::CmKind::kDreq : wire::CmKind::kReq);
  }
}

void World::say(std::uint32_t from, std::uint32_t to, const wire::Mad& mad) {
  Passage p{wire::mad_packet({}), host(from).address(), host(to).address(), {mad.begin(), mad.end()}, 0};
  const Time depart = transmitters_[from].line.depart(now_, Bytes{frame_bytes(p.header, p.payload.size())});
  transmitters_[from].free_at = depart;
  launch(crosses_line(from, to) ? host_count() + Line::site(from) : to, std::move(p), depart);
}

bool World::hear(std::uint32_t h, wire::Mad& mad) {
  if (heard_[h].empty()) return false;
  mad = heard_[h].front();
  heard_[h].pop_front();
  return true;
}

}  // namespace weft::pair
