#include "channel/params.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace weft::channel {
namespace {

template <auto Field>
std::uint64_t get_number(const Config& c) {
  return c.*Field;
}
template <auto Field>
void set_number(Config& c, std::uint64_t v) {
  c.*Field = static_cast<std::uint32_t>(std::min<std::uint64_t>(v, UINT32_MAX));
}
template <auto Field>
std::uint64_t get_bytes(const Config& c) {
  return (c.*Field).n;
}
template <auto Field>
void set_bytes(Config& c, std::uint64_t v) {
  (c.*Field).n = v;
}
template <auto Field>
std::uint64_t get_mask(const Config& c) {
  return c.*Field;
}
template <auto Field>
void set_mask(Config& c, std::uint64_t v) {
  c.*Field = v;
}
constexpr std::uint64_t kMostTime = 1'000'000'000;  // in any unit here: durations stay far from overflow
template <auto Field>
std::uint64_t get_us(const Config& c) {
  return static_cast<std::uint64_t>((c.*Field).us());
}
template <auto Field>
void set_us(Config& c, std::uint64_t v) {
  c.*Field = microseconds(static_cast<std::int64_t>(std::min(v, kMostTime)));
}
template <auto Field>
std::uint64_t get_ms(const Config& c) {
  return static_cast<std::uint64_t>((c.*Field).us() / 1000);
}
template <auto Field>
void set_ms(Config& c, std::uint64_t v) {
  c.*Field = milliseconds(static_cast<std::int64_t>(std::min(v, kMostTime)));
}

template <auto Field>
constexpr Param number(const char* name, const char* meaning) {
  return {name, meaning, false, get_number<Field>, set_number<Field>};
}
template <auto Field>
constexpr Param share(const char* name, const char* meaning) {
  return {name, meaning, true, get_number<Field>, set_number<Field>};
}
template <auto Field>
constexpr Param mask(const char* name, const char* meaning) {
  return {name, meaning, true, get_mask<Field>, set_mask<Field>};
}
template <auto Field>
constexpr Param bytes(const char* name, const char* meaning) {
  return {name, meaning, false, get_bytes<Field>, set_bytes<Field>};
}
template <auto Field>
constexpr Param micros(const char* name, const char* meaning) {
  return {name, meaning, true, get_us<Field>, set_us<Field>};
}
template <auto Field>
constexpr Param millis(const char* name, const char* meaning) {
  return {name, meaning, true, get_ms<Field>, set_ms<Field>};
}

void set_port(Config& c, std::uint64_t v) {
  c.tcp_port = static_cast<std::uint16_t>(std::min<std::uint64_t>(v, UINT16_MAX));
}
std::uint64_t get_port(const Config& c) { return c.tcp_port; }
void set_srq(Config& c, std::uint64_t v) { c.use_srq = v != 0; }
std::uint64_t get_srq(const Config& c) { return c.use_srq ? 1 : 0; }
void set_forks(Config& c, std::uint64_t v) { c.fork_safe = v != 0; }
std::uint64_t get_forks(const Config& c) { return c.fork_safe ? 1 : 0; }
void set_isolate(Config& c, std::uint64_t v) { c.isolate = v != 0; }
std::uint64_t get_isolate(const Config& c) { return c.isolate ? 1 : 0; }
void set_mode(Config& c, std::uint64_t v) {
  c.memory_mode = static_cast<MemoryMode>(
      std::min<std::uint64_t>(v, static_cast<std::uint64_t>(MemoryMode::kContiguous)));
}
std::uint64_t get_mode(const Config& c) { return static_cast<std::uint64_t>(c.memory_mode); }

constexpr Param kParams[] = {
    {"memory_mode",
     "of the memory cache: 0 the device's own, 1 anonymous pages, 2 huge pages, 3 malloc, 4 contiguous",
     false, get_mode, set_mode},
    {"isolate", "1: guards behind every message, holes around every region", false, get_isolate, set_isolate},
    {"fork_safe", "1: a child of this process may exist, and its calls are refused", false, get_forks,
     set_forks},
    {"use_srq", "1: the receives of all channels are one queue", false, get_srq, set_srq},
    number<&Config::srq_size>("srq_size", "entries of that queue"),
    number<&Config::cq_size>("cq_size", "entries of the completion queue; 0: as many as the channels need"),
    number<&Config::channels>("channels", "channels that are open at a time"),
    number<&Config::calls>("calls", "requests without an answer, all channels together"),
    number<&Config::depth>("depth", "messages in flight on a channel, each way"),
    number<&Config::queue>("queue", "messages of a channel that wait for the window"),
    number<&Config::small>("small_msg_size", "bytes; longer messages are announced and fetched"),
    number<&Config::largest>("largest", "bytes of the longest message that this end takes"),
    number<&Config::fragment>("fragment", "bytes of a fragment of a fetch"),
    number<&Config::outstanding>("outstanding", "fragments in flight, all channels together"),
    number<&Config::reads>("reads", "fragments in flight on one channel"),
    number<&Config::pieces>("pieces", "parts of a message that lies in the program's own memory"),
    number<&Config::cached_qps>("cached_qps", "queue pairs that wait for the next channel"),
    bytes<&Config::region>("region", "bytes of a region of the memory cache"),
    bytes<&Config::memory>("memory", "bytes registered at most, for sending and for receiving each"),
    micros<&Config::ack_delay>("ack_delay_us", "taken messages are told after this at the latest"),
    micros<&Config::patience>("nop_us", "without an acknowledgement, before a NOP"),
    millis<&Config::keepalive>("keepalive_intv_ms", "silence before a probe; 0: never"),
    millis<&Config::connecting>("connect_ms", "before an attempt to connect is given up"),
    millis<&Config::linger>("linger_ms", "a channel that closes waits so long for what is not yet taken"),
    millis<&Config::reconnect>("reconnect_ms",
                               "a session whose connection failed is kept so long; 0: not at all"),
    millis<&Config::redial>("redial_ms", "between attempts to reconnect"),
    millis<&Config::idle_memory>("idle_memory_ms", "an unused region is given back after this"),
    micros<&Config::look>("look_us", "between looks at what is not a completion"),
    micros<&Config::spin>(
        "spin_us", "weft_wait looks busily until nothing has happened for so long; 0: it sleeps at once"),
    {"tcp_port", "TCP port where sessions of this end may go on; 0: none", false, get_port, set_port},
    share<&Config::mock>("mock", "1: channels go over TCP; 0: over RDMA"),
    micros<&Config::mock_slow>("mock_slow_us",
                               "a message's time to the peer's device and back that is too slow; 0: none is"),
    millis<&Config::mock_slow_for>("mock_slow_ms", "too slow for so long, before a channel goes over TCP"),
    share<&Config::mock_redials>("mock_redials",
                                 "attempts to reconnect over RDMA before one over TCP; 0: all are over RDMA"),
    millis<&Config::mock_cool>("mock_cool_ms",
                               "before a channel that went over TCP by itself tries RDMA again; 0: never"),
    mask<&Config::trace_mask>("trace_sample_mask",
                              "its 64 bits go round, one for each message: 1 traces it; 0: none is traced"),
    millis<&Config::clock_interval>("clock_intv_ms", "between questions about a peer's clock, while tracing"),
    micros<&Config::slow>(
        "slow_threshold",
        "microseconds; what takes longer is logged: messages, requests, parts of the turn; 0: nothing"),
    micros<&Config::poll_warn>("polling_warn_cycle",
                               "microseconds; a longer time between two polls is logged; 0: none"),
    share<&Config::filter_drop>("filter_drop_ppm",
                                "of a million messages that come, so many are dropped on purpose"),
    share<&Config::filter_fail>("filter_fail_ppm",
                                "of a million messages that come, so many fail their connection"),
    micros<&Config::filter_delay>("filter_delay_us", "each message that comes is held up so long"),
};

// How many letters must be put in, left out or changed to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t k = 0; k <= b.size(); ++k) row[k] = k;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t changed = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = row[k];
      row[k] = std::min({changed, row[k] + 1, row[k - 1] + 1});
    }
  }
  return row[b.size()];
}

Result<void> set_and_check(Config& config, const Param& p, std::uint64_t value) {
  Config changed = config;
  p.set(changed, value);
  if (const auto sound = changed.validate(); !sound) return sound;
  if (p.get(changed) != value) {
    return fail(std::string(p.name) + " = " + std::to_string(value) + ": it must not be above " +
                std::to_string(p.get(changed)));
  }
  config = changed;
  return {};
}

}  // namespace

std::span<const Param> params() { return kParams; }

const Param* find_param(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kParams), std::end(kParams), [&](const Param& p) { return name == p.name; });
  return found == std::end(kParams) ? nullptr : found;
}

Result<const Param*> expect_param(std::string_view name) {
  if (const Param* const p = find_param(name); p != nullptr) return p;
  const std::string_view asked = name.substr(0, 64);
  const auto* const nearest = std::min_element(
      std::begin(kParams), std::end(kParams),
      [&](const Param& a, const Param& b) { return distance(asked, a.name) < distance(asked, b.name); });
  return fail("there is no parameter '" + std::string(asked) + "'; the nearest is '" + nearest->name + "'");
}

std::string offline_sentence(std::string_view name) {
  return std::string(name) + " is fixed when a context is made; it cannot change while the context is in use";
}

Result<void> set_param(Config& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const auto p = expect_param(name);
  if (!p) return tl::unexpected(p.error());
  const std::string_view text = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  std::uint64_t value = 0;
  const bool hex = text.starts_with("0x");
  const char* const begin = text.data() + (hex ? 2 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(std::string(name) + " = '" + std::string(text) + "': it must be a whole number");
  return set_and_check(config, **p, value);
}

Result<void> set_online(Config& config, std::string_view name, std::uint64_t value) {
  const auto p = expect_param(name);
  if (!p) return tl::unexpected(p.error());
  if (!(*p)->online) return fail(offline_sentence(name));
  return set_and_check(config, **p, value);
}

}  // namespace weft::channel
