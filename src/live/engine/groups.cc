// Groups of a Nic: its host is a member of those that one of its queue pairs is attached to.
#include "core/wire/ip.h"
#include "live/engine/context.h"
#include "live/engine/nic_state.h"

namespace weft::live {

Outcome<void> Context::attach(const Qp* qp, const wire::Address& group) {
  if (qp->granted.type != QpType::kUd || !wire::is_group(group)) return fail(Errc::kInvalid);
  Nic& nic = *record(qp).nic;
  const Owned owned(nic.ownership());
  return nic.attach_owned(group, qp->qpn);
}

Outcome<void> Context::detach(const Qp* qp, const wire::Address& group) {
  Nic& nic = *record(qp).nic;
  const Owned owned(nic.ownership());
  return nic.detach_owned(group, qp->qpn);
}

void Context::detach_all(const Qp* qp) {
  Nic& nic = *record(qp).nic;
  const Owned owned(nic.ownership());
  nic.detach_all_owned(qp->qpn);
}

// The background thread sleeps without what the wire has opened, until it is woken.
Outcome<void> Nic::attach_owned(const wire::Address& group, Qpn qpn) {
  Memberships& memberships = shard_.memberships();
  if (memberships.contains(group, qpn)) return {};
  if (!memberships.has_room_in(group)) return fail(Errc::kNoMemory);
  const bool first = memberships.members_of(group).empty();
  if (first) {
    if (const auto joined = wire_->join(group); !joined) return joined;
  }
  memberships.add(group, qpn);
  if (!first) return {};
  groups_fd_.store(wire_->groups());
  wake();
  return {};
}

Outcome<void> Nic::detach_owned(const wire::Address& group, Qpn qpn) {
  if (!shard_.memberships().contains(group, qpn)) return fail(Errc::kInvalid);
  shard_.memberships().remove(
      qpn, [&](const wire::Address& a) { return a == group; },
      [this](const wire::Address& a) { wire_->leave(a); });
  return {};
}

void Nic::detach_all_owned(Qpn qpn) {
  shard_.memberships().remove(
      qpn, [](const wire::Address&) { return true; }, [this](const wire::Address& a) { wire_->leave(a); });
}

}  // namespace weft::live
