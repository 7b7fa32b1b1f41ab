// The C interface (weft/channel.h) over the middleware and libibverbs: translation, the clock, and sleeping.
// Nothing is decided here.
#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "channel/context.h"
#include "channel/report.h"
#include "channel_c/administered.h"
#include "channel_c/clock.h"
#include "channel_c/pages.h"
#include "channel_c/publisher.h"
#include "channel_c/tcp.h"
#include "channel_c/weft/channel.h"
#include "live/wires/entropy.h"
#include "verbs_port/verbs_port.h"

using weft::Errc;
using weft::Time;
using weft::channel::Channel;
using weft::channel::Config;
using weft::channel::Context;
using weft::channel::Message;
using weft::channel::Notice;

struct weft_context {
  weft::channel::Clock clock{std::chrono::steady_clock::now()};
  Time now() {
    return clock.at(std::chrono::steady_clock::now(), [this](weft::Duration by) {
      if (context != nullptr) context->rebase(by);
      if (publisher != nullptr) publisher->rebase(by);
      if (administered != nullptr) administered->rebase(by);
    });
  }
  std::unique_ptr<weft::IbverbsPort> port;
  std::unique_ptr<weft::channel::TcpPort> tcp;
  std::unique_ptr<Context> context;
  std::unique_ptr<weft::channel::Publisher> publisher;
  std::unique_ptr<weft::channel::Administered> administered;
  // The rest of a turn: what an administrator wants, and what others may see.
  void tend(Time at, bool before_sleep) {
    if (before_sleep) {
      administered->look(at);
    } else {
      administered->turn(at);
    }
    publisher->administered(administered->file(), administered->version(), administered->refused());
    publisher->turn(at);
  }
  weft::channel::Owner owner;
  Notice kept;  // taken, but there was no room for it
  bool has_kept = false;
};

namespace {

constexpr std::chrono::microseconds kSpin{50};  // of weft_wait, before it sleeps

// The name of a session is its only proof, so the kernel draws it.
std::uint64_t random_name() { return weft::live::unpredictable<std::uint64_t>(); }

int number(Errc e) {
  switch (e) {
    case Errc::kBusy:
      return EAGAIN;
    case Errc::kNoMemory:
      return ENOMEM;
    case Errc::kNotFound:
      return ENOENT;
    case Errc::kUnsupported:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
}
template <class T>
int number(const weft::Outcome<T>& o) {
  return o ? 0 : number(o.error());
}

void say(std::string_view sentence, char* why, std::size_t room) {
  if (why == nullptr || room == 0) return;
  const std::size_t n = std::min(room - 1, sentence.size());
  std::memcpy(why, sentence.data(), n);
  why[n] = '\0';
}

// No exception leaves: there is no memory, and a call that can fail says so.
template <class Call>
int at_edge(const Call& call, char* why = nullptr, std::size_t room = 0) {
  try {
    return call();
  } catch (const std::exception&) {
    say("there is no memory", why, room);
    return ENOMEM;
  }
}

// What this library knows of a struct of the program's that has `size` bytes. A program that is newer than
// the library has fields that nobody fills: they are 0.
template <class Known>
void give(const Known& known, void* out, std::size_t size) {
  std::memcpy(out, &known, std::min(size, sizeof known));
  if (size > sizeof known) std::memset(static_cast<char*>(out) + sizeof known, 0, size - sizeof known);
}

std::uint64_t steady_ns(void*) {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// Pointers of C are those of the library under other names.
Channel* of(weft_channel* c) { return reinterpret_cast<Channel*>(c); }
const Channel* of(const weft_channel* c) { return reinterpret_cast<const Channel*>(c); }
Message* of(weft_message* m) { return reinterpret_cast<Message*>(m); }
const Message* of(const weft_message* m) { return reinterpret_cast<const Message*>(m); }
weft_channel* to(Channel* c) { return reinterpret_cast<weft_channel*>(c); }
weft_message* to(Message* m) { return reinterpret_cast<weft_message*>(m); }

constexpr const char* kInherited =
    "this context is of the process that forked; a child opens one of its own, or ends";
bool inherited(const weft_context* c) { return c->owner.inherited(); }
bool inherited(const weft_channel* c) {
  return inherited(static_cast<const weft_context*>(of(c)->context->config().program));
}

// A call in a child of the process that made the context is refused.
template <class Of, class Call>
int at_edge_of(const Of* c, const Call& call, char* why = nullptr, std::size_t room = 0) {
  if (!inherited(c)) return at_edge(call, why, room);
  say(kInherited, why, room);
  return ECHILD;
}

// The context of a channel, for a call that sets a deadline: it knows the time.
Context& timely(weft_channel* c) {
  Context& context = *of(c)->context;
  context.at(static_cast<weft_context*>(context.config().program)->now());
  return context;
}

void fill(const Notice& n, weft_notice& out) {
  out = {};
  out.kind = static_cast<int>(n.kind);
  out.fate = static_cast<int>(n.fate);
  out.status = n.message != nullptr ? n.message->status : 0;
  out.channel = to(n.channel);
  out.message = to(n.message);
  out.user = n.cookie;
  out.why = n.kind == Notice::Kind::kClosed ? weft::channel::sentence(n.reason) : nullptr;
}

static_assert(int{WEFT_ASKED} == static_cast<int>(Notice::Kind::kAsked) &&
              int{WEFT_RESPONSE} == static_cast<int>(Notice::Kind::kResponse) &&
              int{WEFT_CLOSED} == static_cast<int>(Notice::Kind::kClosed));
static_assert(int{WEFT_DELIVERED} == static_cast<int>(weft::channel::Fate::kDelivered) &&
              int{WEFT_CANCELLED} == static_cast<int>(weft::channel::Fate::kCancelled));

// Defaults where a real network differs from virtual time: a look costs system calls, frames are long.
Config live_config() {
  Config c;
  c.look = weft::milliseconds(1);
  c.terms.mtu = 4096;
  c.pages = {weft::channel::map_pages, weft::channel::unmap_pages};
  c.channels = 256;
  return c;
}

int open_context(weft_context** out, const char* device, const char* const* parameters, char* why,
                 std::size_t room) {
  Config config = live_config();
  for (; parameters != nullptr && *parameters != nullptr; ++parameters) {
    if (const auto set = set_param(config, *parameters); !set) {
      say(set.error().message, why, room);
      return EINVAL;
    }
  }
  auto made = std::make_unique<weft_context>();
  if (config.fork_safe && !(weft::keep_memory_from_children() && made->owner.mark())) {
    say("fork_safe = 1: memory is registered already, or the kernel cannot keep it from children; open this "
        "context before anything else uses RDMA",
        why, room);
    return EINVAL;
  }
  auto port = weft::open_ibverbs(device != nullptr ? device : "");
  if (!port) {
    say(port.error().message, why, room);
    return ENODEV;
  }
  made->port = std::move(*port);
  config.draw = random_name;
  config.program = made.get();
  config.clock = steady_ns;
  auto tcp = weft::channel::TcpPort::open(made->port->facts().address);
  if (!tcp || !made->port->watch((*tcp)->event_fd())) {
    say(tcp ? "the kernel has no room to watch TCP beside the device" : tcp.error().message, why, room);
    return ENOMEM;
  }
  made->tcp = std::move(*tcp);
  auto context = Context::open(*made->port, config, random_name(), made->tcp.get());
  if (!context) {
    say(context.error().message, why, room);
    return ENOMEM;
  }
  made->context = std::move(*context);
  made->publisher = std::make_unique<weft::channel::Publisher>(*made->context);
  made->administered = std::make_unique<weft::channel::Administered>(*made->context);
  const int watch = made->administered->fd();
  if (watch >= 0 && !made->port->watch(watch)) {
    say("the kernel has no room to watch the parameters' file; WEFT_PARAMETERS=0 does without", why, room);
    return ENOMEM;
  }
  made->administered->look(made->now());
  made->context->poll(made->now());
  *out = made.release();
  return 0;
}

}  // namespace

int weft_open(weft_context** out, const char* device, const char* const* parameters, char* why, size_t room) {
  return at_edge([&] { return open_context(out, device, parameters, why, room); }, why, room);
}

void weft_free(weft_context* c) {
  if (c == nullptr || c->owner.inherited()) return;  // the kernel gives a child's copy back
  c->administered.reset();
  c->publisher.reset();
  c->context.reset();
  delete c;
}

int weft_set(weft_context* c, const char* name, uint64_t value, char* why, size_t room) {
  const auto call = [&] {
    const auto set = c->context->set(name, value);
    if (set) return 0;
    say(set.error().message, why, room);
    const auto* const p = weft::channel::find_param(name);
    return p != nullptr && !p->online ? EBUSY : EINVAL;
  };
  return at_edge_of(c, call, why, room);
}

int weft_get(const weft_context* c, const char* name, uint64_t* value) {
  const auto* const p = weft::channel::find_param(name);
  if (p == nullptr) return ENOENT;
  *value = p->get(c->context->config());
  return 0;
}

const char* weft_parameter(unsigned index, const char** meaning, int* online) {
  const auto all = weft::channel::params();
  if (index >= all.size()) return nullptr;
  if (meaning != nullptr) *meaning = all[index].meaning;
  if (online != nullptr) *online = all[index].online ? 1 : 0;
  return all[index].name;
}

weft_message* weft_allocate(weft_context* c, uint32_t length) {
  weft_message* m = nullptr;
  (void)at_edge_of(c, [&] { return m = to(c->context->allocate(length)), 0; });
  return m;
}
void weft_release(weft_context* c, weft_message* m) {
  (void)at_edge_of(c, [&] { return c->context->release(of(m)), 0; });
}
void* weft_data(weft_message* m) { return of(m)->data; }
uint32_t weft_length(const weft_message* m) { return of(m)->length; }
int weft_shorten(weft_message* m, uint32_t length) {
  if (length > of(m)->length) return EINVAL;
  of(m)->length = length;
  return 0;
}
int weft_reserve(weft_context* c, uint32_t length, uint32_t count) {
  return at_edge_of(c, [&] { return c->context->reserve(length, count) ? 0 : ENOMEM; });
}

int weft_register(weft_context* c, void* at, size_t length, weft_memory** out) {
  return at_edge_of(c, [&] {
    const auto made = c->context->register_memory({static_cast<std::uint8_t*>(at), length});
    if (made) *out = reinterpret_cast<weft_memory*>(*made);
    return number(made);
  });
}
int weft_deregister(weft_context* c, weft_memory* m) {
  return at_edge_of(c, [&] {
    const auto gone = c->context->deregister_memory(*reinterpret_cast<weft::channel::Registered*>(m));
    return !gone && gone.error() == Errc::kBusy ? EBUSY : number(gone);
  });
}
weft_message* weft_wrap(weft_context* c, weft_memory* memory, uint64_t offset, uint32_t length) {
  weft_message* m = nullptr;
  (void)at_edge_of(c, [&] {
    m = to(c->context->wrap(*reinterpret_cast<weft::channel::Registered*>(memory), offset, length));
    return 0;
  });
  return m;
}

int weft_listen(weft_context* c, uint16_t service) {
  return at_edge_of(c, [&] { return number(c->context->listen(service)); });
}

int weft_connect(weft_context* c, const char* address, uint16_t service, uint64_t user, weft_channel** out) {
  in_addr in{};
  if (inet_pton(AF_INET, address, &in) != 1) return EINVAL;
  std::uint8_t b[4];
  std::memcpy(b, &in, sizeof b);
  return at_edge_of(c, [&] {
    c->context->at(c->now());
    const auto made = c->context->connect(weft::wire::Address::v4(b[0], b[1], b[2], b[3]), service, user);
    if (made) *out = to(*made);
    return number(made);
  });
}

int weft_peer(const weft_channel* c, char* address, size_t room) {
  return at_edge_of(c, [&] {
    const auto& bytes = of(c)->peer.bytes;
    const std::string text = std::to_string(bytes[12]) + "." + std::to_string(bytes[13]) + "." +
                             std::to_string(bytes[14]) + "." + std::to_string(bytes[15]);
    if (text.size() >= room) return ENOSPC;
    say(text, address, room);
    return 0;
  });
}
void weft_accept(weft_channel* c, uint64_t user) {
  (void)at_edge_of(c, [&] { return timely(c).accept(*of(c), user), 0; });
}
void weft_refuse(weft_channel* c) {
  (void)at_edge_of(c, [&] { return of(c)->context->refuse(*of(c)), 0; });
}
void weft_close(weft_channel* c) {
  (void)at_edge_of(c, [&] { return timely(c).close(*of(c)), 0; });
}
void weft_abort(weft_channel* c) {
  (void)at_edge_of(c, [&] { return of(c)->context->abort(*of(c)), 0; });
}

int weft_move(weft_channel* c, int carrier) {
  if (carrier != WEFT_RDMA && carrier != WEFT_TCP) return EINVAL;
  return at_edge_of(c, [&] {
    const auto to = carrier == WEFT_TCP ? weft::channel::Carrier::kTcp : weft::channel::Carrier::kRdma;
    return number(timely(c).move(*of(c), to));
  });
}

int weft_send(weft_channel* c, weft_message* m, uint64_t user, int flags) {
  return at_edge_of(
      c, [&] { return number(of(c)->context->send(*of(c), of(m), user, (flags & WEFT_TELL) != 0)); });
}
int weft_call(weft_channel* c, weft_message* m, uint64_t user, uint64_t timeout_us, uint32_t* id) {
  return at_edge_of(c, [&] {
    Context& context = timely(c);
    const auto wait = std::min<std::uint64_t>(timeout_us, INT64_MAX / 1'000'000);
    const Time deadline = timeout_us == 0
                              ? weft::kNever
                              : context.now().after(weft::microseconds(static_cast<std::int64_t>(wait)));
    const auto made = context.call(*of(c), of(m), user, deadline);
    if (made && id != nullptr) *id = made->v;
    return number(made);
  });
}
int weft_answer(weft_message* request, weft_message* response, uint32_t status, uint64_t user) {
  return at_edge_of(to(of(request)->channel), [&] {
    return number(of(request)->channel->context->answer(*of(request), of(response), status, user));
  });
}
int weft_cancel(weft_context* c, uint32_t id) {
  return at_edge_of(c, [&] { return c->context->cancel({id}) ? 0 : ENOENT; });
}

int weft_poll(weft_context* c, weft_notice* notices, int room) {
  int n = 0;
  (void)at_edge_of(c, [&] { return c->context->poll(c->now()), 0; });
  (void)at_edge_of(c, [&] {  // what was seen is told whether or not all of it could be looked at
    if (c->has_kept && n < room) {
      fill(c->kept, notices[n++]);
      c->has_kept = false;
    }
    for (Notice told; n < room && c->context->next(told);) fill(told, notices[n++]);
    return 0;
  });
  (void)at_edge_of(c, [&] { return c->tend(c->context->now(), false), 0; });
  return n;
}

int weft_event_fd(const weft_context* c) { return c->port->event_fd(); }

int weft_arm(weft_context* c, uint64_t* sleep_us) {
  if (sleep_us != nullptr) *sleep_us = 1000;  // without memory: look again soon
  (void)at_edge_of(c, [&] {
    const Time now = c->now();
    c->context->look_next_time();
    c->context->poll(now);
    (void)c->context->arm();
    if (!c->has_kept) c->has_kept = c->context->next(c->kept);
    c->tend(now, true);
    Time wake = c->context->next_wake();
    if (c->publisher->behind()) wake = std::min(wake, now.after(weft::milliseconds(2)));
    if (sleep_us != nullptr)
      *sleep_us = wake == weft::kNever ? UINT64_MAX
                  : wake <= now        ? 0
                                       : static_cast<std::uint64_t>((wake - now).us()) + 1;
    return 0;
  });
  return c->has_kept ? 1 : 0;
}

int weft_wait(weft_context* c, weft_notice* notices, int room, int timeout_ms) {
  const auto begin = std::chrono::steady_clock::now();
  int n = weft_poll(c, notices, room);
  if (room <= 0 || inherited(c)) return 0;  // nothing can be told, however long it waits
  while (n == 0 && std::chrono::steady_clock::now() - begin < kSpin) n = weft_poll(c, notices, room);
  while (n == 0) {
    std::uint64_t sleep_us = 0;
    if (weft_arm(c, &sleep_us) == 0) {
      const auto gone =
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin)
              .count();
      if (timeout_ms >= 0 && gone >= timeout_ms) return 0;
      const auto left = timeout_ms < 0 ? std::int64_t{3'600'000} : timeout_ms - gone;
      const auto nap = static_cast<std::int64_t>(std::min<std::uint64_t>(sleep_us / 1000, 3'600'000));
      pollfd rings{weft_event_fd(c), POLLIN, 0};
      (void)poll(&rings, 1, static_cast<int>(std::min<std::int64_t>(left, nap)));
      c->context->look_next_time();
    }
    n = weft_poll(c, notices, room);
  }
  return n;
}

void weft_counts(const weft_channel* channel, weft_channel_counts* out, size_t size) {
  const Channel& c = *of(channel);
  weft_channel_counts all{};
  all.sent = c.counts.sent;
  all.sent_bytes = c.counts.sent_bytes;
  all.received = c.counts.received;
  all.received_bytes = c.counts.received_bytes;
  all.acks = c.counts.acks;
  all.nops = c.counts.nops;
  all.probes = c.counts.probes;
  all.fragments = c.counts.fragments;
  all.waited = c.counts.waited;
  all.reconnects = c.counts.reconnects;
  const weft::channel::ChannelStat s = stat_of(c);
  all.in_flight = s.in_flight;
  all.queued = s.queued;
  all.held = s.held;
  all.calls = s.calls;
  all.rtt_last_ns = static_cast<std::uint64_t>(s.round_trips.last.ns());
  all.rtt_least_ns = static_cast<std::uint64_t>(s.round_trips.least.ns());
  all.rtt_smoothed_ns = static_cast<std::uint64_t>(s.round_trips.smoothed.ns());
  all.rtt_count = s.round_trips.count;
  all.carrier = c.carrier == weft::channel::Carrier::kTcp ? WEFT_TCP : WEFT_RDMA;
  all.moves = c.counts.moves;
  give(all, out, size);
}

size_t weft_report(const weft_context* c, char* out, size_t room) {
  std::size_t length = 0;
  const auto call = [&] {
    const std::string page = report(*c->context);
    say(page, out, room);
    length = page.size();
    return 0;
  };
  (void)at_edge_of(c, call, out, room);
  return length;
}

int weft_trace(const weft_message* m, weft_message_trace* out, size_t size) {
  weft::channel::Trace t;
  if (of(m)->channel != nullptr && inherited(to(of(m)->channel))) return ECHILD;
  if (of(m)->channel == nullptr || !of(m)->channel->context->trace_of(*of(m), t)) return ENOENT;
  weft_message_trace all{};
  all.id = t.id;
  all.left_ns = t.left_ns;
  all.arrived_ns = t.arrived_ns;
  all.offset_known = t.offset_known ? 1 : 0;
  if (t.offset_known) {
    all.offset_ns = t.offset_ns;
    all.network_ns = t.network_ns;
    all.error_ns = t.error_ns;
  }
  all.queued_ns = t.queued_ns;
  all.round_ns = t.round_ns;
  all.there_ns = t.there_ns;
  all.response = t.response ? 1 : 0;
  give(all, out, size);
  return 0;
}

size_t weft_slow(weft_context* c, char* out, size_t room) {
  std::size_t length = 0;
  const auto call = [&] {
    weft::channel::SlowEntry e;
    if (!c->context->next_slow(e)) return 0;
    const std::string line = sentence(e);
    say(line, out, room);
    length = line.size();
    return 0;
  };
  (void)at_edge_of(c, call, out, room);
  return length;
}
