// Opening a Nic, and telling programs about events.
#include "live/engine/nic.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

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
  a.address = facts.address;
  a.interface = facts.interface;
  a.guid = guid_of(facts.address);
  a.mode = options.mode;
  a.strict_write_order = options.strict_write_order;
  a.active_mtu = verbs_mtu(facts.mtu);
  a.max_qp = config.max_qp;
  a.max_qp_wr = config.max_ring;
  a.max_sge = kMostSges;
  a.max_inline = kMostInline;
  a.max_cq = config.max_cq;
  a.max_cqe = config.max_cqe;
  a.max_mr = config.max_mr;
  a.max_mr_size = UINT64_MAX >> 1U;
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
cm::CmConfig describe_services(const Options& options, const WireFacts& facts, std::uint64_t seed, Time now) {
  cm::CmConfig c;
  c.slot = facts.slot;
  c.refuse_from = now + kBeginning;
  c.reopening = kReopening;
  c.patient_rnr_timer = 12;
  c.max_connections = 16384;
  c.seed = seed ^ 0x636D;  // another sequence than the Device's
  c.ca_guid = guid_of(facts.address);
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
  d.slot = facts.slot;
  d.modes = modes_of(options);
  d.preferred = options.mode.value_or(d.preferred);
  d.instance = unpredictable<std::uint64_t>();
  d.buffer_share = static_cast<std::uint32_t>(config.path_credit.n);
  d.mtu = static_cast<std::uint16_t>(verbs_mtu(facts.mtu));
  return d;
}

}  // namespace

std::uint64_t guid_of(const wire::Address& address) {
  return (fold(address) & ~0x0300'0000'0000'0000ULL) | 0x0200'0000'0000'0000ULL;
}

std::uint32_t interface_of(const wire::Address& address) { return find_interface(address).index; }

Result<std::shared_ptr<Nic>> open_nic(const Options& options) {
  auto opened = open_wire(options.wire, options.address);
  if (!opened) return tl::unexpected(opened.error());
  std::unique_ptr<Wire> wire = std::move(*opened);
  const Clock clock;
  std::unique_ptr<PacketTrace> trace;
  if (!options.trace.empty()) {
    auto begun = PacketTrace::open({.file = options.trace,
                                    .address = wire->facts().address,
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
    // Two processes with the same seed must not lose the same packets.
    const std::uint64_t seed =
        (options.seed != 0 ? options.seed : unpredictable<std::uint64_t>()) ^ fold(options.address);
    line.seed = seed ^ kOtherWay;
    wire = std::make_unique<ImpairedWire>(std::move(wire), options.impairments, seed, line, std::move(trace));
  }
  DeviceConfig config = size_device(wire->facts(), unpredictable<std::uint64_t>());
  config.strict_write_order = options.strict_write_order;
  config.controller = options.controller;
  config.schedule = options.schedule;
  auto nic = std::make_shared<Nic>(options, std::move(wire), config, clock, traced);
  const auto started = nic->start();
  if (!started) return tl::unexpected(started.error());
  return nic;
}

Nic::Nic(const Options& options, std::unique_ptr<Wire> wire, const DeviceConfig& config, const Clock& clock,
         PacketTrace* trace)
    : cqs(config.max_cq),
      srqs(config.max_srq),
      ahs(config.max_ah),
      qps(std::size_t{1} << config.qpn_bits),
      mrs(config.max_mr),
      window_owners(config.max_mr),
      pd_owners(config.max_pd),
      stats_(options.stats),
      level_from_dscp_(options.level_from_dscp),
      clock_(clock),
      trace_(trace),
      paced_(!options.line.clean()),
      wire_(std::move(wire)),
      shard_(config, wire_->facts(), options.icrc,
             describe_services(options, wire_->facts(), config.seed, clock_.now()),
             describe_discovery(options, wire_->facts(), config)),
      qpn_mask_((1U << config.qpn_bits) - 1U),
      attributes_(describe(options, wire_->facts(), config)),
      page_(attributes_) {}

Result<void> Nic::start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return fail(std::string("cannot open an eventfd: ") + std::strerror(errno));
  if (Neighbours* const others = neighbours_owned(); others != nullptr)
    others->begins(clock_.now() + kBeginning);
  mind_forks(*this);
  try {
    thread_ = std::thread([this] { background(); });
  } catch (const std::system_error& e) {
    errno = e.code().value();
    return fail(std::string("cannot start a thread: ") + std::strerror(errno));
  }
  return {};
}

Nic::~Nic() {
  forget_forks(*this);
  stopping_ = true;
  if (wake_fd_ >= 0) wake();
  if (thread_.joinable()) thread_.join();
  report_once();
  if (wake_fd_ >= 0) close(wake_fd_);
}

// The descriptors stay valid and lead nowhere: what they were is the parent's.
void Nic::still_owned() {
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

void Nic::finish_trace() {
  if (trace_ != nullptr) trace_->finish();
}

void Nic::report_once() {
  if (stats_) report();
  stats_ = false;
}

// Everything that is not zero, a line each, with what it means.
void Nic::report() const {
  const auto line = [](const char* name, const char* text, std::uint64_t v) {
    if (v != 0)
      std::fprintf(stderr, "weft: %-22s %12llu  %s\n", name, static_cast<unsigned long long>(v), text);
  };
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
  line("waited_for_processor", "microseconds that threads of this process were ready and had none",
       waited_for_processor());
}

void Nic::dispatch_events_owned() {
  DeviceEvent e;
  while (device().poll_event(e)) {
    switch (e.kind) {
      case DeviceEventKind::kCompletion:
        if (CqRecord* cq = cqs[e.cq.v].get(); cq != nullptr && cq->channel != nullptr) {
          cq->channel->queue->push({e.kind, cq});
        }
        break;
      case DeviceEventKind::kCqError:
        if (CqRecord* cq = cqs[e.cq.v].get(); cq != nullptr) {
          cq->overran.store(true, std::memory_order_relaxed);
          cq->async->push({e.kind, cq});
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
