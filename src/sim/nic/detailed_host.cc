// The program's side of the detailed NIC: what is posted waits in host memory until its doorbell has crossed
// PCIe, and a completion is polled when its entry has.
#include <algorithm>

#include "sim/nic/detailed_nic.h"

namespace weft::sim {
Outcome<CqId> DetailedNic::create_cq(std::uint32_t entries) {
  const auto cq = Nic::create_cq(entries);
  if (!cq) return cq;
  if (queues_.size() <= cq->v) queues_.resize(cq->v + std::size_t{1});
  queues_[cq->v] = {};
  queues_[cq->v].used = true;
  return cq;
}

Outcome<void> DetailedNic::destroy_cq(CqId cq) {
  const auto gone = Nic::destroy_cq(cq);
  if (gone) queues_[cq.v].used = false;
  return gone;
}

Outcome<void> DetailedNic::destroy_qp(Qpn qpn) {
  const auto gone = Nic::destroy_qp(qpn);
  // Its jobs find no queue pair any more.
  if (gone) {
    QueuePairState& q = state_of(qpn);
    q.unsent = q.cached = 0;
    window_.in_flight(row_of(qpn), 0);
    reorder_.waiting(row_of(qpn), 0);
  }
  return gone;
}

void DetailedNic::fall(Qpn qpn) {
  Nic::fall(qpn);
  note_ahead(qpn);
  complete_later(now());
}

Outcome<void> DetailedNic::take(Qpn qpn, const SendWr& wr) {
  QueuePairState& q = state_of(qpn);
  if (const auto ok = device().check_send(qpn, wr, q.pending); !ok) return ok;
  Posted1& p = posted_.emplace_back(Posted1{qpn, wr, {wr.sges.begin(), wr.sges.end()}});
  p.wr.sges = {};
  ++q.pending;
  if (!rung_.empty() && rung_.back().first == qpn) {
    ++rung_.back().second;
  } else {
    rung_.emplace_back(qpn, 1U);
  }
  return {};
}

// One doorbell for each run of requests of one queue pair.
void DetailedNic::ring() {
  for (const auto& [qpn, count] : rung_) {
    const bool pushed = design_.wqe.pushed && count == 1;
    const std::uint64_t bytes = pushed ? design_.wqe.send_bytes : 8;
    ++counts_.doorbells;
    const std::uint32_t j = begin(Step::kDoorbell, qpn);
    jobs_[j].count = count;
    jobs_[j].fetched = pushed;
    later(doorbells_.pass(pcie_.doorbell(now(), Dma::kDoorbell, bytes)), j);
  }
  rung_.clear();
}

void DetailedNic::doorbell(std::uint32_t j) {
  const Job job = jobs_[j];
  end(j);
  QueuePairState& q = state_of(job.qpn);
  for (std::uint32_t i = 0; i < job.count; ++i) {
    Posted1 p = std::move(posted_.front());
    posted_.pop_front();
    CHECK(p.qpn == job.qpn);
    --q.pending;
    p.wr.sges = p.sges;
    // Refused where the queue pair has gone, or was reset, meanwhile.
    if (!device().post_send(p.qpn, p.wr)) continue;
    ++counts_.requests;
    if (is_local(p.wr.opcode)) continue;
    ++q.unsent;
    // The doorbell carried the WQE of an idle queue.
    if (job.fetched && q.unsent == 1) q.cached = 1;
  }
  if (blind()) line_up_if_active(job.qpn);
  complete_later(now());
}

std::uint32_t DetailedNic::poll(CqId cq, std::span<Completion> out) {
  CHECK_OP(cq.v, <, queues_.size());
  CompletionState& c = queues_[cq.v];
  const std::size_t most = std::min<std::size_t>(out.size(), c.visible);
  const std::uint32_t n = most == 0 ? 0 : device().poll_cq(cq, out.first(most));
  c.visible = n < most ? 0 : c.visible - n;  // fewer: a reset took the others
  c.known -= std::min(c.known, n);
  counts_.polled += n;
  return n;
}

// Entries that the Device has added since the last look cross PCIe, one by one. `earliest`: the payload that
// they report is written before them.
void DetailedNic::complete_later(Time earliest) {
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    CompletionState& c = queues_[i];
    if (!c.used) continue;
    const std::uint32_t there = device().completions_waiting({i});
    // A queue pair that is reset takes its entries along, those that have not crossed yet, too.
    if (there < c.known) c.known = there;
    c.visible = std::min(c.visible, there);
    if (there == c.known) continue;
    const std::uint32_t fresh = there - c.known;
    c.known = there;
    Time done{};
    for (std::uint32_t n = 0; n < fresh; ++n) {
      counts_.completions_inside.enter(now());
      done = pcie_.write(now(), Dma::kCompletion, design_.wqe.completion_bytes,
                         std::max(completer_.pass(now()), earliest));
    }
    counts_.completions += fresh;
    const std::uint32_t j = begin(Step::kVisible, kNoQpn);
    jobs_[j].cq = {i};
    jobs_[j].count = fresh;
    later(done, j);
  }
}

void DetailedNic::visible(std::uint32_t j) {
  const Job job = jobs_[j];
  end(j);
  CompletionState& c = queues_[job.cq.v];
  c.visible = std::min(c.visible + job.count, c.known);
  counts_.stalls.completion += (now() - job.entered) * job.count;
  for (std::uint32_t n = 0; n < job.count; ++n) counts_.completions_inside.leave(job.entered, now());
  if (c.raise || (c.told && c.visible == c.known)) {
    c.raise = c.told = false;
    PortEvent event;
    event.cq = job.cq;
    events_.push_back(event);
  }
  endpoint_.progressed();
}

// Armed while entries are under way: the next one that becomes visible tells.
Outcome<void> DetailedNic::arm(CqId cq, bool solicited_only) {
  CompletionState& c = queues_[cq.v];
  if (c.known != c.visible) {
    c.raise = true;
    return {};
  }
  return Nic::arm(cq, solicited_only);
}

bool DetailedNic::device_event(PortEvent& out) {
  while (Nic::device_event(out)) {
    if (out.kind != PortEventKind::kCompletion) return true;
    CompletionState& c = queues_[out.cq.v];
    if (c.known == c.visible) return true;
    c.told = true;
  }
  if (events_.empty()) return false;
  out = events_.front();
  events_.pop_front();
  return true;
}

}  // namespace weft::sim
