#include "check/completions.h"

#include <algorithm>

namespace weft::check {
namespace {

unsigned long long ull(std::uint64_t v) { return v; }

WcOpcode wc_opcode(WrOpcode op) {
  switch (op) {
    case WrOpcode::kWrite:
    case WrOpcode::kWriteImm:
      return WcOpcode::kWrite;
    case WrOpcode::kRead:
      return WcOpcode::kRead;
    case WrOpcode::kCompareSwap:
      return WcOpcode::kCompareSwap;
    case WrOpcode::kFetchAdd:
      return WcOpcode::kFetchAdd;
    case WrOpcode::kBindWindow:
      return WcOpcode::kBindWindow;
    case WrOpcode::kLocalInvalidate:
      return WcOpcode::kLocalInvalidate;
    default:
      return WcOpcode::kSend;
  }
}

}  // namespace

void Completions::completed(HostId host, const Completion& c, const Silence& silence, Time now) {
  Endpoint* e = ledger_.find({host, c.qpn});
  if (e == nullptr) {
    report_.add(now, "completion", "host %u: completion of unknown queue pair 0x%x", host.v, c.qpn.v);
    return;
  }
  if (const auto s = e->send_index.find(c.wr_id); s != e->send_index.end()) {
    return send_completed(*e, s->second, c, silence, now);
  }
  const auto& receives = e->shared != nullptr ? e->shared->index : e->receive_index;
  if (const auto r = receives.find(c.wr_id); r != receives.end())
    return receive_completed(*e, r->second, c, now);
  report_.add(now, "completion", "host %u qp 0x%x: completion of unknown work request %llu", host.v, c.qpn.v,
              ull(c.wr_id));
}

// Whether something has happened that puts this queue pair into the error state.
bool Completions::has_cause(const Endpoint& e) {
  if (e.forced_error || e.posted_bad || e.send_failed || e.receive_failed || e.bad_receive) return true;
  const Endpoint* p = ledger_.find(e.facts.peer);
  return p != nullptr && p->posted_bad;
}

// All queue pairs between two hosts share path credit. Credit that is in flight to a queue pair that is gone
// comes back after two time-outs (docs/protocol/reliable.md#path-credit). Until then the others may have to
// wait with answers and requests.
bool Completions::credit_held(const Endpoint& e) {
  if (!e.facts.path_bounded) return false;
  bool held = false;
  ledger_.each_endpoint([&](const Endpoint& x) {
    const bool between = (x.facts.self.host == e.facts.self.host && x.facts.peer.host == e.facts.peer.host) ||
                         (x.facts.self.host == e.facts.peer.host && x.facts.peer.host == e.facts.self.host);
    held = held || (between && (x.destroyed || has_cause(x)));
  });
  return held;
}

bool Completions::deserved(const Endpoint& e, const Message& m, WcStatus status, const Silence& silence,
                           Time now) {
  const Endpoint* p = ledger_.find(e.facts.peer);
  const bool peer_gone = p == nullptr || p->destroyed || p->forced_error || has_cause(*p);
  const Receive* r = p != nullptr && m.consumes_receive() ? ledger_.receive_of(*p, m.receive) : nullptr;
  switch (status) {
    case WcStatus::kLocalProtection:
    case WcStatus::kLocalAccess:
      return !m.local_ok && m.opcode != WrOpcode::kBindWindow;
    case WcStatus::kBindError:
      return !m.local_ok && m.opcode == WrOpcode::kBindWindow;
    case WcStatus::kRemoteAccess:
      return m.remote == Ruling::kNoRights;
    case WcStatus::kRemoteInvalidRequest:
      return m.remote == Ruling::kNoRights || (r != nullptr && m.is_send() && m.length > r->capacity);
    case WcStatus::kRemoteOperation:
      // Boxes that deliver to somebody who is gone say so in this way.
      return m.remote == Ruling::kFaults || (r != nullptr && (!r->local_ok || r->faulty)) ||
             (e.facts.early && peer_gone);
    case WcStatus::kRnrRetryExceeded:
      return e.facts.rnr_retry < 7 && m.consumes_receive();
    case WcStatus::kRetryExceeded: {
      if (!peer_gone && !e.facts.network_loses && !e.facts.may_starve && !credit_held(e)) return false;
      // Each verbs time-out without progress charges one retry; in roce each NAK does, too.
      std::uint32_t charges = e.facts.retry_count;
      if (e.facts.mode == wire::Mode::kRoce) charges -= std::min(charges, silence.naks);
      if (verbs_timeout(e.facts) == kForever) return charges == 0;
      return std::min(now, silence.until) - silence.since >= verbs_timeout(e.facts) * charges;
    }
    case WcStatus::kFlushed:
      return e.forced_error || e.bad_receive || (p != nullptr && p->posted_bad);
    default:
      return false;
  }
}

void Completions::succeeded(Endpoint& e, std::uint64_t index, Time now) {
  Message& m = e.sends[index];
  if (!m.local_ok || m.remote != Ruling::kAllowed) {
    report_.add(now, "rights", "request %llu of qp 0x%x succeeded though it breaks a key's rules",
                ull(m.wr_id), e.facts.self.qpn.v);
  } else if (!m.whole() && e.facts.early && m.pushes()) {
    // The boxes owe it: finish() looks.
  } else if (!m.whole()) {
    report_.add(now, "exactly once", "request %llu of qp 0x%x is complete with %u of %u bytes placed",
                ull(m.wr_id), e.facts.self.qpn.v, m.placed_bytes, m.length);
  } else if (!m.is_send()) {
    delivery_.verify_sink(e, m, now);  // a SEND's sink is the receiver's, which may have posted it again
  }
  m.completed = true;
  if (m.opcode == WrOpcode::kBindWindow) ledger_.window_bound(e, m.bind);
  if (m.opcode == WrOpcode::kLocalInvalidate) ledger_.window_shut(e, {m.imm});
}

void Completions::send_completed(Endpoint& e, std::uint64_t index, const Completion& c,
                                 const Silence& silence, Time now) {
  const unsigned qp = e.facts.self.qpn.v;
  if (index < e.sends_completed) {
    report_.add(now, "completion", "request %llu of qp 0x%x completed twice or out of order", ull(c.wr_id),
                qp);
    return;
  }
  const bool failed_before = e.send_failed;
  for (; e.sends_completed < index; ++e.sends_completed) {
    Message& skipped = e.sends[e.sends_completed];
    if ((skipped.flags & kSendSignaled) != 0 || failed_before) {
      report_.add(now, "completion", "request %llu of qp 0x%x never completed; %llu behind it did",
                  ull(skipped.wr_id), qp, ull(c.wr_id));
    }
    // The peer may or may not have executed an unsignaled request that stands before a flush.
    if (c.status == WcStatus::kSuccess) succeeded(e, e.sends_completed, now);
    skipped.completed = true;
  }
  Message& m = e.sends[index];
  ++e.sends_completed;
  if (c.status == WcStatus::kSuccess) {
    if (failed_before) {
      report_.add(now, "completion", "request %llu of qp 0x%x succeeded after an earlier one had failed",
                  ull(m.wr_id), qp);
    }
    if ((m.flags & kSendSignaled) == 0) {
      report_.add(now, "completion", "request %llu of qp 0x%x reported though it is unsignaled", ull(m.wr_id),
                  qp);
    }
    if (c.opcode != wc_opcode(m.opcode)) {
      report_.add(now, "completion", "request %llu of qp 0x%x completed with opcode %u", ull(m.wr_id), qp,
                  static_cast<unsigned>(c.opcode));
    }
    if (m.is_read() && c.byte_len != m.length) {
      report_.add(now, "completion", "READ %llu of qp 0x%x says %u bytes of %u", ull(m.wr_id), qp, c.byte_len,
                  m.length);
    }
    succeeded(e, index, now);
    return;
  }
  if (failed_before) {
    if (c.status != WcStatus::kFlushed) {
      report_.add(now, "blame", "request %llu of qp 0x%x: status %u behind a failure instead of flushed",
                  ull(m.wr_id), qp, static_cast<unsigned>(c.status));
    }
  } else if (!deserved(e, m, c.status, silence, now)) {
    report_.add(now, "blame", "request %llu (opcode %u, %u bytes) of qp 0x%x does not deserve status %u",
                ull(m.wr_id), static_cast<unsigned>(m.opcode), m.length, qp, static_cast<unsigned>(c.status));
  }
  e.send_failed = true;
  m.completed = true;
}

void Completions::receive_completed(Endpoint& e, std::uint64_t index, const Completion& c, Time now) {
  const unsigned qp = e.facts.self.qpn.v;
  if (e.shared != nullptr) {
    const std::uint64_t taken = index;
    index = e.receives_completed;
    if (e.shared->states[taken] == SharedReceives::State::kDone ||
        !ledger_.take_shared(e, index, taken, now)) {
      report_.add(now, "completion", "shared receive %llu completes at qp 0x%x, where it was not taken",
                  ull(c.wr_id), qp);
      return;
    }
    ledger_.shared_done(e.facts.self.host, *e.shared, taken, now);
  } else if (index != e.receives_completed) {
    report_.add(now, "completion", "receive %llu of qp 0x%x completed twice or out of order", ull(c.wr_id),
                qp);
    return;
  }
  ++e.receives_completed;
  Endpoint* p = ledger_.peer(e);
  const bool taken = p != nullptr && index < p->consumers.size();
  if (c.status != WcStatus::kSuccess) {
    const Receive& r = *ledger_.receive_of(e, index);
    bool fair = c.status == WcStatus::kFlushed;  // the final check looks for its cause
    if (taken && !e.receive_failed) {
      const Message& m = p->sends[p->consumers[index]];
      const bool too_long = m.is_send() && m.length > r.capacity;
      fair =
          fair ||
          ((c.status == WcStatus::kLocalLength || c.status == WcStatus::kRemoteInvalidRequest) && too_long) ||
          ((c.status == WcStatus::kLocalProtection || c.status == WcStatus::kLocalQpOperation) &&
           (!r.local_ok || r.faulty)) ||
          (c.status == WcStatus::kLocalAccess && m.is_write() && m.remote != Ruling::kAllowed);
    }
    if (!fair) {
      report_.add(now, "blame", "receive %llu of qp 0x%x does not deserve status %u", ull(c.wr_id), qp,
                  static_cast<unsigned>(c.status));
    }
    (c.status == WcStatus::kFlushed ? e.receives_flushed : e.receive_failed) = true;
    return;
  }
  if (!taken) {
    report_.add(now, "order", "receive %llu of qp 0x%x completed but no message was sent for it",
                ull(c.wr_id), qp);
    return;
  }
  const std::uint64_t last = p->consumers[index];
  const Message& m = p->sends[last];
  for (std::uint64_t i = p->sends_completed; i <= last; ++i) {
    if (p->sends[i].is_atomic() && !p->sends[i].executed) {
      report_.add(now, "order", "receive %llu of qp 0x%x completed before atomic %llu was executed",
                  ull(c.wr_id), qp, ull(p->sends[i].wr_id));
    }
    if (!p->sends[i].is_read() && !p->sends[i].whole()) {
      report_.add(now, "order", "receive %llu of qp 0x%x completed while request %llu has %u of %u bytes",
                  ull(c.wr_id), qp, ull(p->sends[i].wr_id), p->sends[i].placed_bytes, p->sends[i].length);
      break;
    }
  }
  // Where boxes acknowledge early, it may be complete at its requester long ago.
  if (last < p->sends_completed && !m.whole())
    report_.add(now, "order", "receive %llu of qp 0x%x completed with %u of %u bytes", ull(c.wr_id), qp,
                m.placed_bytes, m.length);
  const WcOpcode opcode = m.is_send() ? WcOpcode::kReceive : WcOpcode::kReceiveWriteImm;
  if (c.opcode != opcode || c.byte_len != m.length) {
    report_.add(now, "completion", "receive %llu of qp 0x%x says opcode %u, %u bytes; the message has %u",
                ull(c.wr_id), qp, static_cast<unsigned>(c.opcode), c.byte_len, m.length);
  }
  const bool imm = (c.flags & kWcWithImm) != 0;
  if (imm != m.has_imm() || (imm && c.imm != m.imm)) {
    report_.add(now, "completion", "receive %llu of qp 0x%x has the wrong immediate", ull(c.wr_id), qp);
  }
  // docs/protocol/verbs.md#memory-windows: the window is shut when the receive that took the message says so.
  const bool shut = (c.flags & kWcWithInvalidate) != 0;
  if (shut != m.invalidates() || (shut && c.imm != m.imm)) {
    report_.add(now, "completion", "receive %llu of qp 0x%x says the wrong thing of an invalidation",
                ull(c.wr_id), qp);
  }
  if (shut) ledger_.window_shut(e, {c.imm});
  if (m.is_send()) delivery_.verify_sink(*p, m, now);
}

void Completions::owes_nothing(const Endpoint& e, Time now) {
  for (std::uint64_t i = 0; i < e.sends_completed; ++i) {
    if (e.sends[i].whole()) continue;
    report_.add(now, "exactly once",
                "host %u qp 0x%x: request %llu succeeded, and %u of %u bytes were placed",
                e.facts.self.host.v, static_cast<unsigned>(e.facts.self.qpn.v), ull(e.sends[i].wr_id),
                e.sends[i].placed_bytes, e.sends[i].length);
    return;
  }
}

void Completions::farewell(End end, Time now) {
  const Endpoint* e = ledger_.find(end);
  if (e == nullptr || has_cause(*e)) return;
  // What was complete and not delivered is lost with a peer that has failed.
  const Endpoint* p = ledger_.peer(*e);
  if (p == nullptr || !has_cause(*p)) owes_nothing(*e, now);
}

void Completions::finish(Time now) {
  ledger_.finish_shared(now);
  ledger_.each_endpoint([&](Endpoint& e) {
    const unsigned qp = e.facts.self.qpn.v;
    if (e.destroyed) return;
    const bool broken = e.send_failed || e.receive_failed || e.receives_flushed || e.forced_error;
    if (e.receives_flushed && !has_cause(e)) {
      report_.add(now, "blame", "host %u qp 0x%x: receives were flushed without a cause", e.facts.self.host.v,
                  qp);
    }
    // An unsignaled request that succeeded before the failure is not reported
    // (docs/protocol/verbs.md#completion-status); every request after one that did not succeed is flushed.
    bool owed = false;
    for (std::uint64_t i = e.sends_completed; i < e.sends.size(); ++i) {
      owed = owed || (e.sends[i].flags & kSendSignaled) != 0 || (broken && !e.sends[i].whole());
      if (owed) {
        report_.add(now, "complete", "host %u qp 0x%x: request %llu never completed", e.facts.self.host.v, qp,
                    ull(e.sends[i].wr_id));
        break;
      }
      if (!has_cause(e)) succeeded(e, i, now);
    }
    if (broken && e.shared == nullptr && e.receives_completed < e.receives.size()) {
      report_.add(now, "complete", "host %u qp 0x%x: receive %llu was not flushed", e.facts.self.host.v, qp,
                  ull(e.receives[e.receives_completed].wr_id));
    }
    Endpoint* p = ledger_.peer(e);
    if (p == nullptr || p->destroyed || has_cause(*p) || has_cause(e)) return;
    if (e.facts.early) owes_nothing(e, now);
    if (e.receives_completed != p->consumers.size()) {
      report_.add(now, "complete", "host %u qp 0x%x: %llu of %llu receives completed", e.facts.self.host.v,
                  qp, ull(e.receives_completed), ull(p->consumers.size()));
    }
  });
}

}  // namespace weft::check
