// weft wan box: one of a pair of boxes on the path between two sites, between two interfaces of this machine.
#include <fmt/format.h>
#include <net/if.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "cli/cmd_wan.h"
#include "cli/commands.h"
#include "cli/wan_status.h"
#include "core/base/parse.h"
#include "record/record.h"
#include "wan/box/driving.h"
#include "wan/box/packet_port.h"
#include "wan/box/pump.h"
#include "wan/box/xdp_port.h"
#include "wan/logic/store.h"

namespace weft::cli {
namespace {

using wan::BoxCounter;
using wan::BoxCounters;

constexpr std::size_t kLeastSecret = 16;
constexpr std::size_t kMostSecret = 4096;

struct Options {
  std::string near;
  std::string far;
  std::string rate = "0";
  std::string store = "256MB";
  std::string secret;
  std::string acknowledge = "early";
  std::string connections = "1024";
  std::string round_trip = "50ms";
  std::string rest = "5ms";
  std::string endpoint_timeout = "20ms";
  std::string endpoint_tries = "25";
  std::string give_up = "30s";
  std::string drain = "10s";
  std::string parity = "0";
  bool repair_answers = false;
  std::string status;
  std::string port = "packet";
  bool spin = false;
  bool quiet = false;
};

Result<std::vector<std::uint8_t>> read_secret(const std::string& path) {
  const std::string named = "--partner-secret: '" + path + "' ";
  struct stat s {};
  if (stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode))
    return fail(named +
                "is no file that can be read; make one with: head -c 32 /dev/urandom > FILE, and give both "
                "boxes the same");
  if ((s.st_mode & S_IROTH) != 0)
    return fail(named + "can be read by everybody on this host; 'chmod 600 " + path +
                "' keeps it for its owner");
  std::ifstream in(path, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in || bytes.size() < kLeastSecret || bytes.size() > kMostSecret)
    return fail(
        fmt::format("{}has {} bytes; a secret has {} to {}", named, bytes.size(), kLeastSecret, kMostSecret));
  return bytes;
}

Result<std::uint64_t> drawn() {
  std::uint64_t v = 0;
  if (getrandom(&v, sizeof v, 0) != sizeof v) return fail("the system gives no random numbers");
  return v | 1U;
}

Result<wan::PumpConfig> config_of(const Options& o) {
  wan::PumpConfig c;
  if (o.near == o.far) return fail("--near and --far: '" + o.near + "' cannot be both sides of a box");
  const auto secret = read_secret(o.secret);
  if (!secret) return tl::unexpected(secret.error());
  const auto rate = parse_rate("--rate", o.rate);
  if (!rate) return tl::unexpected(rate.error());
  const auto store = parse_size("--store", o.store);
  if (!store) return tl::unexpected(store.error());
  constexpr std::uint64_t kLeast = 1'000'000;
  constexpr std::uint64_t kMost = 64'000'000'000;
  if (store->n < kLeast || store->n > kMost)
    return fail("--store: '" + o.store + "' is not between 1MB and 64GB");
  const auto halves = parse_integer("--connections", o.connections, 1, 1U << 20U);
  if (!halves) return tl::unexpected(halves.error());
  const auto parity = wan::parse_parity_terms("--parity", o.parity);
  if (!parity) return tl::unexpected(parity.error());
  const auto tries = parse_integer("--endpoint-tries", o.endpoint_tries, 1, 250);
  if (!tries) return tl::unexpected(tries.error());
  struct Time {
    const char* name;
    const std::string* text;
    Duration least;
    Duration most;
    Duration value;
  } times[] = {{"--round-trip", &o.round_trip, microseconds(100), seconds(10), {}},
               {"--rest", &o.rest, microseconds(100), seconds(10), {}},
               {"--endpoint-timeout", &o.endpoint_timeout, microseconds(100), seconds(10), {}},
               {"--give-up", &o.give_up, milliseconds(100), seconds(3600), {}},
               {"--drain", &o.drain, {}, seconds(3600), {}}};
  for (Time& t : times) {
    const auto read = parse_duration(t.name, *t.text);
    if (!read) return tl::unexpected(read.error());
    if (*read < t.least || *read > t.most)
      return fail(fmt::format("{}: '{}' is not between {} us and {} s", t.name, *t.text, t.least.us(),
                              t.most.us() / 1'000'000));
    t.value = *read;
  }
  const auto instance = drawn();
  const auto seed = drawn();
  if (!instance) return tl::unexpected(instance.error());
  wan::BoxConfig& b = c.box;
  b.instance = *instance;
  b.seed = *seed;
  b.secret = *secret;
  b.acknowledge = o.acknowledge == "far" ? wan::Acknowledge::kFar : wan::Acknowledge::kEarly;
  b.store = *store;
  b.parity = *parity;
  b.repair_answers = o.repair_answers;
  b.halves = static_cast<std::uint32_t>(*halves);
  b.line_timeout = times[0].value;
  b.hello = b.line_timeout * 2 / 5;
  b.patience = b.line_timeout * 2;
  b.quiet = times[1].value;
  b.site_timeout = times[2].value;
  b.site_tries = static_cast<std::uint32_t>(*tries);
  b.give_up = times[3].value;
  if (const auto valid = b.validate(); !valid) return tl::unexpected(valid.error());
  c.rate = *rate;
  return c;
}

std::string megabytes(std::uint64_t n) { return fmt::format("{:.1f} MB", static_cast<double>(n) / 1e6); }

record::Record record_of(const wan::PortCounters& p) {
  record::Record r;
#define WEFT_X(name, text) r.set(#name, p.name);
  WEFT_PORT_COUNTERS(WEFT_X)
#undef WEFT_X
  return r;
}

// What a running box tells its user: a sentence where something changed.
class Story {
 public:
  Story(const Options& options, const wan::Pump& pump) : options_(options), pump_(pump) {}

  void begin(const wan::PortFacts& near, const wan::PortFacts& far) {
    tell(fmt::format("between {} (site) and {} (line, {}), store {}, acknowledges {}", near.name, far.name,
                     options_.rate == "0" ? "as fast as it takes frames" : options_.rate, options_.store,
                     options_.acknowledge == "far" ? "what the far box has" : "early"));
    if (far.mtu < near.mtu)
      tell(fmt::format(
          "the line's MTU is {} and the site's {}: what is longer is lost at the line, with or without a box",
          far.mtu, near.mtu));
    const std::uint32_t covered = wan::LineParity::covered(far.mtu);
    if (pump_.box().config().parity.there() && covered < wan::kMostPayload)
      tell(fmt::format(
          "the line's MTU of {} has room for the parity of packets of up to {} bytes; longer ones "
          "go without",
          far.mtu, covered));
    tell("a wire for now; it asks for its partner when a connection is worth it");
  }

  void go_on(Time now, const wan::PortCounters& near, const wan::PortCounters& far) {
    const wan::Box& b = pump_.box();
    if (grew(BoxCounter::partner_lost)) tell("the partner does not answer any more: a wire until it does");
    if (grew(BoxCounter::partner_found)) {
      tell("the partner answers");
      if (b.config().parity.there() && !b.partner_parity().there())
        tell("the partner was started without --parity, so there is none");
    }
    if (grew(BoxCounter::not_heard)) {
      tell(fmt::format("{} messages so far were not the partner's, or not meant for now: if no partner is "
                       "found, compare the secrets",
                       b.counters().get(BoxCounter::not_heard)),
           kSeldom, now);
    }
    if (const std::uint32_t owned = b.owned(); owned != owned_) {
      if ((owned == 0) != (owned_ == 0) || seldom(now))
        tell(owned == 0 ? "answers for no connection now"
                        : fmt::format("answers for connections: {} halves", owned));
      owned_ = owned;
    }
    if (grew(BoxCounter::failed))
      tell(fmt::format(
          "a connection ended with an error ({} so far): its program learns of it at its next request",
          b.counters().get(BoxCounter::failed)));
    if (grew(BoxCounter::orphaned)) tell("delivers what it has of connections whose box went away");
    if (grew(BoxCounter::drop_full))
      tell("the store is full: endpoints wait until the far side has taken something", kSeldom, now);
    if (grew(BoxCounter::table_full))
      tell("more connections than --connections: the others pass", kSeldom, now);
    if (now > Time{} + seconds(100L * 24 * 3600) && !std::exchange(told_old_, true))
      tell(
          "a hundred days have passed; start it anew within five, because after that it sends nothing again");
    missed(now, near, near_missed_, options_.near);
    missed(now, far, far_missed_, options_.far);
  }

  void tell(const std::string& sentence) {
    if (options_.quiet) return;
    std::fprintf(stderr, "weft wan box: %s\n", sentence.c_str());
  }

 private:
  static constexpr Duration kSeldom = seconds(10);

  bool grew(BoxCounter c) {
    const std::uint64_t v = pump_.box().counters().get(c);
    return v != std::exchange(seen_[static_cast<std::size_t>(c)], v);
  }
  bool seldom(Time now) {
    if (now < again_) return false;
    again_ = now + kSeldom;
    return true;
  }
  void tell(const std::string& sentence, Duration, Time now) {
    if (seldom(now)) tell(sentence);
  }
  void missed(Time now, const wan::PortCounters& p, std::uint64_t& before, const std::string& name) {
    const std::uint64_t n = p.rx_missed + p.rx_torn;
    if (n == before) return;
    before = n;
    tell(fmt::format("the kernel dropped {} frames of {} so far: this box is too slow for them, or they are "
                     "trains that this "
                     "kernel cannot hand over; then 'ethtool -K DEVICE tx-udp-segmentation off gro off' at "
                     "their sender helps",
                     n, name),
         kSeldom, now);
  }

  const Options& options_;
  const wan::Pump& pump_;
  std::array<std::uint64_t, wan::kBoxCounterCount> seen_{};
  std::uint32_t owned_ = 0;
  std::uint64_t near_missed_ = 0;
  std::uint64_t far_missed_ = 0;
  Time again_{};
  bool told_old_ = false;
};

std::string parity_text(wan::ParityTerms p) {
  return p.there() ? fmt::format("{}+{}", p.data, p.repair) : "0";
}

record::Record status_of(const Options& o, const wan::Pump& pump, wan::Port& near, wan::Port& far, Time now,
                         Time since, bool leaving) {
  const wan::Box& b = pump.box();
  record::Record r;
  r.set("near", o.near).set("far", o.far).set("acknowledge", o.acknowledge);
  r.set("up_seconds", static_cast<double>((now - since).us()) / 1e6);
  r.set("partner", b.partner_is_there(now)).set("leaving", leaving);
  r.set("parity", parity_text(b.config().parity)).set("partner_parity", parity_text(b.partner_parity()));
  r.set("repair_answers", b.config().repair_answers);
  r.set("owned", std::uint64_t{b.owned()});
  r.set("store_bytes", b.config().store.n)
      .set("stored_bytes", b.stored().n)
      .set("most_stored_bytes", b.most_stored().n);
  record::Record counters;
  for (std::size_t i = 0; i < wan::kBoxCounterCount; ++i)
    counters.set(wan::kBoxCounterInfo[i].name, b.counters().get(static_cast<BoxCounter>(i)));
  r.set("box", std::move(counters));
  record::Record strangers;
#define WEFT_X(name, text) strangers.set(#name, pump.strangers(wan::Stranger::name));
  WEFT_STRANGER_REASONS(WEFT_X)
#undef WEFT_X
  r.set("not_understood", std::move(strangers));
  record::Record pumped;
  pumped.set("parity_broken", pump.parity_broken());
  pumped.set("trains", pump.trains()).set("no_slot", pump.no_slot()).set("no_header", pump.no_header());
  r.set("bytes", std::move(pumped));
  r.set("near_port", record_of(near.counters())).set("far_port", record_of(far.counters()));
  return r;
}

Result<std::unique_ptr<wan::Port>> open_port(const Options& o, const char* field,
                                             const std::string& interface) {
  const auto as_port = [](auto p) { return std::unique_ptr<wan::Port>(std::move(p)); };
  if (o.port == "xdp") return wan::XdpPort::open(field, interface).map(as_port);
  return wan::PacketPort::open(field, interface).map(as_port);
}

int stand(const Options& o) {
  const auto config = config_of(o);
  if (!config) return refuse(config.error());
  auto near = open_port(o, "--near", o.near);
  if (!near) return refuse(near.error());
  auto far = open_port(o, "--far", o.far);
  if (!far) return refuse(far.error());
  const std::string folder = status_folder(o.status, true);
  if (folder.empty() && !o.status.empty())
    return refuse({"--status: '" + o.status + "' is no folder that can be written to"});
  auto driving = wan::Driving::prepare();
  if (!driving) return refuse(driving.error());

  wan::Pump pump(*config, **near, **far);
  StatusFile status(folder);
  Story story(o, pump);
  story.begin((*near)->facts(), (*far)->facts());
  if (folder.empty())
    story.tell("there is no folder for its status, so 'weft wan stat' will not find it; --status names one");
  const Time since = (*driving)->clock().now();
  const Duration drain = *parse_duration("--drain", o.drain);
  Time leave_by = kNever;
  bool gone = false;

  wan::Turns t;
  t.descriptors = {(*near)->descriptor(), (*far)->descriptor()};
  t.spin = o.spin;
  t.turn = [&](Time now) { return pump.turn(now); };
  t.next_due = [&](Time now) { return pump.next_due(now); };
  t.tick = [&](Time now) {
    story.go_on(now, (*near)->counters(), (*far)->counters());
    status.write(status_of(o, pump, **near, **far, now, since, leave_by != kNever));
    for (const std::string& name : {o.near, o.far}) {
      if (if_nametoindex(name.c_str()) == 0) gone = true;
    }
    return !gone && (leave_by == kNever || (!pump.owes_nothing() && now < leave_by));
  };
  t.signal = [&](Time now, int signal) {
    if (signal == SIGUSR1) return true;
    if (leave_by != kNever) return false;
    leave_by = now + drain;
    pump.leave(now);
    if (!pump.owes_nothing())
      story.tell(
          fmt::format("delivers {} of {} halves first, for {} at most; the same signal again leaves at once",
                      megabytes(pump.box().stored().n), pump.box().owned(), o.drain));
    return !pump.owes_nothing();
  };
  (*driving)->run(t);

  const BoxCounters& n = pump.box().counters();
  if (gone) story.tell("an interface went away");
  story.tell(fmt::format("acknowledged {} packets for the site, delivered {} to it, {} passed as on a wire",
                         n.get(BoxCounter::taken), n.get(BoxCounter::given), n.get(BoxCounter::passed)));
  const bool left = !pump.owes_nothing();
  story.tell(left ? fmt::format("{} of {} halves was left and is lost with this box",
                                megabytes(pump.box().stored().n), pump.box().owned())
                  : "nothing was left");
  return left || gone ? 1 : 0;
}

}  // namespace

void add_wan_box(CLI::App& wan, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      wan.add_subcommand("box", "One of a pair of boxes that acknowledge RDMA early and make good on it");
  c->add_option("--near", o->near, "interface towards the site")->type_name("IF")->required();
  c->add_option("--far", o->far, "interface towards the line")->type_name("IF")->required();
  c->add_option("--partner-secret", o->secret, "file of 16 bytes and more, the same at both boxes")
      ->type_name("FILE")
      ->required();
  c->add_option("--acknowledge", o->acknowledge,
                "early: when this box has a packet; far: when the far one has it")
      ->check(CLI::IsMember({"early", "far"}));
  c->add_option("--rate", o->rate, "of the line; 0: as fast as it takes frames")->type_name("RATE");
  c->add_option("--store", o->store, "memory for packets on their way")->type_name("SIZE");
  c->add_option("--parity", o->parity,
                "K data and M parity frames of a group, for example 16+2; 0: none. Both boxes must have it")
      ->type_name("K+M");
  c->add_flag("--repair-answers", o->repair_answers,
              "answers of READs and atomics that the line loses are sent again. Both boxes must have it");
  c->add_option("--connections", o->connections, "in each direction; what is beyond passes")->type_name("N");
  c->add_option("--round-trip", o->round_trip, "of the line; a longer one is noticed, and followed")
      ->type_name("TIME");
  c->add_option("--rest", o->rest, "a connection without packets for so long is a wire's again")
      ->type_name("TIME");
  c->add_option("--endpoint-timeout", o->endpoint_timeout, "so long an endpoint of the site may be silent")
      ->type_name("TIME");
  c->add_option("--endpoint-tries", o->endpoint_tries, "silences until it counts as gone")->type_name("N");
  c->add_option("--give-up", o->give_up, "so long it waits for a partner with packets that it owes")
      ->type_name("TIME");
  c->add_option("--drain", o->drain, "so long it goes on after SIGTERM with what it owes")->type_name("TIME");
  c->add_option("--status", o->status, "folder for its status; else /run/weft or $XDG_RUNTIME_DIR/weft")
      ->type_name("DIR");
  c->add_option("--port", o->port,
                "how frames come: packet (AF_PACKET), or xdp (AF_XDP, for hardware; needs root)")
      ->check(CLI::IsMember({"packet", "xdp"}));
  c->add_flag("--spin", o->spin, "never sleep: a processor for microseconds");
  c->add_flag("-q,--quiet", o->quiet, "say nothing");
  c->footer(
      "Everything that it does not understand is forwarded unchanged. Endpoints change nothing.\n"
      "What a completion means with --acknowledge early is a table in docs/guide/long-distance.md: read it "
      "first.\n"
      "SIGTERM, SIGINT or SIGHUP: it delivers what it owes and says what was left; again: it leaves at "
      "once.\n"
      "\n"
      "Examples:\n"
      "  head -c 32 /dev/urandom > secret; chmod 600 secret            # once, for both boxes\n"
      "  weft wan box --near eth0 --far eth1 --rate 10Gbps --partner-secret secret\n"
      "  weft wan box --near eth0 --far eth1 --partner-secret secret --acknowledge far\n"
      "  weft wan box --near eth0 --far eth1 --rate 10Gbps --partner-secret secret --parity 16+2\n"
      "  weft wan box --near eth0 --far eth1 --rate 10Gbps --partner-secret secret --repair-answers");
  c->callback([o, &exit_code] { exit_code = stand(*o); });
}

}  // namespace weft::cli
