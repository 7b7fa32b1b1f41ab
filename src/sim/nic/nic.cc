#include "sim/nic/nic.h"

#include "core/base/check.h"
#include "core/verbs/ladder.h"

namespace weft::sim {

constexpr std::uint64_t kPage = 4096;

Nic::Nic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress,
         PacketMarking marking, NicObserver* observer)
    : MeetingPort(exchange, address_of(host)),
      endpoint_(fabric, host, config, egress, marking, observer),
      domain_(*device().alloc_pd()) {}

Outcome<PortMemory> Nic::map(std::uint64_t address, std::uint64_t length, std::uint8_t access,
                             MemoryKind kind, std::optional<Prng> random) {
  const auto made = device().register_mr(domain_, address, length, access);
  if (!made) return fail(made.error());
  PortMemory m{made->lkey, made->rkey, address, length, {}};
  if (kind == MemoryKind::kBytes) m.bytes = memory().add(made->region, length, random);
  regions_[m.lkey] = made->region;
  return m;
}

RegionId Nic::region_of(Key key) const { return regions_.at(key); }

Outcome<PortMemory> Nic::allocate(std::uint64_t length, std::uint8_t access, MemoryKind kind) {
  const std::uint64_t at = next_address_;
  next_address_ += (length + 2 * kPage) / kPage * kPage;  // what overruns one region lands in none
  return map(at, length, access, kind, std::nullopt);
}

Outcome<PortMemory> Nic::adopt(std::span<std::uint8_t> bytes, std::uint8_t access) {
  const std::uint64_t at = next_address_;
  next_address_ += (bytes.size() + 2 * kPage) / kPage * kPage;
  const auto made = device().register_mr(domain_, at, bytes.size(), access);
  if (!made) return fail(made.error());
  memory().adopt(made->region, bytes);
  regions_[made->lkey] = made->region;
  return PortMemory{made->lkey, made->rkey, at, bytes.size(), bytes};
}

Outcome<void> Nic::release(Key lkey) {
  const auto gone = device().deregister_mr(lkey);
  if (!gone) return gone;
  if (const auto it = regions_.find(lkey); it != regions_.end()) {
    memory().remove(it->second);
    regions_.erase(it);
  }
  return {};
}

Outcome<Qpn> Nic::create_qp(const PortQueuePair& wanted) {
  QpInit init;
  init.pd = domain_;
  init.send_cq = wanted.send_cq;
  init.recv_cq = wanted.recv_cq;
  init.caps = wanted.caps;
  init.signal_all = wanted.signal_all;
  init.srq = wanted.srq;
  return device().create_qp(init);
}

Outcome<void> Nic::prepare(Qpn qpn) {
  QpAttr attr;
  attr.state = QpState::kInit;
  attr.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;  // the connection's terms replace them
  return device().modify_qp(qpn, attr, ladder(QpType::kRc)[0].mask, endpoint_.now());
}

Outcome<Qpn> Nic::recycle(Qpn qpn) {
  QpAttr attr;
  attr.state = QpState::kReset;
  if (const auto done = device().modify_qp(qpn, attr, kAttrState, endpoint_.now()); !done)
    return fail(done.error());
  return qpn;
}

Outcome<QpState> Nic::state(Qpn qpn) const {
  const auto attr = device().query_qp(qpn);
  if (!attr) return fail(attr.error());
  return attr->state;
}

Outcome<void> Nic::raise(const ConnectEnd& own, const ConnectEnd& peer) {
  QpAttr attr = attributes_of(own, peer);
  const auto path = device().open_path({peer.address});
  if (!path) return fail(path.error());
  attr.path = *path;
  return climb(QpType::kRc, attr, [&](const QpAttr& a, std::uint32_t mask) {
    return device().modify_qp(own.qpn, a, mask, endpoint_.now());
  });
}

namespace {
// Up to the first one that is refused.
template <class Wr, class Take>
VerbsPort::Posted post_each(std::span<const Wr> list, Take take) {
  VerbsPort::Posted posted;
  for (const Wr& wr : list) {
    posted.refused = take(wr);
    if (!posted.refused) break;
    ++posted.taken;
  }
  return posted;
}
}  // namespace

VerbsPort::Posted Nic::post_send(Qpn qpn, std::span<const SendWr> list) {
  return post_each(list, [&](const SendWr& wr) -> Outcome<void> {
    // Nobody keeps inline bytes here: facts() says that there are none.
    if ((wr.flags & kSendInline) != 0) return fail(Errc::kUnsupported);
    return take(qpn, wr);
  });
}

VerbsPort::Posted Nic::post_recv(Qpn qpn, std::span<const RecvWr> list) {
  return post_each(list, [&](const RecvWr& wr) { return device().post_recv(qpn, wr); });
}

VerbsPort::Posted Nic::post_shared(SrqId srq, std::span<const RecvWr> list) {
  return post_each(list, [&](const RecvWr& wr) { return device().post_srq_recv(srq, wr); });
}

void Nic::fall(Qpn qpn) {
  QpAttr attr;
  attr.state = QpState::kErr;
  (void)device().modify_qp(qpn, attr, kAttrState, endpoint_.now());  // it may be gone already
}

bool Nic::device_event(PortEvent& out) {
  for (weft::DeviceEvent e; device().poll_event(e);) {
    if (as_port_event(e, out)) return true;
  }
  return false;
}

}  // namespace weft::sim
