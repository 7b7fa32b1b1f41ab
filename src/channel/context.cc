#include "channel/context.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/base/check.h"

namespace weft::channel {
namespace {

constexpr int kBatches = 16;  // of completions, in one turn
constexpr std::uint32_t kMostInline = 256;
constexpr std::uint32_t kFewChannels = 16;  // so many lie in the processor's cache by themselves

struct WorkId {  // Context::work_id
  std::uint32_t work, life, channel, arg;
};
constexpr WorkId read_work(std::uint64_t id) {
  return {static_cast<std::uint32_t>(id >> 60U), static_cast<std::uint32_t>(id >> 48U) & 0xFFFU,
          static_cast<std::uint32_t>(id >> 28U) & 0xF'FFFFU, static_cast<std::uint32_t>(id) & 0xFFF'FFFFU};
}

}  // namespace

const char* sentence(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "it is open";
    case Reason::kHere:
      return "this program closed it";
    case Reason::kThere:
      return "the peer closed it";
    case Reason::kRefused:
      return "the peer refused it";
    case Reason::kVersion:
      return "the peer speaks another version of the channel protocol, or none";
    case Reason::kRange:
      return "the peer found what this end said of itself out of range, or the reverse";
    case Reason::kNoRoom:
      return "the peer has no room for another channel";
    case Reason::kSessionGone:
      return "the peer does not know the session any more: its program ended";
    case Reason::kLost:
      return "the connection failed";
    case Reason::kLate:
      return "nothing came of it in time";
    case Reason::kViolation:
      return "the peer broke the channel protocol";
    case Reason::kNoMemory:
      return "this end has no memory, no channel or no queue pair left";
  }
  return "";
}

Result<std::unique_ptr<Context>> Context::open(VerbsPort& port, const Config& config, std::uint64_t seed,
                                               StreamPort* streams) {
  if (const auto sound = config.validate(); !sound) return fail(sound.error().message);
  std::unique_ptr<Context> made(new Context(port, config, seed, streams));
  if (const auto up = made->set_up(); !up) return fail(up.error().message);
  return made;
}

Context::Context(VerbsPort& port, const Config& config, std::uint64_t seed, StreamPort* streams)
    : port_(port),
      streams_(streams),
      config_(config),
      random_(seed),
      filter_random_(Prng(seed).fork(2)),
      lent_(port, kLocalWrite | kRemoteRead, config.small + Head::kBytes, config),
      own_(port, kLocalWrite, config.small + Head::kBytes, config),
      inline_(std::min(port.facts().max_inline, kMostInline)),
      sq_(std::bit_ceil(config.depth + 2 * kControls)),
      slots_(config.depth + kControls),
      shared_(port, own_, std::uint64_t{static_cast<std::uint8_t>(Work::kReceive)} << 60U,
              config.small + Head::kBytes, slots_),
      channels_(config.channels),
      calls_(config.calls),
      by_session_(0, SessionHash{Prng(seed).fork(1).next()}),
      owed_(config.channels),
      nops_(config.channels),
      channel_times_(config.channels),
      call_times_(config.calls) {
  config_.largest = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.largest, config.memory.n / 2));
  config_.terms.reads = static_cast<std::uint8_t>(config.reads);
  config_.terms.access = kRemoteWrite | kRemoteRead;
  frame_wr_.opcode = WrOpcode::kSendImm;
  trace_tag_ = (Prng(seed).fork(3).next() | 1ULL << 63U) >> 33U << 33U;
  analysis_changed();
  free_.reserve(config.channels);
  for (std::uint32_t i = config.channels; i-- > 0;) {
    channels_[i].index = i;
    channels_[i].context = this;
    channels_[i].begun.channel = channels_[i].ended.channel = &channels_[i];
    free_.push_back(i);
  }
  left_.reserve(config.channels);
  free_calls_.reserve(config.calls);
  for (std::uint32_t i = config.calls; i-- > 0;) free_calls_.push_back(static_cast<std::uint16_t>(i));
  idle_qps_.reserve(config.cached_qps);
  graves_.reserve(config.channels);
  if (streams_ == nullptr) return;
  strangers_.reserve(kMostStrangers);
  readable_.reserve(2 * std::size_t{config.channels});
}

Result<void> Context::set_up() {
  // A queue pair that fails completes everything that is posted. What is posted to a shared queue is there
  // once, however many draw from it.
  const std::uint64_t common = config_.use_srq ? config_.srq_size : 0;
  const std::uint64_t each = sq_ + (config_.use_srq ? 0 : slots_);
  const std::uint64_t needed = common + config_.channels * each;
  const std::uint64_t entries = config_.cq_size != 0 ? config_.cq_size : needed;
  if (entries < common + each)
    return fail("cq_size = " + std::to_string(entries) + ": one channel of depth " +
                std::to_string(config_.depth) + " needs " + std::to_string(common + each));
  if (entries > UINT32_MAX) return fail("channels: their completion queue would not fit");
  most_qps_ =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(config_.channels, (entries - common) / each));
  const auto cq = port_.create_cq(static_cast<std::uint32_t>(entries));
  if (!cq) {
    return fail("the device has no completion queue of " + std::to_string(entries) + " entries, which " +
                std::to_string(most_qps_) + " channels of depth " + std::to_string(config_.depth) + " need");
  }
  cq_ = *cq;
  have_cq_ = true;
  if (config_.use_srq) {
    if (auto shared = shared_.open(config_.srq_size); !shared) return shared;
  }
  if (config_.tcp_port == 0 && config_.mock == 0) return {};
  if (streams_ == nullptr) return fail("tcp_port, mock: this platform has no TCP; leave both at 0");
  if (config_.tcp_port != 0 && !streams_->listen(config_.tcp_port)) {
    return fail("tcp_port = " + std::to_string(config_.tcp_port) +
                ": another program of this address has it; choose another one, or 0 for none");
  }
  return {};
}

Context::~Context() {
  for (Channel& c : channels_) {
    if (c.connected) (void)port_.disconnect(c.connection);
    if (c.carried != nullptr) end_stream(c);
    if (c.qpn != kNoQpn) (void)port_.destroy_qp(c.qpn);
  }
  for (const Stranger& s : strangers_) streams_->close(s.stream);
  for (const Qpn q : idle_qps_) (void)port_.destroy_qp(q);
  for (const Grave& g : graves_) (void)port_.destroy_qp(g.qpn);
  shared_.close();
  if (have_cq_) (void)port_.destroy_cq(cq_);
  for (const auto& r : registered_) (void)port_.release(r->memory.lkey);
}

std::uint64_t Context::bytes_per_channel(const Config& config) {
  const std::uint64_t ring = std::bit_ceil(config.depth);
  // Its entries in two rows, in the deadlines, and in the two tables that find it, which are half full at the
  // least.
  constexpr std::uint64_t kEntries = 2 * (4 + 2 * 16) + 64 + 2 * (16 + 40) + 2 * 4;
  return sizeof(Channel) + kEntries + (2 * ring + config.depth + kControls) * sizeof(Message*);
}

Result<void> Context::set(std::string_view name, std::uint64_t value) {
  const std::uint32_t mock = config_.mock;
  const auto done = set_online(config_, name, value);
  if (!done) return done;
  if (config_.mock != mock && streams_ == nullptr) {
    config_.mock = mock;
    return fail("mock: this platform has no TCP; leave it at 0");
  }
  ++settings_changed_;
  analysis_changed();
  for (Channel& c : channels_) {
    if (c.over()) continue;
    if (c.state == Channel::State::kOpen) begin_clock(c);
    if (name == "mock") want(c, value != 0 ? Carrier::kTcp : Carrier::kRdma);
    if (name == "mock_slow_us") {  // what was measured was held against another limit
      c.moving.timing = false;
      c.moving.slow_since = kNever;
    }
    arm(c, due(c));
  }
  return done;
}

Message* Context::allocate(std::uint32_t length) {
  const Section timed(*this, Place::kMemory);
  return lent_.take(length);
}

Outcome<Registered*> Context::register_memory(std::span<std::uint8_t> bytes) {
  if (bytes.empty()) return fail(Errc::kInvalid);
  auto memory = port_.adopt(bytes, kLocalWrite | kRemoteRead);
  if (!memory) return fail(memory.error());
  registered_.push_back(std::make_unique<Registered>(Registered{*memory, 0}));
  return registered_.back().get();
}

Outcome<void> Context::deregister_memory(Registered& memory) {
  if (memory.messages != 0) return fail(Errc::kBusy);
  const auto gone = port_.release(memory.memory.lkey);
  if (gone) std::erase_if(registered_, [&](const auto& r) { return r.get() == &memory; });
  return gone;
}

Message* Context::gather(std::span<const Part> parts) {
  if (parts.empty() || parts.size() > config_.pieces) return nullptr;
  std::uint64_t length = 0;
  for (const Part& p : parts) {
    const std::uint64_t all = p.memory->memory.length;
    if (p.offset > all || p.length > all - p.offset) return nullptr;
    length += p.length;
  }
  if (length > INT32_MAX) return nullptr;  // as Config::largest
  Message* const m = lent_.take(0);
  if (m == nullptr) return nullptr;
  m->outside = parts[0].memory;
  m->parts = static_cast<std::uint16_t>(parts.size());
  std::uninitialized_copy(parts.begin(), parts.end(), parts_of(*m).begin());
  for (const Part& p : parts) ++p.memory->messages;
  m->data = parts[0].data();
  m->length = m->capacity = static_cast<std::uint32_t>(length);
  return m;
}

void Context::tell(Telling& t, Telling::What what) {
  t.what = what;
  t.next = nullptr;
  (line_end_ != nullptr ? line_end_->next : line_) = &t;
  line_end_ = &t;
}

// --- the turn ---

void Context::poll(Time at) {
  ++counts_.polls;
  const Duration gap = counts_.polls > 1 ? at - polled_ : Duration{};
  counts_.longest_gap_ns = std::max(counts_.longest_gap_ns, static_cast<std::uint64_t>(gap.ns()));
  now_ = polled_ = at;
  if (config_.poll_warn.ps != 0 && gap > config_.poll_warn && !slept_) poll_was_late(gap);
  if (config_.mock_slow.ps != 0 && gap > config_.mock_slow / 2 && !slept_) ++slow_polls_;
  slept_ = false;
  lent_.at(at);
  own_.at(at);
  free_those_that_left();
  turn(true);
}

Outcome<void> Context::arm() {
  const auto armed = port_.arm(cq_, false);
  turn(false);
  slept_ = true;
  return armed;
}

void Context::turn(bool looks) {
  ++turn_;
  shared_.begin_turn();
  std::uint32_t n = kBatch;
  {
    const Section timed(*this, Place::kCompletions);
    look_at_batch();
    for (int batch = 0; batch < kBatches && n == kBatch; ++batch) {
      n = port_.poll(cq_, batch_);
      counts_.completions += n;
      batch_end_ = n;
      batch_at_ = 0;
      if (busy_qps_ > kFewChannels) look_ahead(n);
      look_at_batch();
    }
  }
  // What arrived before a connection ended is looked at before its end is.
  behind_ = n == kBatch;
  if (looks && now_ >= look_at_ && !behind_) look();
  if (looks && streaming()) stream_turn();
  if (timed_ != nullptr) [[unlikely]] {
    if (!timed_->over()) arm(*timed_, now_);
    timed_ = nullptr;
  }
  if (next_time() <= now_ || shrink_at_ <= now_) timers();
  if (fetching_ != nullptr) fetch();
  if (!behind_ && !graves_.empty()) bury();
  ring();
}

// A completion for which there is no memory ends the turn by an exception; the next one goes on behind it.
void Context::look_at_batch() {
  while (batch_at_ != batch_end_) completed(batch_[batch_at_++]);
}

// What the completions of a batch will touch, asked for before the first of them is looked at: over many
// channels almost every one of these lines lies in memory. First what the completion names, then what that
// names, and so on, because a line that is asked for cannot be read yet.
void Context::look_ahead(std::uint32_t n) const {
  const auto ask = [](const void* at) __attribute__((always_inline)) { __builtin_prefetch(at, 1); };
  const auto behind = [](const void* at, std::uint32_t bytes) __attribute__((always_inline)) {
    return static_cast<const void*>(static_cast<const std::uint8_t*>(at) + bytes);
  };
  struct Came {  // a receive
    const Channel* channel;
    std::uint32_t slot;
    bool payload;
    const Message* block;  // of the shared queue
  } came[kBatch];
  std::uint32_t receives = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const WorkId id = read_work(batch_[i].wr_id);
    CHECK_OP(id.channel, <, config_.channels);
    const bool shared = takes_shared(id);
    const Channel* const c = shared ? by_qpn(batch_[i].qpn) : &channels_[id.channel];
    if (c == nullptr) continue;
    ask(c);
    ask(behind(c, 64));
    if (static_cast<Work>(id.work) != Work::kReceive) continue;
    came[receives++] = {c, id.arg, batch_[i].byte_len != 0, shared ? &shared_.at(id.arg) : nullptr};
  }
  for (std::uint32_t i = 0; i < receives; ++i) {
    const Channel& c = *came[i].channel;
    if (c.rings == nullptr) continue;
    owed_.prefetch(c.index);
    if (came[i].block == nullptr) ask(&c.receive_at(came[i].slot));
    if (came[i].payload) ask(&c.taken_at(c.rx.wta));
    if (c.tx.taken != c.tx.seq) ask(&c.sent_at(c.tx.taken));
  }
  for (std::uint32_t i = 0; i < receives; ++i) {
    const Channel& c = *came[i].channel;
    if (c.rings == nullptr) continue;
    const Message* const m = came[i].block != nullptr ? came[i].block : c.receive_at(came[i].slot);
    if (m != nullptr) ask(m);
    if (m != nullptr && came[i].payload) ask(behind(m, kFrameAt));
    if (c.tx.taken != c.tx.seq) ask(c.sent_at(c.tx.taken));
  }
}

void Context::completed(const Completion& done) {
  const WorkId id = read_work(done.wr_id);
  CHECK_OP(id.channel, <, config_.channels);
  if (takes_shared(id)) return shared_came(id.arg, done);
  Channel& c = channels_[id.channel];
  if ((c.life & 0xFFFU) != id.life) {
    ++counts_.stale;
    return;
  }
  const Work work = static_cast<Work>(id.work);
  if (done.status != WcStatus::kSuccess) return fail_channel(c, Reason::kLost);
  if (work == Work::kReceive) {
    CHECK(id.arg < slots_ && c.rings != nullptr);
    (void)frame_came(c, *c.receive_at(id.arg), done);
    return;
  }
  c.sq_done = static_cast<std::uint16_t>(id.arg);
  switch (work) {
    case Work::kMessage:
      completed_up_to(c, widen(id.arg >> 16U, c.tx.complete) + 1);
      if (config_.mock_slow.ps != 0 && c.moving.timing && c.tx.complete > c.moving.timed) [[unlikely]] {
        judge_time(c, true);
        if (c.qpn == kNoQpn) return;
      }
      break;
    case Work::kRead:
      fetched(c, id.arg >> 16U);
      break;
    case Work::kProbe:
      c.probing = false;
      c.heard = now_;
      arm(c, due(c));
      break;
    case Work::kClose:
      return finish(c, Reason::kHere);
    default:
      break;
  }
  join_fetching(c);
  pump(c);
}

// A receive of the shared queue. Its queue pair is another's only after everything of the last connection was
// seen (bury), so the number alone says which channel it is.
void Context::shared_came(std::uint32_t slot, const Completion& done) {
  Message& m = shared_.take(slot);
  Channel* const c = by_qpn(done.qpn);
  if (c == nullptr || done.status != WcStatus::kSuccess) {
    shared_.give(m);
    if (c != nullptr) return fail_channel(*c, Reason::kLost);
    ++counts_.stale;
    return;
  }
  m.channel = c;
  if (!frame_came(*c, m, done)) shared_.give(m);
}

bool Context::next(Notice& out) {
  Telling* const t = line_;
  if (t == nullptr) return false;
  line_ = t->next;
  if (line_ == nullptr) line_end_ = nullptr;
  out = {};
  const Telling::What what = t->what;
  t->what = Telling::What::kNothing;
  switch (what) {
    case Telling::What::kMessage: {
      Message& m = *static_cast<Message*>(t);
      m.clear(Message::kTelling);
      out.kind = m.role == Role::kRequest    ? Notice::Kind::kRequest
                 : m.role == Role::kResponse ? Notice::Kind::kResponse
                                             : Notice::Kind::kMessage;
      out.channel = m.channel;
      out.message = &m;
      out.cookie = m.role == Role::kResponse ? m.cookie : 0;
      return true;
    }
    case Telling::What::kSent: {
      Message& m = *static_cast<Message*>(t);
      out.kind = Notice::Kind::kOutcome;
      out.channel = m.channel;
      out.cookie = m.cookie;
      out.fate = m.fate;
      m.clear(Message::kTelling);
      give_lent(&m);
      return true;
    }
    case Telling::What::kCall: {
      Call& call = *static_cast<Call*>(t);
      out.kind = Notice::Kind::kOutcome;
      out.channel = call.channel;
      out.cookie = call.cookie;
      out.fate = call.fate;
      free_call(call);
      return true;
    }
    default: {
      Channel& c = *static_cast<Channel::About*>(t)->channel;
      out.channel = &c;
      out.cookie = c.cookie;
      out.reason = c.reason;
      out.kind = what == Telling::What::kAsked    ? Notice::Kind::kAsked
                 : what == Telling::What::kOpened ? Notice::Kind::kOpened
                                                  : Notice::Kind::kClosed;
      if (what == Telling::What::kClosed) maybe_leave(c);
      return true;
    }
  }
}

Time Context::next_wake() const {
  Time at = next_time();
  const bool events = !put_off_.empty() || met_early_ || timed_ != nullptr;
  if (has_ripe_graves() || behind_ || events || !readable_.empty()) at = std::min(at, now_);
  for (const Stranger& s : strangers_) at = std::min(at, std::max(s.until, look_at_));
  return at;
}

void Context::check_invariants() const {
  std::size_t unused = 0;
  std::uint32_t reads = 0;
  std::uint32_t carried = 0;
  for (const Channel& c : channels_) {
    carried += c.carried != nullptr ? 1U : 0U;
    unused += c.state == Channel::State::kFree || c.state == Channel::State::kLeft ? 1U : 0U;
    reads += c.reads_out;
    if (c.over()) continue;
    const SendWindow& tx = c.tx;
    CHECK_OP(tx.acked(), <=, tx.posted());
    CHECK_OP(tx.posted(), <=, tx.seq);
    CHECK_OP(tx.seq, <=, tx.acked() + tx.depth);
    const TakeWindow& rx = c.rx;
    CHECK_OP(rx.told(), <=, rx.rta);
    CHECK_OP(rx.rta, <=, rx.handed);
    CHECK_OP(rx.handed, <=, rx.wta);
    CHECK_OP(rx.wta, <=, rx.rta + rx.depth);
    CHECK_OP(rx.held, <=, rx.handed - rx.rta);
    CHECK_OP(c.unasked, ==, count_unasked(c));
    if (c.talks()) CHECK((c.qpn != kNoQpn) != (c.carried != nullptr));
    // What is taken is told in time, if the permission is there.
    CHECK(c.state != Channel::State::kOpen || !rx.owes() || !c.may_early || c.in_owed);
    CHECK(c.in_owed == owed_.contains(c.index) && c.in_nops == nops_.contains(c.index));
  }
  if (shared_.on()) check_shared();
  CHECK_OP(unused, ==, free_.size() + left_.size());
  CHECK_OP(reads, ==, outstanding_);
  CHECK_OP(carried, ==, carried_);
  for (const auto& [id, index] : by_connection_)
    CHECK(channels_[index].connected && channels_[index].connection == id);
  for (const auto& [name, index] : by_session_)
    CHECK(!channels_[index].over() && channels_[index].session == name.session);
}

}  // namespace weft::channel
