#include "check/ledger.h"

#include <algorithm>
#include <utility>

namespace weft::check {
namespace {

unsigned long long ull(std::uint64_t v) { return v; }

}  // namespace

void Ledger::region(HostId host, RegionId id, const Region& region) {
  Region& r = regions_[{host, id}];
  r = region;
  r.shadow.assign(region.memory.begin(), region.memory.end());
  // A region number may be used again. Sinks of the region that had the number before are dropped.
  const Place place{host, id};
  sinks_.erase(sinks_.lower_bound({place, 0}), sinks_.upper_bound({place, UINT64_MAX}));
}

void Ledger::region_gone(HostId host, RegionId id) { regions_.erase({host, id}); }

void Ledger::region_faults(HostId host, RegionId id) {
  if (Region* r = find_region(host, id)) r->faulty = true;
}

void Ledger::connected(const QpFacts& facts) {
  auto e = std::make_unique<Endpoint>();
  e->facts = facts;
  if (facts.srq != kNoSrq) e->shared = &shared_.at({facts.self.host, facts.srq});
  std::unique_ptr<Endpoint>& place = endpoints_[facts.self];
  if (place != nullptr) {  // a number that is used again: sinks still name who had it
    place->destroyed = true;
    former_.push_back(std::move(place));
  }
  place = std::move(e);
}

void Ledger::destroyed(End end) {
  if (Endpoint* e = find(end)) e->destroyed = true;
}

void Ledger::forced_error(End end) {
  if (Endpoint* e = find(end)) e->forced_error = true;
}

void Ledger::failed(End end) {
  if (Endpoint* e = find(end)) e->failed = true;
}

Endpoint* Ledger::find(End end) {
  const auto it = endpoints_.find(end);
  return it == endpoints_.end() ? nullptr : it->second.get();
}

Region* Ledger::find_region(HostId host, RegionId id) {
  const auto it = regions_.find({host, id});
  return it == regions_.end() ? nullptr : &it->second;
}

// docs/protocol/verbs.md#keys: the key is valid, of the same domain, grants the rights, and covers the range.
bool Ledger::resolve(HostId host, PdId pd, Qpn qpn, Key key, std::uint64_t address, std::uint64_t length,
                     std::uint8_t rights, Range& out, bool& faults) {
  if (const auto w = windows_.find({host, key}); w != windows_.end()) {
    const WindowBind& b = w->second.bind;
    if (w->second.owner != qpn || (b.access & rights) != rights) return false;
    if (address < b.address || address - b.address > b.length || length > b.length - (address - b.address))
      return false;
    return resolve(host, pd, qpn, b.region, address, length, 0, out, faults);
  }
  for (auto it = regions_.lower_bound({host, RegionId{0}}); it != regions_.end() && it->first.first == host;
       ++it) {
    const Region& r = it->second;
    if (r.key != key) continue;
    if (r.pd != pd || (r.access & rights) != rights) return false;
    if (address < r.address || address - r.address > r.length || length > r.length - (address - r.address))
      return false;
    out = {it->first.second, address - r.address, static_cast<std::uint32_t>(length)};
    faults = faults || r.faulty;
    return true;
  }
  return false;
}

void Ledger::window(HostId host, Key key, PdId pd) { window_pds_[{host, any_tag(key)}] = pd; }

// docs/protocol/verbs.md#memory-windows, type 2: the window is shut and in the queue pair's domain. So is the
// region, which allows binding and covers the whole window. The window grants remote rights only (local write
// means nothing), and writing only if the region has local write.
bool Ledger::may_bind(const Endpoint& owner, const WindowBind& bind) const {
  const HostId host = owner.facts.self.host;
  const auto known = window_pds_.find({host, any_tag(bind.window)});
  if (known == window_pds_.end() || known->second != owner.facts.pd) return false;
  const auto open = windows_.lower_bound({host, any_tag(bind.window)});
  if (open != windows_.end() && open->first.first == host &&
      any_tag(open->first.second) == any_tag(bind.window))
    return false;
  constexpr std::uint8_t kWriting = kRemoteWrite | kRemoteAtomic;
  if (bind.length == 0 || (bind.access & ~(kWriting | kRemoteRead | kLocalWrite)) != 0) return false;
  for (auto it = regions_.lower_bound({host, RegionId{0}}); it != regions_.end() && it->first.first == host;
       ++it) {
    const Region& r = it->second;
    if (r.key != bind.region) continue;
    if (r.pd != owner.facts.pd || (r.access & kMwBind) == 0) return false;
    if ((bind.access & kWriting) != 0 && (r.access & kLocalWrite) == 0) return false;
    return bind.address >= r.address && bind.address - r.address <= r.length &&
           bind.length <= r.length - (bind.address - r.address);
  }
  return false;
}

void Ledger::window_bound(const Endpoint& owner, const WindowBind& bind) {
  windows_[{owner.facts.self.host, bind.window}] = {owner.facts.self.qpn, bind};
}

void Ledger::window_shut(const Endpoint& owner, Key key) { windows_.erase({owner.facts.self.host, key}); }

void Ledger::posted_send(End end, const SendWr& wr, std::span<const std::uint8_t> inline_bytes, Time now) {
  Endpoint* e = find(end);
  if (e == nullptr) return report_.add(now, "world", "request posted on a queue pair that was not announced");
  Endpoint* to = peer(*e);
  const std::uint64_t index = e->sends.size();
  e->sends.emplace_back();
  Message& m = e->sends.back();
  m.wr_id = wr.wr_id;
  m.opcode = wr.opcode;
  m.flags = wr.flags;
  m.imm = wr.imm;
  m.remote_address = wr.remote_address;
  m.rkey = wr.rkey;
  m.bind = wr.bind;
  const bool swaps = wr.opcode == WrOpcode::kCompareSwap;
  m.compare = swaps ? wr.compare_or_add : 0;
  m.swap_or_add = swaps ? wr.swap : wr.compare_or_add;
  if (e->facts.signal_all) m.flags |= kSendSignaled;
  e->send_index[wr.wr_id] = index;
  bool local_faults = false;
  const auto local_right = static_cast<std::uint8_t>(m.is_read() ? kLocalWrite : 0);
  for (const Sge& s : wr.sges) {
    m.length += s.length;
    if ((wr.flags & kSendInline) != 0 || s.length == 0) continue;
    Range r;
    m.local_ok =
        resolve(end.host, e->facts.pd, kNoQpn, s.lkey, s.address, s.length, local_right, r, local_faults) &&
        m.local_ok;
    m.local.push_back(r);
  }
  m.local_ok = m.local_ok && !local_faults;
  if (wr.opcode == WrOpcode::kBindWindow) m.local_ok = may_bind(*e, wr.bind);
  m.placed.assign((m.length + 63U) / 64U, 0);
  if (m.consumes_receive()) {
    m.receive = e->consumers.size();
    e->consumers.push_back(index);
    if (to != nullptr) match(*e, *to, m.receive);
  }

  // Whether the other side must execute it or refuse it.
  Range target;
  bool remote_faults = false;
  const bool names_memory = (m.is_write() || m.is_read()) && m.length > 0;
  if (names_memory && to != nullptr) {
    const auto right = static_cast<std::uint8_t>(m.is_atomic() ? kRemoteAtomic
                                                 : m.is_read() ? kRemoteRead
                                                               : kRemoteWrite);
    if ((m.is_atomic() && wr.remote_address % 8 != 0) || (to->facts.access & right) == 0 ||
        !resolve(to->facts.self.host, to->facts.pd, to->facts.self.qpn, wr.rkey, wr.remote_address, m.length,
                 right, target, remote_faults)) {
      m.remote = Ruling::kNoRights;
    } else if (remote_faults) {
      m.remote = Ruling::kFaults;
    }
  }
  m.target = target;
  if (!m.local_ok || m.remote != Ruling::kAllowed) e->posted_bad = true;

  // The contents it must deliver.
  if ((wr.flags & kSendInline) != 0) {
    m.expected.assign(inline_bytes.begin(), inline_bytes.end());
  } else if (m.is_atomic()) {
    // Known when it is executed.
  } else if (m.is_read()) {
    if (const Region* r = to != nullptr && m.remote == Ruling::kAllowed && names_memory
                              ? find_region(to->facts.self.host, target.region)
                              : nullptr;
        r != nullptr && !r->memory.empty()) {
      const auto bytes = r->memory.subspan(target.offset, m.length);
      m.expected.assign(bytes.begin(), bytes.end());
    }
  } else if (m.local_ok) {
    for (const Range& range : m.local) {
      const Region* r = find_region(end.host, range.region);
      if (r == nullptr || r->memory.empty()) continue;
      const auto bytes = r->memory.subspan(range.offset, range.length);
      m.expected.insert(m.expected.end(), bytes.begin(), bytes.end());
    }
  }

  // Where it may go.
  if (m.is_write() && names_memory && m.remote != Ruling::kNoRights && to != nullptr) {
    add_sink(to->facts.self.host, target, {Sink::Kind::kWrite, e, nullptr, index, target.offset, m.length, 0},
             now);
  } else if (m.is_read() && m.local_ok) {
    std::uint32_t offset = 0;
    for (const Range& range : m.local) {
      add_sink(end.host, range, {Sink::Kind::kRead, e, nullptr, index, range.offset, range.length, offset},
               now);
      offset += range.length;
    }
  }
}

Receive Ledger::receive(HostId host, PdId pd, const RecvWr& wr, Sink sink, Time now) {
  Receive r;
  r.wr_id = wr.wr_id;
  for (const Sge& s : wr.sges) {
    if (s.length == 0) continue;
    Range range;
    r.local_ok =
        resolve(host, pd, kNoQpn, s.lkey, s.address, s.length, kLocalWrite, range, r.faulty) && r.local_ok;
    r.sinks.push_back(range);
    sink.offset = range.offset;
    sink.length = range.length;
    sink.message_offset = r.capacity;
    if (r.local_ok) add_sink(host, range, sink, now);
    r.capacity += s.length;
  }
  return r;
}

void Ledger::posted_recv(End end, const RecvWr& wr, Time now) {
  Endpoint* e = find(end);
  if (e == nullptr) return report_.add(now, "world", "receive posted on a queue pair that was not announced");
  const std::uint64_t index = e->receives.size();
  e->receive_index[wr.wr_id] = index;
  Sink sink;
  sink.kind = Sink::Kind::kReceive;
  sink.owner = e;
  sink.index = index;
  e->receives.push_back(receive(end.host, e->facts.pd, wr, sink, now));
  if (Endpoint* from = peer(*e)) match(*from, *e, index);
}

// The receive that a message takes is known now: does the message fit?
void Ledger::match(Endpoint& requester, Endpoint& receiver, std::uint64_t k) {
  const Receive* r = receive_of(receiver, k);
  if (k >= requester.consumers.size() || r == nullptr) return;
  const Message& m = requester.sends[requester.consumers[k]];
  if (m.is_send() && (m.length > r->capacity || !r->local_ok || r->faulty)) receiver.bad_receive = true;
}

bool Ledger::sink_retired(const Sink& sink) const {
  if (sink.shared == nullptr && sink.owner->destroyed) return true;  // nothing lands there any more
  if (sink.kind != Sink::Kind::kReceive) return sink.owner->sends[sink.index].completed;
  if (sink.shared != nullptr) return sink.shared->states[sink.index] == SharedReceives::State::kDone;
  return sink.index < sink.owner->receives_completed;
}

void Ledger::add_sink(HostId host, const Range& range, Sink sink, Time now) {
  const Place place{host, range.region};
  const std::uint64_t end = range.offset + range.length;
  // The first sink that could overlap starts at or before ours.
  auto it = sinks_.upper_bound({place, range.offset});
  if (it != sinks_.begin()) {
    const auto before = std::prev(it);
    if (before->first.first == place && before->second.offset + before->second.length > range.offset)
      it = before;
  }
  while (it != sinks_.end() && it->first.first == place && it->second.offset < end) {
    if (!sink_retired(it->second)) {
      report_.add(now, "world",
                  "region %u offset %llu is posted while an earlier message may still land there",
                  range.region.v, ull(range.offset));
    }
    it = sinks_.erase(it);
  }
  sinks_[{place, range.offset}] = sink;
}

const Sink* Ledger::sink_at(HostId host, RegionId region, std::uint64_t offset) const {
  const Place place{host, region};
  auto it = sinks_.upper_bound({place, offset});
  if (it == sinks_.begin()) return nullptr;
  --it;
  const Sink& s = it->second;
  return it->first.first == place && offset - s.offset < s.length ? &s : nullptr;
}

}  // namespace weft::check
