#include "check/delivery.h"

#include <algorithm>
#include <cstring>

#include "check/opcodes.h"

namespace weft::check {
namespace {

bool is_response(std::uint8_t op) {
  return (op >= wire::kReadResponseFirst && op <= wire::kReadResponseOnly) || op == wire::kAtomicAcknowledge;
}

// Notes [from, from + n) as placed and tells whether any of it was noted before.
bool note(std::vector<std::uint64_t>& bits, std::uint32_t from, std::uint32_t n) {
  bool again = false;
  for (std::uint32_t i = from; i < from + n;) {
    const std::uint32_t shift = i & 63U;
    const std::uint32_t run = std::min(64U - shift, from + n - i);
    const std::uint64_t mask = (run == 64 ? ~0ULL : ((1ULL << run) - 1U)) << shift;
    again = again || (bits[i >> 6U] & mask) != 0;
    bits[i >> 6U] |= mask;
    i += run;
  }
  return again;
}

unsigned long long ull(std::uint64_t v) { return v; }

}  // namespace

const Message* Delivery::placed(const Placed& p, const wire::Header& header,
                                std::span<const std::uint8_t> bytes, Time now) {
  const unsigned op = header.opcode;
  const auto bad = [&](const char* rule, const char* why) -> const Message* {
    report_.add(now, rule, "%s: host %u qp 0x%x opcode 0x%02x psn %u, %u bytes at region %u offset %llu", why,
                p.host.v, p.qpn.v, op, header.psn.v, p.length, p.region.v, ull(p.offset));
    return nullptr;
  };

  Region* region = ledger_.find_region(p.host, p.region);
  if (region == nullptr) return bad("placement", "not a registered region");
  if (p.offset > region->length || p.length > region->length - p.offset)
    return bad("placement", "outside its region");
  Endpoint* local = ledger_.find({p.host, p.qpn});
  if (local == nullptr || local->destroyed) return bad("placement", "no such queue pair");
  if (region->pd != local->facts.pd) return bad("placement", "region of another protection domain");
  if ((region->access & kLocalWrite) == 0) return bad("placement", "region may not be written");
  if (is_write(header.opcode) &&
      ((region->access & kRemoteWrite) == 0 || (local->facts.access & kRemoteWrite) == 0)) {
    return bad("placement", "remote write without the right");
  }

  const Sink* sink = ledger_.sink_at(p.host, p.region, p.offset);
  if (sink == nullptr) return bad("placement", "nothing was to be placed here");
  if (p.length > sink->length - (p.offset - sink->offset))
    return bad("placement", "past the end of its sink");

  Endpoint* requester = sink->owner;
  std::uint64_t index = sink->index;
  switch (sink->kind) {
    case Sink::Kind::kWrite:
      if (!is_write(header.opcode)) return bad("placement", "only a WRITE may land here");
      if (requester->facts.peer != local->facts.self) return bad("placement", "sink of another connection");
      break;
    case Sink::Kind::kRead:
      if (!is_response(header.opcode)) return bad("placement", "only READ data may land here");
      if (requester != local) return bad("placement", "sink of another connection");
      break;
    case Sink::Kind::kReceive:
      if (!is_send(header.opcode)) return bad("placement", "only a SEND may land here");
      if (sink->shared != nullptr ? local->shared != sink->shared : sink->owner != local)
        return bad("placement", "sink of another connection");
      requester = ledger_.peer(*local);
      if (requester == nullptr) return bad("placement", "no peer");
      if (sink->shared != nullptr) {
        const std::uint64_t k = ledger_.message_at(*local, header);
        if (k >= requester->consumers.size() || !ledger_.take_shared(*local, k, index, now))
          return bad("order", "a shared receive taken by the wrong message");
        index = k;
      }
      if (index >= requester->consumers.size()) return bad("order", "a receive taken by no message");
      index = requester->consumers[index];
      break;
  }
  Message& m = requester->sends[index];
  if (sink->kind == Sink::Kind::kReceive && !m.is_send())
    return bad("order", "this receive belongs to another message");
  const auto offset = static_cast<std::uint32_t>(sink->message_offset + (p.offset - sink->offset));
  if (offset > m.length || p.length > m.length - offset)
    return bad("placement", "past the end of its message");
  if (m.is_atomic() && !m.executed) return bad("atomic", "an answer to an atomic that was not executed");
  const bool early = requester->facts.early && m.pushes();
  if (m.completed && !requester->send_failed && !early) return bad("exactly once", "placed after completion");
  if (is_write(header.opcode) && header.mode != wire::Mode::kRoce &&
      header.va + p.payload_offset != m.remote_address + offset) {
    return bad("placement", "not where its header says");
  }
  if (is_send(header.opcode) && header.mode != wire::Mode::kRoce &&
      static_cast<std::uint64_t>(header.psn_offset) * requester->facts.mtu + p.payload_offset != offset) {
    return bad("placement", "not where its header says");
  }
  if (note(m.placed, offset, p.length)) return bad("exactly once", "placed twice");
  m.placed_bytes += p.length;

  if (header.mode == wire::Mode::kRoce) {
    // Requests and responses that arrive at one end are ordered separately.
    std::optional<Seq>& newest =
        sink->kind == Sink::Kind::kRead ? local->newest_response : local->newest_request;
    const Seq seq = newest.has_value() ? expand(header.psn, *newest) : Seq::start(header.psn);
    if (newest.has_value() && seq < *newest) return bad("order", "placed behind a later packet");
    newest = seq;
  }

  if (!bytes.empty()) {
    if (!m.expected.empty() && !std::equal(bytes.begin(), bytes.end(), m.expected.begin() + offset)) {
      return bad("bytes", "not what was sent");
    }
    std::copy(bytes.begin(), bytes.end(), region->shadow.begin() + static_cast<std::ptrdiff_t>(p.offset));
  }
  return &m;
}

// Atomics are executed in the order of posting, once, with the operands that were posted. Each finds what the
// last write or atomic of any queue pair left there: all atomics on these eight bytes have one serial order.
void Delivery::executed(const Executed& x, Time now) {
  const auto bad = [&](const char* why) {
    report_.add(now, "atomic", "%s: host %u qp 0x%x, region %u offset %llu", why, x.host.v, x.qpn.v,
                x.region.v, ull(x.offset));
  };
  Endpoint* responder = ledger_.find({x.host, x.qpn});
  Endpoint* requester = responder == nullptr ? nullptr : ledger_.peer(*responder);
  if (requester == nullptr) return bad("executed for nobody");
  std::uint64_t& i = requester->atomics_looked_at;
  while (i < requester->sends.size() && !requester->sends[i].is_atomic()) ++i;
  if (i == requester->sends.size()) return bad("executed again, or never posted");
  Message& m = requester->sends[i++];
  if (m.remote != Ruling::kAllowed) return bad("executed against a key's rules");
  if (m.target.region != x.region || m.target.offset != x.offset || m.compare != x.compare ||
      m.swap_or_add != x.swap_or_add || (m.opcode == WrOpcode::kCompareSwap) != x.compare_swap) {
    return bad("executed out of order, or with other operands");
  }
  m.executed = true;
  m.expected.resize(8);
  std::memcpy(m.expected.data(), &x.old_value, 8);
  Region* region = ledger_.find_region(x.host, x.region);
  if (region == nullptr || region->memory.empty()) return;
  std::uint8_t* cell = region->shadow.data() + x.offset;
  if (!std::equal(m.expected.begin(), m.expected.end(), cell)) return bad("finds what nobody left there");
  const bool stays = x.compare_swap && x.old_value != x.compare;
  const std::uint64_t next = stays            ? x.old_value
                             : x.compare_swap ? x.swap_or_add
                                              : x.old_value + x.swap_or_add;
  std::memcpy(cell, &next, 8);
}

void Delivery::compare(HostId host, const Range& sink, std::span<const std::uint8_t> expected,
                       const Message& m, Time now) {
  const Region* r = ledger_.find_region(host, sink.region);
  if (r == nullptr || r->memory.empty() || expected.empty()) return;
  const auto memory = r->memory.subspan(sink.offset, expected.size());
  if (!std::equal(expected.begin(), expected.end(), memory.begin())) {
    report_.add(now, "bytes",
                "request %llu is complete but its sink at host %u region %u offset %llu holds other bytes",
                ull(m.wr_id), host.v, sink.region.v, ull(sink.offset));
  }
}

void Delivery::verify_sink(const Endpoint& requester, const Message& m, Time now) {
  if (m.expected.empty()) return;
  const std::span<const std::uint8_t> all(m.expected);
  std::uint32_t done = 0;
  const auto scatter = [&](HostId host, std::span<const Range> sinks) {
    for (const Range& sink : sinks) {
      const std::uint32_t n = std::min(sink.length, m.length - done);
      compare(host, sink, all.subspan(done, n), m, now);
      done += n;
    }
  };
  if (m.is_read()) return scatter(requester.facts.self.host, m.local);
  const Endpoint* to = ledger_.find(requester.facts.peer);
  if (to == nullptr) return;
  if (const Receive* r = m.is_send() ? ledger_.receive_of(*to, m.receive) : nullptr)
    return scatter(to->facts.self.host, r->sinks);
  if (m.is_write()) compare(to->facts.self.host, {m.target.region, m.target.offset, m.length}, all, m, now);
}

void Delivery::verify_memory(Time now) {
  ledger_.each_region([&](HostId host, RegionId id, const Region& r) {
    if (std::equal(r.memory.begin(), r.memory.end(), r.shadow.begin())) return;
    const auto [a, b] = std::mismatch(r.memory.begin(), r.memory.end(), r.shadow.begin());
    report_.add(now, "bytes", "host %u region %u offset %llu was written behind the observers' back", host.v,
                id.v, ull(static_cast<std::uint64_t>(a - r.memory.begin())));
  });
}

}  // namespace weft::check
