#include "sim/world/connect.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/transport/cc/controller.h"

namespace weft::sim {
namespace {

check::QpFacts facts_of(const Scenario& s, const ConnectSpec& c, int i, const Connected& made, WirePsn psn) {
  const TransportSpec& t = s.transport;
  const NetworkSpec& n = s.network;
  check::QpFacts q;
  q.self = {{c.ends[i].nic->host().v}, made.qpn[i]};
  q.peer = {{c.ends[1 - i].nic->host().v}, made.qpn[1 - i]};
  q.pd = c.ends[i].nic->domain();
  q.mode = t.mode;
  q.mtu = t.mtu;
  q.sq_psn = psn;
  q.access = kFullAccess;
  q.retry_count = t.give_up ? t.retry_count : std::uint8_t{UINT8_MAX};
  q.rnr_retry = t.rnr_retry;
  q.timeout = t.timeouts ? t.timeout : std::uint8_t{0};
  if (t.timeouts) q.roce_timeout = t.roce_timeout;
  q.peer_rnr_delay = check::rnr_delay(1);
  q.bdp_cap = t.bdp_cap;
  q.roce_window = t.roce_window;
  q.selective_rto = t.timeouts ? t.rto_low : kForever;
  if (t.timeouts) q.probe = t.tail_probe;
  if (t.mode != wire::Mode::kRoce && t.timeouts) {
    const bool measured = t.rto == Rto::kFloored;
    const Duration longest =
        measured ? check::longest_measured_rto(check::verbs_timeout(t.timeout)) : Duration{};
    q.answers_kept = check::answers_kept(std::max(t.rto_high, longest));
  }
  q.reads_kept = std::min(c.reads, 128U);
  q.cnp_interval = controllers()[t.controller]->cnp_interval;
  if (t.controller != 0)
    q.slowest_turn =
        std::min(s.derived.reach.rate, kLeastRate).time_for(Bytes{s.network.switches.largest_frame});
  // A box may be full, and what it acknowledged may fail later.
  q.early = !s.derived.boxes.empty();
  q.network_loses =
      q.early ||
      std::any_of(s.lines.begin(), s.lines.end(),
                  [](const LineSpec& l) { return l.impair.loss != 0 || l.impair.corrupt != 0; }) ||
      !s.failures.empty() || (s.nic.detailed && !n.switches.pfc) || n.impair.loss != 0 ||
      n.impair.corrupt != 0 || n.switches.queue.n != 0 ||
      (n.switches.buffer.n != 0 && !n.switches.pfc && !n.switches.credits);
  return q;
}

}  // namespace

std::optional<Connected> connect_pair(const Scenario& scenario, const ConnectSpec& spec, Exchange& exchange,
                                      check::Referee* referee) {
  const TransportSpec& t = scenario.transport;
  Prng psns(spec.psn_seed);
  const WirePsn psn[2] = {{static_cast<std::uint32_t>(psns.next()) & kPsnMask},
                          {static_cast<std::uint32_t>(psns.next()) & kPsnMask}};
  Connected made;
  ConnectEnd ends[2];
  for (int i = 0; i < 2; ++i) {
    const SpecEnd& e = spec.ends[i];
    PortQueuePair wanted{e.cq, e.cq, {}, false};
    wanted.caps.max_send_wr = e.send_depth;
    wanted.caps.max_recv_wr = e.recv_depth;
    const auto qpn = e.nic->create_qp(wanted);
    if (!qpn) {
      CHECK(qpn.error() == Errc::kNoMemory);
      if (i == 1) CHECK(spec.ends[0].nic->destroy_qp(made.qpn[0]).has_value());
      return std::nullopt;
    }
    made.qpn[i] = *qpn;
    ConnectTerms terms;
    terms.mode = t.mode;
    terms.access = kFullAccess;
    terms.mtu = t.mtu;
    terms.reads = static_cast<std::uint8_t>(std::min(spec.reads, 128U));
    terms.min_rnr_timer = 1;
    terms.timeout = t.timeouts ? t.timeout : std::uint8_t{0};
    terms.retry_count = t.retry_count;
    terms.rnr_retry = t.rnr_retry;
    terms.psn = psn[i];
    ends[i] = {e.nic->address(), *qpn, terms};
  }
  CHECK(exchange.join(*spec.ends[0].nic, ends[0], *spec.ends[1].nic, ends[1]).has_value());
  if (referee != nullptr)
    referee->connected(facts_of(scenario, spec, 0, made, psn[0]), facts_of(scenario, spec, 1, made, psn[1]));
  return made;
}

}  // namespace weft::sim
