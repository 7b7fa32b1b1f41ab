// Opening a Nic, and telling programs about events.
#include "live/engine/nic.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "core/base/check.h"
#include "live/capture/packet_trace.h"
#include "live/engine/forks.h"
#include "live/engine/nic_state.h"
#include "live/engine/sizing.h"
#include "live/wires/entropy.h"
#include "live/wires/impaired.h"
#include "live/wires/interfaces.h"
#include "live/wires/neighbours.h"
#include "live/wires/open.h"

namespace weft::live {
namespace {

constexpr Duration kLastWait = milliseconds(15);  // for what a full wire has refused

constexpr std::uint32_t kMostInline = 1024;
constexpr std::uint32_t kMostSges = 32;
constexpr std::uint32_t kMostReads = 128;
// A program listens within this much of opening its device, or its peers are told that nobody does.
constexpr Duration kBeginning = milliseconds(500);
// A program that closes a listener may open another: perftest's client connects again one second after the
// first connection, and its server listens again as late.
constexpr Duration kReopening = milliseconds(2000);

// Both directions of a process lose other packets.
constexpr std::uint64_t kOtherWay = 0x6F75'745F'6C69'6E65ULL;

bool impaired(const impair::ImpairConfig& c) { return !c.clean() || c.delay.ps != 0; }

// How long this process's threads were ready to run and had no processor, in microseconds: what makes a peer
// look silent that is not. 0 where the kernel does not count it.
std::uint64_t waited_for_processor() {
  std::uint64_t sum = 0;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  while (const dirent* const task = readdir(tasks)) {
    std::FILE* const f =
        std::fopen((std::string("/proc/self/task/") + task->d_name + "/schedstat").c_str(), "re");
    if (f == nullptr) continue;
    unsigned long long ran = 0;
    unsigned long long waited = 0;
    if (std::fscanf(f, "%llu %llu", &ran, &waited) == 2) sum += waited / 1000;
    std::fclose(f);
  }
  closedir(tasks);
  return sum;
}

std::uint64_t fold(const wire::Address& a) {
  std::uint64_t v = 0xCBF2'9CE4'8422'2325ULL;
  for (const std::uint8_t b : a.bytes) v = (v ^ b) * 0x100'0000'01B3ULL;
  return v;
}

Attributes describe(const Options& options, const WireFacts& facts, const DeviceConfig& config) {
  Attributes a;
  a.own = facts.own;
  a.guid = guid_of(facts.own.first);
  a.mode = options.mode;
  a.strict_write_order = options.strict_write_order;
  a.active_mtu = port_mtu(facts);
  a.max_qp = config.max_qp;
  a.max_qp_wr = config.max_ring;
  a.max_sge = kMostSges;
  a.max_inline = kMostInline;
  a.max_cq = config.max_cq;
  a.max_cqe = config.max_cqe;
  a.max_mr = config.max_mr;
  a.max_mr_size = UINT64_MAX >> 1U;
  // A window is bound by a queue pair, in its turn, and then no other shard would know.
  a.max_mw = options.shards == 1 ? config.max_mr : 0;
  a.max_pd = config.max_pd;
  a.max_qp_rd_atomic = kMostReads;
  a.max_qp_init_rd_atomic = kMostReads;
  a.max_srq = config.max_srq;
  a.max_ah = config.max_ah;
  a.max_groups = kMostGroups;
  a.max_members = kMostMembers;
  return a;
}

// What others are told: a configured mode is the only one.
std::uint16_t modes_of(const Options& options) {
  return options.mode ? wire::mode_bit(*options.mode) : wire::kAllModes;
}

// A lost message of the manager costs one of the time-outs below. They are those of a local network, shorter
// than RDMA-CM's: a REQ goes out again after 0.4 s, and a peer is unreachable after 6.4 s. Slow programs need
// no longer ones: while a program has not answered a request, its manager asks the peer for time.
cm::CmConfig describe_services(const Options& options, const WireFacts& facts, const DeviceConfig& config,
                               Time now) {
  cm::CmConfig c;
  c.slot = facts.slot;
  c.refuse_from = now + kBeginning;
  c.reopening = kReopening;
  c.patient_rnr_timer = 12;
  c.max_connections = config.max_qp;
  c.seed = config.seed ^ 0x636D;  // another sequence than the Device's
  c.ca_guid = guid_of(facts.own.first);
  c.packet_life = 14;
  c.response_timeout = 16;
  c.modes = modes_of(options);
  c.preferred = options.mode.value_or(c.preferred);
  return c;
}

// Peers tell apart what comes after a process has begun anew by its instance and by its range of queue pairs.
cm::DiscoveryConfig describe_discovery(const Options& options, const WireFacts& facts,
                                       const DeviceConfig& config) {
  cm::DiscoveryConfig d;
  d.seed = config.seed ^ 0x636170;
  d.max_peers = std::min(d.max_peers, config.max_path);
  d.slot = facts.slot;
  d.modes = modes_of(options);
  d.preferred = options.mode.value_or(d.preferred);
  d.instance = unpredictable<std::uint64_t>();
  d.buffer_share = static_cast<std::uint32_t>(buffer_share(facts));
  d.mtu = static_cast<std::uint16_t>(port_mtu(facts));
  return d;
}

// One shard: its wire, and the Nic that drives it.
Result<std::unique_ptr<Nic>> open_one(const Options& options, const Clock& clock, std::uint64_t seed,
                                      Nic* first) {
  const auto shard = first != nullptr ? static_cast<std::uint32_t>(first->shards().size()) : 0;
  auto opened = open_wire(options.wire, options.own);
  if (!opened) return tl::unexpected(opened.error());
  std::unique_ptr<Wire> wire = std::move(*opened);
  if (options.shards > 1 && wire->facts().slot == 0) {
    return fail(
        "shards: this process cannot share its address, not even with itself, because the kernel "
        "does not tell its user from others; run it with --shards 1");
  }
  std::unique_ptr<PacketTrace> trace;
  if (!options.trace.empty()) {
    auto begun = PacketTrace::open({.file = options.trace,
                                    .own = wire->facts().own,
                                    .port = wire->facts().port,
                                    .unix_start_ns = clock.unix_start_ns(),
                                    .snap_length = options.trace_snap});
    if (!begun) return tl::unexpected(begun.error());
    trace = std::move(*begun);
    wire->show_headers();
  }
  PacketTrace* const traced = trace.get();
  LineConfig line = options.line;
  line.icrc = options.icrc;
  if (impaired(options.impairments) || !line.clean() || traced != nullptr) {
    // Two processes with the same seed must not lose the same packets, nor two shards.
    const std::uint64_t chance =
        (options.seed != 0 ? options.seed : unpredictable<std::uint64_t>()) ^ fold(options.own.first) ^ shard;
    line.seed = chance ^ kOtherWay;
    wire =
        std::make_unique<ImpairedWire>(std::move(wire), options.impairments, chance, line, std::move(trace));
  }
  DeviceConfig config = size_device(wire->facts(), seed, options.shards);
  config.strict_write_order = options.strict_write_order;
  config.controller = options.controller;
  config.schedule = options.schedule;
  return std::make_unique<Nic>(options, std::move(wire), config, clock, traced, first);
}

}  // namespace

std::uint64_t guid_of(const wire::Address& address) {
  return (fold(address) & ~0x0300'0000'0000'0000ULL) | 0x0200'0000'0000'0000ULL;
}

std::uint32_t interface_of(const wire::Address& address) { return find_interface(address).index; }

Result<std::shared_ptr<Nic>> open_nic(const Options& options) {
  if (const auto valid = options.validate(); !valid) return tl::unexpected(valid.error());
  const Clock clock;
  // Every shard draws the same keys from it.
  const auto seed = unpredictable<std::uint64_t>();
  auto nic = open_one(options, clock, seed, nullptr);
  if (!nic) return tl::unexpected(nic.error());
  std::shared_ptr<Nic> first = std::move(*nic);
  for (std::uint32_t i = 1; i < options.shards; ++i) {
    auto further = open_one(options, clock, seed, first.get());
    if (!further) return tl::unexpected(further.error());
    first->add_shard(std::move(*further));
  }
  for (Nic* const n : first->shards()) {
    if (const auto started = n->start(); !started) return tl::unexpected(started.error());
  }
  return first;
}

Nic::Nic(const Options& options, std::unique_ptr<Wire> wire, const DeviceConfig& config, const Clock& clock,
         PacketTrace* trace, Nic* first)
    : srqs(config.max_srq),
      ahs(config.max_ah),
      qps(std::size_t{1} << config.qpn_bits),
      first_(first != nullptr ? first : this),
      number_(first != nullptr ? static_cast<std::uint32_t>(first->shards_.size()) : 0),
      tables_(first != nullptr ? nullptr : std::make_unique<SharedTables>(config)),
      shards_(first != nullptr ? std::vector<Nic*>{} : std::vector<Nic*>{this}),
      shared_(first != nullptr ? first->shared_ : tables_.get()),
      stats_(options.stats && first == nullptr),
      level_from_dscp_(options.level_from_dscp),
      clock_(clock),
      trace_(trace),
      paced_(!options.line.clean()),
      wire_(std::move(wire)),
      shard_(config, wire_->facts(), options.icrc,
             describe_services(options, wire_->facts(), config, clock_.now()),
             describe_discovery(options, wire_->facts(), config)),
      qpn_mask_((1U << config.qpn_bits) - 1U),
      attributes_(describe(options, wire_->facts(), config)),
      page_(attributes_) {}

void Nic::add_shard(std::unique_ptr<Nic> further) {
  CHECK(shards_.size() < kMostShards);
  shards_.push_back(further.get());
  further_.push_back(std::move(further));
}

Result<void> Nic::start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return fail_system("cannot open an eventfd", errno);
  if (Neighbours* const others = neighbours_owned(); others != nullptr)
    others->begins(clock_.now() + kBeginning);
  mind_forks(*this);
  try {
    thread_ = std::thread([this] { background(); });
  } catch (const std::system_error& e) {
    return fail_system("cannot start a thread", e.code().value());
  }
  return {};
}

bool is_inherited(const Nic& nic) { return nic.is_still(); }

// The first one waits for all threads before anything is gone that all share.
Nic::~Nic() {
  for (const auto& further : further_) further->stop();
  stop();
  report_once();
  further_.clear();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void Nic::stop() {
  if (stopping_.exchange(true)) return;
  forget_forks(*this);
  if (wake_fd_ >= 0) wake();
  if (thread_.joinable()) thread_.join();
  // What a full wire has refused, farewells among it, still leaves if it can soon.
  const Time until = clock_.now() + kLastWait;
  while (shard_.wire_was_full() && clock_.now() < until) {
    shard_.transmit(clock_.now(), *wire_);
    sched_yield();
  }
}

// The descriptors stay valid and lead nowhere: what they were is the parent's.
void Nic::still_owned() {
  still_ = true;
  const int nowhere = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (nowhere < 0) std::abort();
  wire_->abandon(nowhere);
  if (wake_fd_ >= 0) dup3(nowhere, wake_fd_, O_CLOEXEC);
  close(nowhere);
  page_.leave_to_parent();
  // There is no such thread here, to join or to detach: its name is left behind.
  static_cast<void>(new std::thread(std::move(thread_)));
  stats_ = false;
}

// exit() may have been called by a signal's handler, whose thread was inside here: then what is held is lost.
void Nic::finish() {
  const Time until = clock_.now() + kLastWait;
  bool ours = false;
  while (paced_ && !(ours = ownership_.try_acquire()) && clock_.now() < until) sched_yield();
  if (ours) {
    wire_->let_go();
    ownership_.release();
  }
  if (trace_ != nullptr) trace_->finish();
}

void Nic::report_once() {
  if (stats_) report();
  stats_ = false;
}

// Everything that is not zero, a line each, with what it means: the sums over all shards. The caller owns
// this one, or every thread has ended.
void Nic::report() {
  struct Line {
    std::string name;
    const char* text;
    std::uint64_t value;
  };
  std::vector<Line> lines;
  const auto add = [&](const char* name, const char* text, std::uint64_t v) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
    if (same != lines.end()) {
      same->value += v;
    } else {
      lines.push_back({name, text, v});
    }
  };
  visit_counters_owned(add);
  for (const auto& further : further_) {
    const Owned owned(further->ownership());
    further->visit_counters_owned(add);
  }
  add("waited_for_processor", "microseconds that threads of this process were ready and had none",
      waited_for_processor());
  for (const Line& l : lines) {
    if (l.value != 0)
      std::fprintf(stderr, "weft: %-22s %12llu  %s\n", l.name.c_str(),
                   static_cast<unsigned long long>(l.value), l.text);
  }
}

void Nic::visit_counters_owned(const Wire::SeeCounter& line) {
  const Counters& c = shard_.device().counters();
  for (std::size_t i = 0; i < kCounterCount; ++i) line(kCounterInfo[i].name, kCounterInfo[i].text, c.get(i));
  const WireCounters& w = shard_.wire_counters();
#define WEFT_X(name, text) line(#name, text, w.name);
  WEFT_WIRE_COUNTERS(WEFT_X)
#undef WEFT_X
  const ShardCounters& s = shard_.counters();
  line("trains_sent", "calls that sent frames", s.trains_sent);
  line("frames_sent", "frames in them", s.frames_sent);
  line("wire_full", "sends that had to be repeated", s.wire_full);
  line("send_failed", "trains that the network refused", s.send_failed);
  const cm::CmCounters& m = std::as_const(shard_.services()).manager().counters();
  line("cm_received", "messages of the connection manager received", m.received);
  line("cm_sent", "messages of the connection manager sent", m.sent);
  line("cm_repeated", "of those, sent again after a time-out", m.repeated);
  line("cm_duplicates", "of those received, received before", m.duplicates);
  line("cm_strays", "of those received, about no connection here", m.strays);
  line("cm_early", "requests that came before the program listened, and that the peer repeats", m.early);
  line("cm_refused", "requests that the connection manager turned away by itself", m.refused);
  const cm::DiscoveryCounters& d = std::as_const(shard_.services()).discovery().counters();
  line("cap_queries", "questions to peers about what they speak", d.queries);
  line("cap_answers", "answers to them", d.answers);
  line("mad_strange", "datagrams to queue pair 1 of a management class that weft does not speak",
       shard_.services().strangers());
  line("cap_asked", "questions of peers, answered", d.asked);
  wire_->visit_counters(line);
}

void Nic::dispatch_events_owned() {
  DeviceEvent e;
  while (device().poll_event(e)) {
    switch (e.kind) {
      case DeviceEventKind::kCompletion:
        // Several shards are armed for one event; the first of them that has something is to tell.
        if (CqRecord* cq = shared_->cqs[e.cq.v].get();
            cq != nullptr && cq->channel != nullptr &&
            (shards().size() == 1 || cq->wanted.exchange(0) != 0)) {
          cq->channel->queue->push({e.kind, cq});
        }
        break;
      case DeviceEventKind::kCqError:
        if (CqRecord* cq = shared_->cqs[e.cq.v].get(); cq != nullptr) {
          const bool told = cq->overran.exchange(true, std::memory_order_relaxed);
          if (!told) cq->async->push({e.kind, cq});
        }
        break;
      case DeviceEventKind::kSrqLimit:
        if (SrqRecord* srq = srqs[e.srq.v].get(); srq != nullptr) srq->async->push({e.kind, nullptr, srq});
        break;
      default:
        if (QpRecord* qp = qp_slot(e.qpn).get(); qp != nullptr && qp->qpn == e.qpn) {
          qp->async->push({e.kind, nullptr, nullptr, qp});
        }
        break;
    }
  }
  for (cm::CmEvent told; shard_.services().poll_event(told);) tell_owned(told);
}

}  // namespace weft::live
