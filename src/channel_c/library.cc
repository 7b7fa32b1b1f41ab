// The C interface (weft/channel.h) over the middleware and libibverbs: translation and the clock.
// Nothing is decided here.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "channel/context.h"
#include "channel_c/administered.h"
#include "channel_c/edge.h"
#include "channel_c/pages.h"
#include "channel_c/publisher.h"
#include "channel_c/tcp.h"
#include "channel_c/weft/channel.h"
#include "live/wires/entropy.h"

using weft::Errc;
using weft::Time;
using namespace weft::channel;

namespace {

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

std::uint64_t steady_ns(void*) {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// A call that sends, whose outcome a program that waits expects soon.
template <class T>
int sent(const Channel& c, const weft::Outcome<T>& outcome) {
  static_cast<weft_context*>(c.context->config().program)->waiting.sent();
  return number(outcome);
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
  c.pages = {weft::channel::map_memory, weft::channel::unmap_memory};
  c.channels = 256;
  c.pieces = weft::channel::kMostPieces;
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
  made->publisher = std::make_unique<weft::channel::Publisher>(*made->context, made->waiting);
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
  const weft_piece all{memory, offset, length, 0};
  return weft_gather(c, &all, 1);
}
weft_message* weft_gather(weft_context* c, const weft_piece* pieces, unsigned count) {
  weft_message* m = nullptr;
  (void)at_edge_of(c, [&] {
    std::array<weft::channel::Part, weft::channel::kMostPieces> parts;
    if (count > parts.size()) return EINVAL;
    for (unsigned i = 0; i < count; ++i) {
      auto* const memory = reinterpret_cast<weft::channel::Registered*>(pieces[i].memory);
      parts[i] = {memory, pieces[i].offset, pieces[i].length};
    }
    m = to(c->context->gather({parts.data(), count}));
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
      c, [&] { return sent(*of(c), of(c)->context->send(*of(c), of(m), user, (flags & WEFT_TELL) != 0)); });
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
    return sent(*of(c), made);
  });
}
int weft_answer(weft_message* request, weft_message* response, uint32_t status, uint64_t user) {
  return at_edge_of(to(of(request)->channel), [&] {
    Channel& c = *of(request)->channel;
    return sent(c, c.context->answer(*of(request), of(response), status, user));
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
