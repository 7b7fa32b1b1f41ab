// The middleware (X-RDMA, as the papers of the README cite it): messages over reliable connections, above the
// port (core/verbs/port.h) and nothing else. So it runs over libibverbs, over a simulated NIC, and in a pair
// world.
//
// The contract:
//
//   one thread     A context, its channels and its messages belong to one thread. There is no lock and
//                  no atomic, and on the way of a message no system call and no allocation.
//   no clock       poll() is told the time. Everything else happens at the time of the last poll() or at().
//   no callbacks   What happens stands in a line, and next() tells it, in order. A call never waits.
//   told           A message is told delivered when the program at the far side gave it back. One that fails
//                  is always told: not sent, or unknown.
//   bounded        depth in flight, queue in waiting, and depth + calls more for answers: send() and its like
//                  answer kBusy beyond. What a peer may send has a receive posted for it, so there is no
//                  receiver-not-ready NAK.
//   hostile peers  A peer that breaks the protocol gets its channel closed, and nothing else happens.
//
//   context.cc  making one, memory, the turn, completions    life.cc         from the first word to the last
//   send.cc     from a message to a frame                    receive.cc      from a frame to a message
//   fetch.cc    what is too long for a frame                 timers.cc       what happens by itself
//   trace.cc    where the time goes                          stream.cc       frames over TCP, without READs
//   moving.cc   which carrier a channel has                  queue_pairs.cc  used, and used again
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "channel/channel.h"
#include "channel/clock.h"
#include "channel/config.h"
#include "channel/idle_qps.h"
#include "channel/memory.h"
#include "channel/message.h"
#include "channel/names.h"
#include "channel/notice.h"
#include "channel/params.h"
#include "channel/row.h"
#include "channel/shared.h"
#include "channel/slow_log.h"
#include "channel/stream_port.h"
#include "channel/trace.h"
#include "core/base/prng.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/transport/sched/deadlines.h"
#include "core/verbs/port.h"

namespace weft::channel {

using CallId = Id<struct CallTag, std::uint32_t>;

class Context {
 public:
  // `seed` draws the names of sessions unless the configuration has something better. Without `streams`
  // channels are over RDMA alone.
  static Result<std::unique_ptr<Context>> open(VerbsPort& port, const Config& config, std::uint64_t seed,
                                               StreamPort* streams = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // --- memory ---
  Message* allocate(std::uint32_t length);  // a message to be filled; nullptr: there is no memory
  void release(Message* message);
  // The program's own memory, which peers may then read until it is deregistered. kBusy: messages of it are
  // about.
  Outcome<Registered*> register_memory(std::span<std::uint8_t> bytes);
  Outcome<void> deregister_memory(Registered& memory);
  // A message of bytes that lie in it, at most `pieces` parts one behind the other; nullptr: they are more,
  // or lie elsewhere, or there is no memory for its descriptor.
  Message* gather(std::span<const Part> parts);
  bool reserve(std::uint32_t length, std::uint32_t count) { return lent_.reserve(length, count); }

  // --- channels ---
  Outcome<void> listen(std::uint16_t service) { return port_.listen(service); }
  Outcome<Channel*> connect(const wire::Address& to, std::uint16_t service, std::uint64_t cookie);
  void accept(Channel& channel, std::uint64_t cookie);
  void refuse(Channel& channel);
  void close(Channel& channel);  // after what was sent is taken, or linger
  void abort(Channel& channel);  // now
  // The channel goes on over this carrier; a reconnection, so that nothing is lost or repeated. It begins
  // now, and where the other carrier does not answer, it ends on the one that was. kUnsupported: one end
  // keeps no sessions or has no TCP. kBusy: the channel is not open at the moment.
  Outcome<void> move(Channel& channel, Carrier to);

  // --- messages: one that is accepted is the Context's; one that is refused stays yours ---
  Outcome<void> send(Channel& channel, Message* message, std::uint64_t cookie, bool tell);
  Outcome<CallId> call(Channel& channel, Message* request, std::uint64_t cookie, Time deadline);
  // `response` may be nullptr: a status alone.
  Outcome<void> answer(Message& request, Message* response, std::uint32_t status, std::uint64_t cookie);
  bool cancel(CallId call);  // false: it is over already

  // --- the turn ---
  void poll(Time at);
  bool next(Notice& out);
  Time next_wake() const;  // when poll() has something to do by itself
  // The time has gone on since the last poll(): deadlines that the next calls set count from here.
  void at(Time time) { now_ = std::max(now_, time); }
  // The program's clock goes back by so much, for one that runs longer than a Time lasts (106 days): whatever
  // was to happen in an hour still is. Costs a look at every channel and every call. `by` is at most
  // kMostRebase (clock.h), and now().
  void rebase(Duration by);
  Time now() const { return now_; }
  // For a program that sleeps, after poll(): a completion that comes after this is told by the port's
  // events, once; those before it have been gone through. It takes no event of the port, since that could be
  // the one that is waited for.
  Outcome<void> arm();
  void look_next_time() { look_at_ = {}; }  // the port's events rang

  // --- what is going on ---
  // Of a received message that is not released. False: it was not traced.
  bool trace_of(const Message& message, Trace& out) const;
  // What took too long, oldest first (slow_log.h).
  bool next_slow(SlowEntry& out) { return slow_.next(out); }
  const SlowLog& slow_log() const { return slow_; }
  std::uint64_t clock_ns() const;  // of stamps and of the log
  // A parameter of params.h, if it may change in use.
  Result<void> set(std::string_view name, std::uint64_t value);
  std::uint64_t settings_changed() const { return settings_changed_; }  // so often
  const Config& config() const { return config_; }
  const ContextCounts& counts() const { return counts_; }
  const MemoryCounts& lent_memory() const { return lent_.counts(); }
  const MemoryCounts& own_memory() const { return own_.counts(); }
  const MemoryCache& lent_cache() const { return lent_; }
  const MemoryCache& own_cache() const { return own_; }
  std::uint32_t outstanding() const { return outstanding_; }
  // Nothing is left of connections that are over: what their READs were to fill is given back, too.
  bool buried() const { return graves_.empty(); }
  std::uint32_t open_channels() const {
    return config_.channels - static_cast<std::uint32_t>(free_.size() + left_.size());
  }
  const SharedQueue& shared_receives() const { return shared_; }
  std::uint32_t cached_qps() const { return static_cast<std::uint32_t>(idle_qps_.size()); }
  template <class See>
  void each_channel(See see) const {  // that is not over
    for (const Channel& c : channels_) {
      if (!c.over()) see(c);
    }
  }
  const Channel& channel_at(std::uint32_t index) const { return channels_[index]; }  // over or not
  static std::uint64_t bytes_per_channel(const Config& config);  // of an idle one, buffers aside
  void check_invariants() const;                                 // what window.h and channel.h draw; aborts

 private:
  enum class Work : std::uint8_t {
    kReceive = 1,
    kMessage = 2,
    kControl = 3,
    kRead = 4,
    kProbe = 5,
    kClose = 6
  };
  static constexpr std::uint32_t kBatch = 32;  // completions that are looked at together
  struct Call : Telling {
    Fate fate = Fate::kDelivered;
    bool busy = false;
    bool over = false;  // its outcome is in the line
    std::uint16_t turn = 0;
    std::uint32_t queued_ns = 0;  // of a traced request, until it left
    Channel* channel = nullptr;
    std::uint64_t cookie = 0;
    Time deadline = kNever;
    Time asked_at{};
    std::uint64_t left_ns = 0;  // when a traced request left; 0: it is not traced
  };
  static_assert(sizeof(Call) == 64);

  Context(VerbsPort& port, const Config& config, std::uint64_t seed, StreamPort* streams);
  Result<void> set_up();

  // context.cc
  void tell(Telling& telling, Telling::What what);
  void turn(bool looks);
  void look_ahead(std::uint32_t n) const;
  void look_at_batch();
  void completed(const Completion& c);
  void shared_came(std::uint32_t slot, const Completion& done);
  // queue_pairs.cc
  void bury();
  bool has_ripe_graves() const;
  void leave_qp(Channel& c);
  void give_body(const Channel& c, Message& body);
  void last_receive(Qpn qpn);
  Outcome<Qpn> take_qp(const Channel& c);
  Outcome<Qpn> take_or_make_qp(bool goes_on);
  void check_shared() const;
  Channel* by_qpn(Qpn qpn);
  const Channel* by_qpn(Qpn qpn) const { return const_cast<Context*>(this)->by_qpn(qpn); }
  template <class WorkId>
  bool takes_shared(const WorkId& id) const {
    return shared_.on() && static_cast<Work>(id.work) == Work::kReceive;
  }
  // Messages of a channel whose blocks nobody else may use yet.
  static std::uint32_t messages_here(const Channel& c) {
    return c.rx.held + static_cast<std::uint32_t>(c.rx.wta - c.rx.handed);
  }
  // What a work request is told by: work 4 bits, life 12, channel 20, and 28 of its own.
  static std::uint64_t work_id(Work work, const Channel& c, std::uint32_t arg) {
    return static_cast<std::uint64_t>(work) << 60U | std::uint64_t{c.life & 0xFFFU} << 48U |
           std::uint64_t{c.index} << 28U | arg;
  }
  // life.cc
  void look();
  void look_at_port();
  void meet_early(Channel& c);
  void happened(const PortEvent& e);
  void asked(const PortEvent& e);
  Refusal resume(Channel* c, const Hello& theirs);
  void established(Channel& c, const PortEvent& e);
  void rejected(Channel& c, const PortEvent& e);
  void reject(ConnectionId connection, Refusal why);
  Channel* take_channel();
  void connect_by(Channel& c, ConnectionId id);
  void forget_connection(Channel& c);
  Channel* by_connection(ConnectionId id);
  Channel* by_session(const SessionName& name);
  bool furnish(Channel& c);
  bool dial(Channel& c);
  Reason answer_call(Channel& c);
  Hello hello_of(const Channel& c, bool continues) const;
  static bool can_go_on(const Channel& c, const Hello& theirs);
  bool agree(Channel& c, const Hello& theirs, std::uint64_t told);
  void opened(Channel& c);
  void hang_up(Channel& c);
  void fail_channel(Channel& c, Reason reason);
  void violated(Channel& c);
  void finish(Channel& c, Reason reason);
  void farewell(Channel& c);
  void give_up_messages(Channel& c);
  void maybe_leave(Channel& c);
  void free_those_that_left();
  // A block of lent_, and its hold on memory of the program's.
  void give_lent(Message* m) {
    if (m->outside != nullptr) [[unlikely]] {
      for (const Part& p : parts_of(*m)) --p.memory->messages;
      m->outside = nullptr;
      lent_.restore(*m);
    }
    lent_.give(m);
  }
  // send.cc
  Outcome<void> may_send(const Channel& c, Message* m, std::uint32_t most_waiting);
  void submit(Channel& c, Message* m, bool tell_delivery);
  static void unqueue(Channel& c, Message* m);
  bool may_post(const Channel& c) const;
  static void give_number(Channel& c, Message& m);
  // Whatever may leave now. Mostly there is nothing.
  void pump(Channel& c) {
    if (c.waiting != 0 || c.tx.again != 0 || c.state == Channel::State::kClosing) pump_on(c);
  }
  void pump_on(Channel& c);
  void ring() {
    if (posted_) port_.ring();
    posted_ = false;
  }
  bool post_message(Channel& c, Message& m);
  void announce(Channel& c, Message& m, std::uint32_t ahead);
  std::span<const Sge> gather_list(Message& m, std::uint32_t ahead);
  bool post_control(Channel& c, Kind kind, Role role = Role::kPlain);
  std::uint32_t immediate(Channel& c, Kind kind, Role role, bool head, std::uint64_t number);
  bool post(Channel& c, SendWr& wr, Work work, std::uint32_t number, bool signaled);
  // What the peer's program has taken is done with, and free, when the device is done with it, too: after a
  // lost transport acknowledgement the device may still send it again.
  void taken_up_to(Channel& c, std::uint64_t number) {
    const std::uint64_t before = c.tx.acked();
    c.tx.taken = number;
    if (c.tx.acked() != before) settle_from(c, before);
  }
  void completed_up_to(Channel& c, std::uint64_t number) {
    const std::uint64_t before = c.tx.acked();
    c.tx.complete = number;
    if (c.tx.acked() != before) settle_from(c, before);
  }
  void settle_from(Channel& c, std::uint64_t number);
  void settle(Message& m, Fate fate);
  Call* find_call(CallId id);
  void settle_call(Call& call, Fate fate);
  void free_call(Call& call);
  // receive.cc
  void post_receive(Channel& c, Message& m);
  // False: the block is nobody's, and may serve again.
  bool frame_came(Channel& c, Message& m, const Completion& done);
  bool heed(Channel& c, const Immediate& i, std::uint64_t& news);
  bool message_came(Channel& c, Message& m, const Immediate& i, std::uint32_t bytes, Message* body);
  bool control_came(Channel& c, const Immediate& i, std::uint64_t news);
  void hand_over(Channel& c);
  void take_back(Channel& c, Message& m);
  void drop_received(Message& m);
  // stream.cc
  enum class Begun : std::uint8_t { kYes, kNot, kHungry };
  bool streaming() const { return streams_ != nullptr && carried_ != 0; }  // strangers wait for look()
  static bool still_on(const Channel& c, StreamId stream) {
    return c.carried != nullptr && c.carried->stream == stream;
  }
  void stream_turn();
  void stream_happened(const StreamEvent& e);
  void enlist(Channel& c);
  void forget_stranger(std::size_t i);
  void hear_stranger(std::size_t i);
  void stranger_asked(const Stranger& s);
  bool attach(Channel& c, StreamId stream);
  bool dial_stream(Channel& c);
  void put_hello(Channel& c);
  void forget_fetches(Channel& c);
  bool greeted(Channel& c);
  void end_stream(Channel& c);
  void push(Channel& c);
  bool stream_message(Channel& c, Message& m);
  bool stream_control(Channel& c, Kind kind, Role role);
  void read_stream(Channel& c);
  bool take_in(Channel& c, StreamId stream);
  Begun frame_begins(Channel& c);
  Begun go_hungry(Channel& c);
  bool frame_ended(Channel& c);
  // moving.cc
  bool can_move(const Channel& c) const;
  bool no_time_for_two(const Channel& c) const;
  void want(Channel& c, Carrier to);
  bool ask_to_move(Channel& c, bool command);
  void peer_moves(Channel& c, bool command);
  void change_over(Channel& c, Carrier to);
  void cool_down(Channel& c);
  void choose_carrier(Channel& c, bool was_open);
  Duration attempt_time(const Channel& c) const;
  void carrier_opened(Channel& c, bool again);
  void time_message(Channel& c, const Message& m);
  Time too_slow_at(const Channel& c) const;
  void judge_time(Channel& c, bool complete);
  // filter.cc
  enum class Filtered : std::uint8_t { kPass, kLater, kDrop, kFail };
  Filtered filter(Channel& c, std::uint64_t number);
  // fetch.cc
  void join_fetching(Channel& c) {
    if (c.unasked != 0) get_in_line(c);
  }
  static std::uint32_t count_unasked(const Channel& c);
  void get_in_line(Channel& c);
  void leave_line(Channel& c);
  void leave_fetching(Channel& c);
  void fetch();
  bool fetch_one(Channel& c);
  void fetched(Channel& c, std::uint32_t wire_number);
  // trace.cc
  struct ClockStamps {
    std::uint64_t t1, t2, t3, t4;
  };
  class Section {  // from here to its end is one part of the turn
   public:
    Section(Context& c, Place place) : c_(c), place_(place), began_(c.timing_ ? c.clock_ns() : 0) {}
    ~Section() {
      if (began_ != 0) c_.section_ended(place_, began_);
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    Context& c_;
    Place place_;
    std::uint64_t began_;
  };
  static void note(Message& m, std::uint64_t trace, std::uint64_t arrived);
  void sample(Message& m, std::uint32_t low);
  static void trace_answer(const Message& request, Message& m);
  void stamp(Channel& c, Message& m, Head& head);
  bool stamps_came(Message& m, const Head& head);
  void way_known(Channel& c, Message& m);
  void answer_known(Channel& c, Message& m, const Call& call);
  void begin_clock(Channel& c);
  void ask_clock(Channel& c);
  void send_clock(Channel& c, std::uint64_t asked, std::uint64_t arrived);
  static ClockStamps clock_stamps(const Message& m);
  void clock_came(Channel& c, const ClockStamps& s);
  void poll_was_late(Duration gap);
  void section_ended(Place place, std::uint64_t began_ns);
  void analysis_changed() {
    sampling_ = config_.trace_mask;
    timing_ = config_.clock != nullptr && config_.slow.ps != 0;
  }
  // timers.cc
  void arm(Channel& c, Time at) { channel_times_.at_latest(c.index, at); }
  void timers();
  template <class Late>
  void fire(Row& row, Late late);
  void owe_ack(Channel& c) {
    if (!c.in_owed) owed_.put(c.index, now_.after(config_.ack_delay));
    c.in_owed = true;
  }
  void await_ack(Channel& c) {
    nops_.put(c.index, now_.after(config_.patience));
    c.in_nops = true;
  }
  void leave_rows(Channel& c);
  // May frames that are no messages leave? After its last frame a channel says nothing.
  static bool speaks(const Channel& c) {
    return c.state == Channel::State::kOpen || (c.state == Channel::State::kClosing && !c.close_sent);
  }
  void ack_late(Channel& c);
  void ask_by_nop(Channel& c);
  void channel_time(Channel& c);
  Time due(const Channel& c) const;
  Time next_time() const {
    return std::min({owed_.next(), nops_.next(), channel_times_.next(), call_times_.next()});
  }

  VerbsPort& port_;
  StreamPort* streams_;
  Config config_;
  std::uint64_t settings_changed_ = 0;
  Prng random_;
  Prng filter_random_;
  MemoryCache lent_;  // what is sent: peers may read it with its key
  MemoryCache own_;   // what is received: nobody else's
  std::vector<std::unique_ptr<Registered>> registered_;
  std::array<Sge, 1 + kMostPieces> gathered_;  // the last gather list
  SendWr frame_wr_;                            // of the last frame; it is always a SEND with an immediate
  CqId cq_{};
  bool have_cq_ = false;
  std::uint32_t inline_ = 0;
  std::uint32_t sq_ = 0;        // entries of a send queue
  std::uint32_t slots_ = 0;     // receives of a channel
  std::uint32_t most_qps_ = 0;  // that the completion queue has room for
  SharedQueue shared_;
  Time now_{};
  Time polled_{};
  bool behind_ = false;         // completions are left from the last turn
  bool met_early_ = false;      // events of the port were taken out of their turn since the last look
  bool posted_ = false;         // something was posted since the port was rung
  bool slept_ = false;          // the program may have slept since the last poll
  bool timing_ = false;         // parts of the turn are timed
  std::uint64_t sampling_ = 0;  // the mask, as far as it has gone round
  std::array<Completion, kBatch> batch_;
  std::uint32_t batch_at_ = 0;  // of these the next to be looked at
  std::uint32_t batch_end_ = 0;
  Time look_at_{};
  std::vector<PortEvent> put_off_;  // events of the port, older than those it still has
  Time shrink_at_{};
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> left_;  // free at the next turn, when the program has seen their end
  std::vector<Call> calls_;
  std::vector<std::uint16_t> free_calls_;
  IdleQps idle_qps_;
  // A queue pair whose connection is over: messages that were here of its channel, and the turn after which
  // nothing more of it comes.
  struct Grave {
    Qpn qpn = kNoQpn;
    std::uint32_t here = 0;
    std::uint64_t ripe = 0;
    std::uint32_t channel = 0;
    Message* bodies = nullptr;  // into which its READs may place bytes until it is buried
  };
  static constexpr std::uint64_t kNotYet = UINT64_MAX;
  std::vector<Grave> graves_;
  std::uint64_t turn_ = 0;
  std::uint32_t busy_qps_ = 0;  // in channels and in graves; each may fill its share of the completion queue
  // Not tsl::robin_map: its static would be shared by the programs that link this library.
  std::unordered_map<ConnectionId, std::uint32_t, ConnectionHash> by_connection_;  // indexes of channels
  std::unordered_map<Qpn, std::uint32_t, QpnHash> by_qpn_;                  // of those that share receives
  std::unordered_map<SessionName, std::uint32_t, SessionHash> by_session_;  // those that a peer asked for
  Row owed_;                 // acknowledgements: ack_delay after something was taken
  Row nops_;                 // patience after an early ACK that left messages in flight
  Deadlines channel_times_;  // everything else of a channel
  Deadlines call_times_;
  Telling* line_ = nullptr;
  Telling* line_end_ = nullptr;
  Channel* fetching_ = nullptr;
  Channel* fetching_end_ = nullptr;
  std::uint32_t outstanding_ = 0;
  std::vector<Stranger> strangers_;
  std::vector<std::uint32_t> readable_;  // channels whose streams may have something to read
  std::size_t read_ = 0;                 // of these, in a turn that goes on or ended for want of memory
  Channel* timed_ = nullptr;             // whose deadline was met in such a turn
  std::uint32_t carried_ = 0;            // channels that have a stream
  std::uint32_t slow_polls_ = 0;         // polls that came too late to time a message
  ContextCounts counts_;
  std::uint64_t trace_tag_ = 0;  // in the numbers of this context's traces; the lower 33 bits are zero
  std::uint64_t back_ns_ = 0;    // by which the clock went back
  std::int64_t back_ps_ = 0;
  SlowLog slow_;
};

}  // namespace weft::channel
