// Assembly, jobs and contexts of the detailed NIC.
#include "sim/nic/detailed_nic.h"

#include <algorithm>

namespace weft::sim {
namespace {

Stage stage_of(const Design& d, const PipelineDesign& p) { return {d.cycles(p.interval), d.cycles(p.depth)}; }

StageCounters counters_of(const Stage& s) { return {s.items(), s.busy(), s.waited()}; }

}  // namespace

DetailedNic::DetailedNic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config,
                         Port& egress, PacketMarking marking, NicObserver* observer, const Design& design)
    : Nic(exchange, fabric, host, config, egress, marking, observer),
      design_(design),
      qpn_mask_((1U << config.qpn_bits) - 1U),
      pcie_(design.pcie),
      board_(design.board),
      doorbells_(stage_of(design, design.pipelines.doorbell)),
      scheduler_(stage_of(design, design.pipelines.schedule)),
      transmit_(stage_of(design, design.pipelines.transmit)),
      receive_(stage_of(design, design.pipelines.receive)),
      completer_(stage_of(design, design.pipelines.completion)),
      software_(design.recovery.cpu_time, design.recovery.cpu_time),
      contexts_(make_store(design, this)),
      window_(design.context.send_window, std::size_t{1} << config.qpn_bits),
      reorder_(design.recovery, std::size_t{1} << config.qpn_bits),
      translation_(design.translation),
      step_actor_(fabric.timeline.add<&DetailedNic::on_step>(*this, fabric.node_of(host))),
      queue_pairs_(std::size_t{1} << config.qpn_bits) {
  CHECK(validate(design).has_value());
  per_byte_width_ = {static_cast<std::int64_t>(
      1'000'000 / (std::uint64_t{design.clock_mhz} * design.pipelines.bytes_per_cycle))};
  if (design.wqe.shared_receive_cache != 0)
    receive_cache_ =
        std::make_unique<Cache>(design.wqe.shared_receive_cache, Replacement::kLru, config.seed ^ 0x5251U);
  egress.on_idle<&DetailedNic::on_line_free>(*this);
}

// --- jobs ---

std::uint32_t DetailedNic::begin(Step step, Qpn qpn, const Transit& t) {
  std::uint32_t j = free_jobs_;
  if (j != kNone) {
    free_jobs_ = jobs_[j].next;
  } else {
    j = static_cast<std::uint32_t>(jobs_.size());
    jobs_.emplace_back();
  }
  Job& job = jobs_[j];
  job = Job{};
  job.step = step;
  job.qpn = qpn;
  job.transit = t;
  job.entered = job.since = now();
  return j;
}

void DetailedNic::end(std::uint32_t j) {
  jobs_[j].next = free_jobs_;
  free_jobs_ = j;
}

void DetailedNic::later(Time at, std::uint32_t job) {
  heap_.push_back({at, serial_++, job});
  std::push_heap(heap_.begin(), heap_.end());
  ask(at);
}

// One wake-up is pending for the earliest time; those asked for before it find nothing to do.
void DetailedNic::ask(Time at) {
  if (at >= asked_) return;
  asked_ = at;
  endpoint_.fabric().timeline.wake(step_actor_, std::max(at, now()));
}

void DetailedNic::on_step(Time at) {
  if (at < asked_) return;
  asked_ = kNever;
  while (!heap_.empty() && heap_.front().at <= at) {
    const std::uint32_t job = heap_.front().job;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    run(job);
  }
  drive_contexts();
  pump_turns();
  watch_timers();
  if (!heap_.empty()) ask(heap_.front().at);
}

void DetailedNic::run(std::uint32_t j) {
  switch (jobs_[j].step) {
    case Step::kDoorbell:
      return doorbell(j);
    case Step::kTurn:
      return take_turn(j);
    case Step::kPayload:
      return payload_here(j);
    case Step::kMac:
      return at_mac(j);
    case Step::kReceived:
      return received(j);
    case Step::kDeliver:
      return deliver(j);
    case Step::kSoftware:
      return from_software(j);
    case Step::kVisible:
      return visible(j);
    case Step::kFetched: {
      const Qpn qpn = jobs_[j].qpn;
      end(j);
      contexts_->fetched(qpn, now());
      return drive_contexts();
    }
    case Step::kTimer:
      break;  // it goes on when its context is granted
  }
  CHECK(false);
}

// --- contexts ---

void DetailedNic::request(std::uint32_t j, StoreChannel channel) {
  jobs_[j].since = now();
  std::deque<std::uint32_t>& wanting = wanting_[static_cast<std::size_t>(channel)];
  if (wanting.empty() && contexts_->can_request(channel)) {
    contexts_->request({jobs_[j].qpn, channel, j}, now());
  } else {
    wanting.push_back(j);
  }
  drive_contexts();
}

// Grants may lead to requests; those are driven by the call that is under way.
void DetailedNic::drive_contexts() {
  if (driving_) return;
  driving_ = true;
  ContextGrant g;
  for (bool more = true; more;) {
    more = false;
    contexts_->advance(now());
    while (contexts_->next_grant(now(), g)) {
      more = true;
      granted(static_cast<std::uint32_t>(g.tag));
    }
    for (std::size_t c = 0; c < kChannels; ++c) {
      const auto channel = static_cast<StoreChannel>(c);
      while (!wanting_[c].empty() && contexts_->can_request(channel)) {
        const std::uint32_t j = wanting_[c].front();
        wanting_[c].pop_front();
        contexts_->request({jobs_[j].qpn, channel, j}, now());
        more = true;
      }
    }
    more = more || std::min(contexts_->next_event(), contexts_->next_grant_at()) <= now();
  }
  driving_ = false;
  const Time next = std::min(contexts_->next_event(), contexts_->next_grant_at());
  if (next != kNever) ask(next);
}

void DetailedNic::granted(std::uint32_t j) {
  Job& job = jobs_[j];
  job.granted = true;
  switch (job.step) {
    case Step::kTurn:
      counts_.stalls.send_context += now() - job.since;
      job.since = now();
      if (!job.early) return fetch_wqes(j);
      if (job.fetched) return take_turn(j);
      return;
    case Step::kReceived:
      counts_.stalls.receive_context += now() - job.since;
      return process(j);
    case Step::kTimer:
      return timer(j);
    default:
      CHECK(false);
  }
}

void DetailedNic::give_back(Qpn qpn) {
  contexts_->release(qpn, true, now());
  drive_contexts();
}

void DetailedNic::read(Qpn qpn, Bytes bytes, Time at) {
  const Time here = design_.context.home == Home::kHost ? pcie_.read(at, Dma::kContextRead, bytes.n)
                                                        : board_.access(at, bytes.n);
  later(here, begin(Step::kFetched, qpn));
}

void DetailedNic::write(Qpn, Bytes bytes, Time at) {
  if (design_.context.home == Home::kHost) {
    pcie_.write(at, Dma::kContextWrite, bytes.n);
  } else {
    board_.access(at, bytes.n);
  }
}

// When the addresses of these bytes are known: what the caches do not hold is read, one after the other.
Time DetailedNic::translated(RegionId region, std::uint64_t offset, std::uint32_t length) {
  const TranslationDesign& t = design_.translation;
  Time known = now();
  for (std::uint32_t n = translation_.misses(region, offset, length); n != 0; --n)
    known = t.home == Home::kHost ? pcie_.read(now(), Dma::kTranslation, t.fetch_bytes, known)
                                  : board_.access(known, t.fetch_bytes);
  return known;
}

NicCounters DetailedNic::counters() const {
  NicCounters c = counts_;
  c.context_hits = contexts_->counters().hits;
  c.context_misses = contexts_->counters().misses;
  c.context_ordered = contexts_->counters().ordered;
  c.context_refetched = contexts_->counters().refetched;
  for (const CacheCounters* t : {translation_.pages(), translation_.keys()}) {
    if (t == nullptr) continue;
    c.translation_hits += t->hits;
    c.translation_misses += t->misses;
  }
  c.doorbell = counters_of(doorbells_);
  c.schedule = counters_of(scheduler_);
  c.transmit = counters_of(transmit_);
  c.receive = counters_of(receive_);
  c.completion = counters_of(completer_);
  c.software = counters_of(software_);
  c.dma = pcie_.counters();
  c.board_bytes = board_.bytes();
  c.payload_placed = endpoint_.counters().bytes_placed;
  c.overflows = endpoint_.counters().overflow_dropped;
  return c;
}

}  // namespace weft::sim
