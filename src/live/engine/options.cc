#include "live/engine/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/base/parse.h"
#include "core/transport/cc/controller.h"
#include "core/wire/ip.h"
#include "live/engine/shared_tables.h"

namespace weft::live {
namespace {

tl::unexpected<Error> not_one_of(const char* field, std::string_view text, const char* allowed) {
  return fail(std::string(field) + ": '" + std::string(text) + "' is not " + allowed);
}

Result<wire::Address> read_address(const char* field, std::string_view text) {
  constexpr const char* kOneHost =
      "the address of one host; take one that `ip addr` shows, ::1, or any of 127.0.0.0/8";
  std::array<std::uint8_t, 4> b{};
  if (inet_pton(AF_INET, std::string(text).c_str(), b.data()) == 1) {
    // What cannot be a process's own address: any, broadcast, multicast and reserved.
    if (b[0] == 0 || b[0] >= 224) return not_one_of(field, text, kOneHost);
    return wire::Address::v4(b[0], b[1], b[2], b[3]);
  }
  if (text.find('%') != std::string_view::npos)
    return not_one_of(field, text,
                      "an address alone; leave out the interface, which is found by the address");
  wire::Address a;
  if (inet_pton(AF_INET6, std::string(text).c_str(), a.bytes.data()) != 1)
    return not_one_of(field, text, "an IPv4 or IPv6 address, such as 127.0.0.1 or ::1");
  if (wire::is_v4_mapped(a)) return not_one_of(field, text, "an IPv6 address; write the IPv4 address itself");
  if (a == wire::Address{} || wire::is_group(a)) return not_one_of(field, text, kOneHost);
  return a;
}

Result<void> parse_address(const char* field, std::string_view text, Options& o) {
  const std::size_t comma = text.find(',');
  const auto first = read_address(field, text.substr(0, comma));
  if (!first) return tl::unexpected(first.error());
  o.own = {*first};
  if (comma == std::string_view::npos) return {};
  const auto second = read_address(field, text.substr(comma + 1));
  if (!second) return tl::unexpected(second.error());
  if (o.own.reach(*second))
    return not_one_of(field, text, "one address, or one of IPv4 and one of IPv6 with a comma between");
  o.own.second = *second;
  return {};
}

Result<void> parse_wire(const char* field, std::string_view text, Options& o) {
  const auto kind = find_wire(text);
  if (!kind) return not_one_of(field, text, ("a wire: " + wire_names()).c_str());
  o.wire = *kind;
  return {};
}

Result<void> parse_mode(const char* field, std::string_view text, Options& o) {
  for (std::size_t m = 0; m < wire::kModeCount; ++m) {
    if (text != wire::kModeNames[m]) continue;
    o.mode = static_cast<wire::Mode>(m);
    return {};
  }
  if (text == "auto") {
    o.mode.reset();
    return {};
  }
  return not_one_of(field, text, "a mode: auto, roce, irn or srnic");
}

Result<void> parse_controller(const char* field, std::string_view text, Options& o) {
  if (const auto row = find_controller(text)) {
    o.controller = *row;
    return {};
  }
  std::string allowed = "a controller:";
  for (const Controller* c : controllers()) allowed.append(" ").append(c->name);
  return not_one_of(field, text, allowed.c_str());
}

Result<void> parse_schedule(const char* field, std::string_view text, Options& o) {
  if (text == "round-robin") {
    o.schedule = Schedule::kRoundRobin;
  } else if (text == "weighted") {
    o.schedule = Schedule::kWeighted;
  } else if (text == "priority") {
    o.schedule = Schedule::kPriority;
  } else {
    return not_one_of(field, text, "a schedule: round-robin, weighted or priority");
  }
  return {};
}

Result<void> parse_level(const char* field, std::string_view text, Options& o) {
  if (text != "sl" && text != "dscp") return not_one_of(field, text, "sl or dscp");
  o.level_from_dscp = text == "dscp";
  return {};
}

template <bool Options::*kMember>
Result<void> parse_switch(const char* field, std::string_view text, Options& o) {
  if (text != "on" && text != "off") return not_one_of(field, text, "on or off");
  o.*kMember = text == "on";
  return {};
}

Result<void> parse_order(const char* field, std::string_view text, Options& o) {
  if (text != "any" && text != "strict") return not_one_of(field, text, "any or strict");
  o.strict_write_order = text == "strict";
  return {};
}

Result<void> parse_seed(const char* field, std::string_view text, Options& o) {
  const auto seed = parse_integer(field, text, 1, UINT64_MAX);
  if (!seed) return tl::unexpected(seed.error());
  o.seed = *seed;
  return {};
}

Result<void> parse_shards(const char* field, std::string_view text, Options& o) {
  const auto shards = parse_integer(field, text, 1, kMostShards);
  if (!shards) return tl::unexpected(shards.error());
  o.shards = static_cast<std::uint32_t>(*shards);
  return {};
}

Result<void> parse_trace(const char* field, std::string_view text, Options& o) {
  if (text.empty()) return fail(std::string(field) + ": the name of the file is empty");
  o.trace = text;
  return {};
}

// Slower, and every time-out strikes; shorter, and no message of the largest packets fits; longer than what
// slots hold (held_frames.h).
constexpr Rate kLeastRate = megabits(1);
constexpr Bytes kLeastQueue{16U << 10U};
constexpr Bytes kMostQueue{64U << 20U};

// A frame's headers, so that what is kept can be dissected; the largest frame.
constexpr std::uint64_t kLeastSnap = 64;
constexpr std::uint64_t kMostSnap = 65'535;

Result<void> parse_snap(const char* field, std::string_view text, Options& o) {
  const auto size = parse_size(field, text);
  if (!size) return tl::unexpected(size.error());
  if (size->n < kLeastSnap || size->n > kMostSnap)
    return not_one_of(field, text, "a size of 64 to 65535 bytes");
  o.trace_snap = static_cast<std::uint32_t>(size->n);
  return {};
}

// "1%": of what is received. "out=1%", "in=1%,out=2%": each direction by its name.
Result<void> in_each_direction(const char* field, std::string_view text, Options& o,
                               Result<void> (*set)(const char*, std::string_view, impair::ImpairConfig&)) {
  if (text.find('=') == std::string_view::npos) return set(field, text, o.impairments);
  for (std::string_view left = text; !left.empty();) {
    const std::string_view part = left.substr(0, left.find(','));
    left.remove_prefix(std::min(part.size() + 1, left.size()));
    const std::string_view way = part.substr(0, part.find('='));
    if ((way != "in" && way != "out") || way.size() == part.size())
      return not_one_of(field, part, "for a direction; write in=1%, out=1% or in=1%,out=2%");
    const auto done =
        set(field, part.substr(way.size() + 1), way == "in" ? o.impairments : o.line.impairments);
    if (!done) return done;
  }
  return {};
}

template <std::uint32_t impair::ImpairConfig::*kMember>
Result<void> set_chance(const char* field, std::string_view text, impair::ImpairConfig& config) {
  const auto value = parse_probability(field, text);
  if (!value) return tl::unexpected(value.error());
  config.*kMember = *value;
  return {};
}

template <std::uint32_t impair::ImpairConfig::*kMember>
Result<void> parse_chance(const char* field, std::string_view text, Options& o) {
  return in_each_direction(field, text, o, set_chance<kMember>);
}

// Of received packets alone: a kernel tells a receiver on its own host of no marks.
Result<void> parse_mark(const char* field, std::string_view text, Options& o) {
  return set_chance<&impair::ImpairConfig::mark>(field, text, o.impairments);
}

template <Duration impair::ImpairConfig::*kMember>
Result<void> set_span(const char* field, std::string_view text, impair::ImpairConfig& config) {
  const auto value = parse_duration(field, text);
  if (!value) return tl::unexpected(value.error());
  // Every time-out is over long before a frame that is held so long comes out, so a longer time is a slip of
  // the unit.
  if (*value > seconds(10)) return not_one_of(field, text, "a time of at most 10s");
  config.*kMember = *value;
  return {};
}

template <Duration impair::ImpairConfig::*kMember>
Result<void> parse_span(const char* field, std::string_view text, Options& o) {
  return in_each_direction(field, text, o, set_span<kMember>);
}

Result<void> parse_line_rate(const char* field, std::string_view text, Options& o) {
  const auto rate = parse_rate(field, text);
  if (!rate) return tl::unexpected(rate.error());
  if (rate->bps != 0 && *rate < kLeastRate) return not_one_of(field, text, "a rate of at least 1Mbps, or 0");
  o.line.rate = *rate;
  return {};
}

Result<void> parse_queue(const char* field, std::string_view text, Options& o) {
  const auto size = parse_size(field, text);
  if (!size) return tl::unexpected(size.error());
  if (*size < kLeastQueue || *size > kMostQueue) return not_one_of(field, text, "a size of 16KiB to 64MiB");
  o.line.queue = *size;
  return {};
}

using Config = impair::ImpairConfig;

constexpr std::array kSettings{
    Setting{"WEFT_ADDR", "addr",
            "address of this process, its GID: IPv4, IPv6, or one of each with a comma between [127.0.0.1]",
            parse_address},
    Setting{
        "WEFT_WIRE", "wire",
        "how packets travel: auto: in shared memory between processes of this host, by udp to others; udp; "
        "shm; packet or xdp: raw frames, which need rights [auto]",
        parse_wire},
    Setting{"WEFT_MODE", "mode", "transport of its requests: auto, roce, irn or srnic [auto]", parse_mode},
    Setting{"WEFT_CC", "cc", "congestion control of what it sends, such as dcqcn or timely [none]",
            parse_controller},
    Setting{"WEFT_SCHEDULE", "schedule", "whose turn it is: round-robin, weighted or priority [round-robin]",
            parse_schedule},
    Setting{"WEFT_LEVEL", "level",
            "what gives a connection's service level: the sl or the dscp of its address [sl]", parse_level},
    Setting{"WEFT_LOSS", "loss", "drop packets with this probability: 1% of those received, or in=1%,out=2%",
            parse_chance<&Config::loss>},
    Setting{"WEFT_DUPLICATE", "duplicate", "deliver packets twice with this probability, likewise",
            parse_chance<&Config::duplicate>},
    Setting{"WEFT_REORDER", "reorder", "hold packets back with this probability, likewise",
            parse_chance<&Config::reorder>},
    Setting{"WEFT_REORDER_BY", "reorder-by", "... for this long [100us]", parse_span<&Config::reorder_by>},
    Setting{"WEFT_CORRUPT", "corrupt", "flip a bit of packets with this probability, likewise",
            parse_chance<&Config::corrupt>},
    Setting{"WEFT_MARK", "mark", "mark received packets for congestion with this probability", parse_mark},
    Setting{"WEFT_DELAY", "delay", "delay every received packet, such as 50us, or in=50us,out=1ms",
            parse_span<&Config::delay>},
    Setting{"WEFT_JITTER", "jitter", "... by up to this much more", parse_span<&Config::jitter>},
    Setting{"WEFT_RATE", "rate", "packets leave no faster than this, such as 10Gbps [0: as they may]",
            parse_line_rate},
    Setting{"WEFT_QUEUE", "queue", "... and so many bytes wait; what comes on top is dropped [8MiB]",
            parse_queue},
    Setting{"WEFT_SEED", "seed", "seed of all these [random]", parse_seed},
    Setting{"WEFT_SHARDS", "shards",
            "so many threads carry packets, each for its share of the queue pairs, 1 to 16 [1]",
            parse_shards},
    Setting{"WEFT_ICRC", "icrc", "on or off; off must be agreed by both ends [on]",
            parse_switch<&Options::icrc>},
    Setting{"WEFT_WRITE_ORDER", "write-order",
            "any or strict; strict: received WRITEs reach memory in order even in irn and srnic [any]",
            parse_order},
    Setting{"WEFT_STATS", "stats", "on: print what happened, in numbers, when the device closes [off]",
            parse_switch<&Options::stats>},
    Setting{"WEFT_TRACE", "trace", "write every packet to this pcapng file, for Wireshark", parse_trace},
    Setting{"WEFT_TRACE_SNAP", "trace-snap", "... of each packet so many bytes, such as 128 [all]",
            parse_snap},
};

}  // namespace

std::span<const Setting> settings() { return kSettings; }

// A shard has a wire of its own, as a process has.
Result<void> Options::validate() const {
  for (const auto& direction : {impairments, line.impairments}) {
    if (const auto valid = direction.validate(); !valid) return tl::unexpected(valid.error());
  }
  if (shards == 1) return {};
  if (wire == WireKind::kPacket || wire == WireKind::kXdp)
    return fail("shards: only the wires auto, udp and shm have several; choose one of them, or --shards 1");
  if (line.rate.bps != 0)
    return fail(
        "shards: --rate holds a whole process to a rate, and shards do not know of each other's "
        "packets; leave one of the two out");
  if (!trace.empty())
    return fail("shards: --trace writes the packets of one shard; leave one of the two out");
  return {};
}

Result<Options> options_from_environment(char* (*get)(const char* name)) {
  Options o;
  for (const Setting& s : kSettings) {
    const char* text = get(s.variable);
    if (text == nullptr) continue;
    const auto parsed = s.parse(s.variable, text, o);
    if (!parsed) return tl::unexpected(parsed.error());
  }
  if (const auto valid = o.validate(); !valid) return tl::unexpected(valid.error());
  return o;
}

}  // namespace weft::live
