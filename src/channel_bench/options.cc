#include "channel_bench/options.h"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

namespace weft::bench {
namespace {

constexpr std::uint32_t kLongest = 1U << 20U;

std::string address_or_why(const std::string& text) {
  in_addr in{};
  if (inet_pton(AF_INET, text.c_str(), &in) == 1) return "";
  return "'" + text + "': it must be an IPv4 address of this machine, as 127.0.9.2";
}

}  // namespace

bool Options::measures(const std::string& part) const {
  return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
}

CLI::App* add_options(CLI::App& app, Options& o) {
  CLI::App* bench = app.add_subcommand("bench", "Measure what a layer costs, beside what it stands on");
  bench->require_subcommand(1);
  bench->footer("Examples:\n  weft bench channel\n  weft bench channel --help");
  CLI::App* channel =
      bench->add_subcommand("channel", "Channels beside a plain verbs program, on this machine, in one run");
  const auto number = [channel](const char* name, std::uint32_t& value, const char* text, std::uint32_t least,
                                std::uint32_t most) {
    channel->add_option(name, value, text)
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(least, most));
  };
  channel->add_option("--part", o.parts, "what to measure; all, if none is named")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kParts), std::end(kParts))))
      ->allow_extra_args(false);
  channel->add_option("-s,--size", o.sizes, "latency: bytes of a message; may be repeated")
      ->type_name("BYTES")
      ->check(CLI::Range(1U, kLongest))
      ->allow_extra_args(false);
  number("--turns", o.turns, "so often each row is measured, in turns; medians count", 1U, 1000U);
  number("--rounds", o.rounds, "latency: messages each way in a turn", 10U, 1'000'000U);
  channel->add_flag("--beside", o.beside,
                    "latency: ibv_rc_pingpong, UCX and libfabric, too, where they are installed");
  number("--connections", o.connections, "connect: channels of a storm; scale: channels of the host", 2U,
         16'384U);
  number("--storms", o.storms, "connect: turns", 1U, 1000U);
  number("--messages", o.messages, "rnr: messages to a slow receiver", 100U, 1'000'000U);
  number("--channels", o.channels, "memory, gone: channels whose memory is counted", 2U, 1024U);
  channel->add_option("--far", o.far, "the address of the far end, which is a process of this machine")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->check(address_or_why);
  channel->add_flag("--namespace", o.in_namespace,
                    "both ends in a network namespace of their own, on addresses of an interface");
  channel->add_flag("--quick", o.quick,
                    "the smallest form, where nothing else is said: it shows that it works, and no figure");
  channel->add_flag("-j,--json", o.as_json, "one JSON object");
  channel->footer(
      "Two processes on two addresses, each on a core of its own. Rows take turns, so that a slow moment of\n"
      "the machine hits all of them; ratios are of one turn. What others had of the machine is said.\n"
      "WEFT_ variables of the environment (loss, rate, mode) are for both ends, as for any program; under "
      "`weft\n"
      "lab` there are none.\n"
      "Exit code 1: a row could not be measured.\n\n"
      "Examples:\n"
      "  weft bench channel\n"
      "  weft bench channel --part latency -s 64 -s 4096 --json");
  return channel;
}

void complete(Options& o, const CLI::App& channel) {
  const auto small = [&](const char* name, std::uint32_t& value, std::uint32_t quick) {
    if (o.quick && channel.count(name) == 0) value = quick;
  };
  small("--turns", o.turns, 2);
  small("--rounds", o.rounds, 20);
  small("--connections", o.connections, 16);
  small("--storms", o.storms, 1);
  small("--messages", o.messages, 200);
  small("--channels", o.channels, 8);
  if (o.sizes.empty())
    o.sizes = o.quick ? std::vector<std::uint32_t>{64, 8192}
                      : std::vector<std::uint32_t>{64, 512, 2048, 4096, 16384, 65536};
}

}  // namespace weft::bench
