// weft wan plan: what RDMA reaches over a distance, which limit binds, what it costs, and what to do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>

#include "cli/cmd_wan.h"
#include "cli/commands.h"
#include "cli/wan_options.h"
#include "core/base/parse.h"
#include "lab/figure.h"
#include "record/record.h"
#include "wan/plan/frame.h"
#include "wan/plan/plan.h"

namespace weft::cli {
namespace {

using wan::Plan;
using wan::Question;
using wan::Reach;
using wan::Way;

constexpr double kWorthIt = 0.99;  // parity pays if messages arrive at least a hundredth sooner

struct Options {
  std::string distance = "100km";
  std::string extra = "0";
  std::string rate = "100Gbps";
  std::string mtu = "4096";
  std::string message = "4096B";
  std::string loss = "0";
  std::string queue_pairs = "1";
  std::string tx_depth = "128";
  std::string nic_depth = "16384";
  std::string packet_rate = "0";
  std::string local = "10us";
  std::string store = "0";
  std::string parity = "16+2";
  std::string distances = "1km,10km,100km,1000km,10000km";
  std::string messages = "64B,512B,4KiB,8KiB,64KiB,1MiB";
  std::string svg;
  bool table = false;
  bool json = false;
};

Result<wan::Parity> parse_parity(const std::string& text) {
  const std::size_t plus = std::min(text.find('+'), text.size());
  const auto data = parse_integer("--parity", text.substr(0, plus), 1, 128);
  const auto repair = parse_integer("--parity", plus < text.size() ? text.substr(plus + 1) : "", 1, 64);
  if (!data || !repair)
    return fail("--parity: '" + text + "' is not like 16+2, data and repair packets of a group");
  return wan::Parity{static_cast<std::uint32_t>(*data), static_cast<std::uint32_t>(*repair)};
}

template <class T, class From, class To>
bool take(const Result<T>& read, To& out, Error& wrong, From value) {
  if (!read) {
    wrong = read.error();
    return false;
  }
  out = value(*read);
  return true;
}

Result<Question> question_of(const Options& o) {
  Question q;
  Error wrong;
  const auto same = [](auto v) { return v; };
  const auto bytes = [](Bytes v) { return v.n; };
  const auto small = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const bool ok =
      take(parse_distance("--distance", o.distance), q.distance, wrong, same) &&
      take(parse_duration("--extra", o.extra), q.extra, wrong, same) &&
      take(parse_rate("--rate", o.rate), q.rate, wrong, same) &&
      take(parse_integer("--mtu", o.mtu, 256, 4096), q.mtu, wrong, small) &&
      take(parse_size("--message", o.message), q.message, wrong, bytes) &&
      take(parse_loss(o.loss), q.loss, wrong, same) &&
      take(parse_integer("--queue-pairs", o.queue_pairs, 1, 1U << 20U), q.queue_pairs, wrong, small) &&
      take(parse_integer("--tx-depth", o.tx_depth, 1, 1U << 20U), q.tx_depth, wrong, small) &&
      take(parse_integer("--nic-depth", o.nic_depth, 1, 1U << 20U), q.nic_depth, wrong, small) &&
      take(parse_integer("--packet-rate", o.packet_rate, 0, 100'000'000'000), q.packet_rate, wrong, same) &&
      take(parse_duration("--local", o.local), q.local, wrong, same) &&
      take(parse_size("--store", o.store), q.store, wrong, same) &&
      take(parse_parity(o.parity), q.parity, wrong, same);
  if (!ok) return tl::unexpected(wrong);
  if (const auto valid = q.validate(); !valid) return tl::unexpected(valid.error());
  return q;
}

template <class T, class Parse>
Result<std::vector<T>> list_of(const char* name, const std::string& text, Parse parse) {
  std::vector<T> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto one = parse(name, text.substr(at, end - at));
    if (!one) return tl::unexpected(one.error());
    all.push_back(*one);
    at = end + 1;
  }
  return all;
}

std::string distance_text(Distance d) {
  return d.metres % 1000 == 0 ? fmt::format("{} km", d.metres / 1000) : fmt::format("{} m", d.metres);
}
std::string time_text(double us) {
  if (us < 1000) return fmt::format("{:.4g} us", us);
  return us < 1e6 ? fmt::format("{:.4g} ms", us / 1e3) : fmt::format("{:.4g} s", us / 1e6);
}
std::string time_text(Duration d) { return time_text(static_cast<double>(d.ps) / 1e6); }
std::string bytes_text(std::uint64_t n) {
  if (n < 10'000) return fmt::format("{} B", n);
  const double v = static_cast<double>(n);
  if (n < 10'000'000) return fmt::format("{:.4g} KiB", v / 1024);
  return n < 10'000'000'000 ? fmt::format("{:.4g} MiB", v / 1048576)
                            : fmt::format("{:.4g} GiB", v / 1073741824);
}
std::string rate_text(double bps) {
  return bps >= 1e9 ? fmt::format("{:.3g} Gb/s", bps / 1e9) : fmt::format("{:.3g} Mb/s", bps / 1e6);
}

void print_ways(const Question& q, const Plan& p) {
  std::cout << fmt::format("\n{:<16}{:>8}{:>13}{:>9}  {:<16}{:>12}{:>14}{:>14}{:>14}\n", "way", "depth",
                           "goodput", "of line", "bound by", "after loss", "send queues", "buffers", "boxes");
  for (const Reach& r : p.ways) {
    std::cout << fmt::format(
        "{:<16}{:>8}{:>13}{:>8.1f}%  {:<16}{:>11.1f}%{:>14}{:>14}{:>14}\n", way_name(r.way), r.depth,
        rate_text(r.goodput_bps), 100 * r.goodput_bps / p.best_bps, limit_name(r.limit), 100 * r.loss_leaves,
        bytes_text(r.nic_bytes), bytes_text(r.buffer_bytes), r.box_bytes == 0 ? "" : bytes_text(r.box_bytes));
  }
  std::cout << "\nat hand, deep: go-back-N end to end. selective: irn or srnic end to end. boxes: "
               "acknowledge early, repair\n"
            << fmt::format("the line selectively; with parity {}+{}.\n", q.parity.data, q.parity.repair);
}

void print_advice(const Question& q, const Plan& p) {
  std::cout << "\nwhat to do\n";
  const Reach& hand = p.way(Way::kAtHand);
  if (p.full_depth <= p.depth_at_hand) {
    std::cout << "  nothing for the depth: what is at hand keeps the line busy\n";
  } else {
    if (p.full_depth <= q.nic_depth) {
      std::cout << fmt::format("  enough depth      post {} requests ahead; {} of buffers stay in use\n",
                               p.full_depth, bytes_text(p.full_depth * q.queue_pairs * q.message));
    } else {
      std::cout << fmt::format("  enough depth      not on this NIC: {} requests are needed, {} fit\n",
                               p.full_depth, q.nic_depth);
    }
    std::cout << fmt::format("  more queue pairs  {} of them with {} requests each\n", p.queue_pairs,
                             p.depth_at_hand);
    if (p.message != 0) {
      std::cout << fmt::format("  larger messages   {} with {} requests posted ahead\n",
                               bytes_text(p.message), p.depth_at_hand);
    } else {
      std::cout << "  larger messages   none below 2 GiB is large enough\n";
    }
    const Reach& boxes = p.way(Way::kBoxes);
    std::cout << fmt::format("  accelerator       {:.1f} times the goodput at hand; its two boxes keep {}\n",
                             boxes.goodput_bps / hand.goodput_bps, bytes_text(boxes.box_bytes));
  }
  if (q.loss <= 0) return;
  std::cout << fmt::format(
      "  losses            go-back-N keeps {:.1f}% of a full line, selective repair {:.1f}%, boxes {:.1f}%\n",
      100 * p.way(Way::kDeep).loss_leaves, 100 * p.way(Way::kSelective).loss_leaves,
      100 * p.way(Way::kBoxes).loss_leaves);
  const bool pays = p.parity.mean_us < p.repeat.mean_us * kWorthIt;
  std::cout << fmt::format(
      "  parity {:<11}{} for one message alone: {} mean, {} p99, without it {} and {}; it takes {:.1f}% of "
      "the line\n",
      fmt::format("{}+{}", q.parity.data, q.parity.repair), pays ? "pays" : "does not pay",
      time_text(p.parity.mean_us), time_text(p.parity.p99_us), time_text(p.repeat.mean_us),
      time_text(p.repeat.p99_us), 100 - 100 / q.parity.overhead());
}

void print_plan(const Question& q, const Plan& p) {
  std::cout << fmt::format("{}, {}, messages of {}, path MTU {}, loss {:g}, queue pairs {}\n\n",
                           distance_text(q.distance), rate_text(static_cast<double>(q.rate.bps)),
                           bytes_text(q.message), q.mtu, q.loss, q.queue_pairs);
  std::cout << fmt::format("round trip  {} of fibre", time_text(p.round_trip));
  if (q.extra.ps != 0) std::cout << fmt::format(" and {} of equipment", time_text(q.extra));
  std::cout << fmt::format("; a full line has {} on its way\n\na frame on the line\n", bytes_text(p.bdp));
  for (const wan::FrameItem& item : wan::frame_items(q.mtu))
    std::cout << fmt::format("  {:<18}{:>6}\n", item.name, item.bytes);
  std::cout << fmt::format("  {:<18}{:>6}   and {} with the RETH of a WRITE's first packet\n", "in all",
                           wan::frame_bytes(q.mtu), wan::frame_bytes(q.mtu) + wan::kReth);
  std::cout << fmt::format("a message       {:>8} packets, {} on the line\n", p.packets,
                           bytes_text(p.line_bytes));
  std::cout << fmt::format(
      "\nrequests posted ahead, of each queue pair\n"
      "  {:<18}{:>6}   one round trip of messages, and the one that is being sent\n"
      "  {:<18}{:>6}   round trip x rate / frame, in packets; {} with the RETH\n"
      "  {:<18}{:>6}   --tx-depth {}, --nic-depth {}\n",
      "fill the line", p.full_depth, "by NTT's formula", p.paper_depth, p.paper_depth_reth, "at hand",
      p.depth_at_hand, q.tx_depth, q.nic_depth);
  print_ways(q, p);
  print_advice(q, p);
}

record::Record record_of(const Question& q, const Plan& p) {
  record::Record r;
  r.set("distance_m", q.distance.metres).set("rate_bps", q.rate.bps).set("mtu", std::uint64_t{q.mtu});
  r.set("message_bytes", q.message).set("loss", q.loss).set("queue_pairs", std::uint64_t{q.queue_pairs});
  r.set("tx_depth", std::uint64_t{q.tx_depth}).set("nic_depth", std::uint64_t{q.nic_depth});
  r.set("extra_us", static_cast<double>(q.extra.ps) / 1e6)
      .set("local_us", static_cast<double>(q.local.ps) / 1e6);
  r.set("packet_rate", q.packet_rate).set("store_bytes", q.store.n);
  r.set("round_trip_us", static_cast<double>(p.round_trip.ps) / 1e6).set("bytes_on_their_way", p.bdp);
  for (const wan::FrameItem& item : wan::frame_items(q.mtu)) {
    record::Record one;
    one.set("item", item.name).set("bytes", std::uint64_t{item.bytes});
    r.append("frame", std::move(one));
  }
  r.set("frame_bytes", std::uint64_t{wan::frame_bytes(q.mtu)});
  r.set("frame_bytes_reth", std::uint64_t{wan::frame_bytes(q.mtu) + wan::kReth});
  r.set("packets", p.packets).set("line_bytes", p.line_bytes).set("best_gbps", p.best_bps / 1e9);
  r.set("full_depth", p.full_depth)
      .set("paper_depth", p.paper_depth)
      .set("paper_depth_reth", p.paper_depth_reth);
  for (const Reach& w : p.ways) {
    record::Record one;
    one.set("way", way_name(w.way)).set("depth", w.depth).set("goodput_gbps", w.goodput_bps / 1e9);
    one.set("bound_by", limit_name(w.limit)).set("loss_leaves", w.loss_leaves);
    one.set("send_queue_bytes", w.nic_bytes)
        .set("buffer_bytes", w.buffer_bytes)
        .set("box_bytes", w.box_bytes);
    r.append("ways", std::move(one));
  }
  r.set("queue_pairs_needed", p.queue_pairs).set("message_needed", p.message);
  const auto time = [&](const char* name, const wan::DeliveryTime& t) {
    record::Record one;
    one.set("mean_us", t.mean_us).set("p99_us", t.p99_us);
    r.set(name, std::move(one));
  };
  time("delivery_repeat", p.repeat);
  time("delivery_parity", p.parity);
  return r;
}

// Goodput at hand, deep and with boxes, for each distance and message size.
int table(const Options& o, const Question& q, const std::vector<Distance>& distances) {
  const auto messages = list_of<Bytes>("--messages", o.messages, parse_size);
  if (!messages) return refuse(messages.error());
  record::Record all;
  if (!o.json)
    std::cout << fmt::format("{:>10}{:>12}{:>12}{:>15}{:>15}{:>15}   at hand bound by\n", "distance",
                             "message", "fills line", "at hand", "deep", "boxes");
  for (const Distance d : distances) {
    for (const Bytes m : *messages) {
      Question one = q;
      one.distance = d;
      one.message = m.n;
      if (const auto valid = one.validate(); !valid) return refuse(valid.error());
      const Plan p = plan(one);
      if (o.json) {
        all.append("plans", record_of(one, p));
        continue;
      }
      std::cout << fmt::format(
          "{:>10}{:>12}{:>12}{:>15}{:>15}{:>15}   {}\n", distance_text(d), bytes_text(m.n), p.full_depth,
          rate_text(p.way(Way::kAtHand).goodput_bps), rate_text(p.way(Way::kDeep).goodput_bps),
          rate_text(p.way(Way::kBoxes).goodput_bps), limit_name(p.way(Way::kAtHand).limit));
    }
  }
  if (o.json) std::cout << all.json();
  return 0;
}

Result<void> draw(const Options& o, const Question& q, const std::vector<Distance>& distances) {
  lab::Figure figure;
  figure.title = fmt::format("Messages of {} over {}", bytes_text(q.message),
                             rate_text(static_cast<double>(q.rate.bps)));
  figure.x_label = "distance";
  figure.logarithmic = true;
  figure.panels.resize(2);
  figure.panels[0] = {"goodput", "Gb/s", {}, {}};
  figure.panels[1] = {"requests that fill the line", "requests", {{"posted ahead", {}}}, {}};
  for (std::size_t w = 0; w < wan::kWays; ++w)
    figure.panels[0].series.push_back({way_name(static_cast<Way>(w)), {}});
  const auto exactly = [](double v) { return lab::Estimate{v, v, v, 1, false, true}; };
  for (const Distance d : distances) {
    Question one = q;
    one.distance = d;
    const Plan p = plan(one);
    figure.ticks.push_back(distance_text(d));
    for (std::size_t w = 0; w < wan::kWays; ++w)
      figure.panels[0].series[w].values.push_back(exactly(p.ways[w].goodput_bps / 1e9));
    figure.panels[1].series[0].values.push_back(exactly(static_cast<double>(p.full_depth)));
  }
  return lab::write_figure(figure, o.svg);
}

int plan_line(const Options& o) {
  const auto q = question_of(o);
  if (!q) return refuse(q.error());
  const auto distances = list_of<Distance>("--distances", o.distances, parse_distance);
  if (!distances) return refuse(distances.error());
  if (o.table) {
    if (const int code = table(o, *q, *distances); code != 0) return code;
  } else if (const Plan p = plan(*q); o.json) {
    std::cout << record_of(*q, p).json();
  } else {
    print_plan(*q, p);
  }
  if (o.svg.empty()) return 0;
  if (const auto drawn = draw(o, *q, *distances); !drawn) return fault(drawn.error());
  return 0;
}

}  // namespace

void add_wan_plan(CLI::App& wan, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      wan.add_subcommand("plan", "what a line of this length reaches, which limit binds, and what to do");
  c->add_option("--distance", o->distance, "between the sites, along the fibre")->type_name("KM");
  c->add_option("--extra", o->extra, "what endpoints and equipment add to the round trip")->type_name("TIME");
  c->add_option("--rate", o->rate, "of the line")->type_name("RATE");
  c->add_option("--mtu", o->mtu, "path MTU")->type_name("N");
  c->add_option("--message", o->message, "bytes of a WRITE")->type_name("SIZE");
  c->add_option("--loss", o->loss, "of each packet on the line")->type_name("P");
  c->add_option("--queue-pairs", o->queue_pairs, "that share the line")->type_name("N");
  c->add_option("--tx-depth", o->tx_depth, "requests that the program posts ahead")->type_name("N");
  c->add_option("--nic-depth", o->nic_depth, "requests that a queue pair of the NIC holds")->type_name("N");
  c->add_option("--packet-rate", o->packet_rate, "packets a second that NICs and boxes manage; 0: any number")
      ->type_name("N");
  c->add_option("--local", o->local, "round trip between an endpoint and its box")->type_name("TIME");
  c->add_option("--store", o->store, "memory of each box; 0: what it needs")->type_name("SIZE");
  c->add_option("--parity", o->parity, "data and repair packets of a group")->type_name("K+M");
  c->add_flag("--table", o->table, "a row for each of --distances and --messages");
  c->add_option("--distances", o->distances, "of --table and --svg")->type_name("KM,…");
  c->add_option("--messages", o->messages, "of --table")->type_name("SIZE,…");
  c->add_option("--svg", o->svg, "draws goodput over distance, and writes its numbers beside it as CSV")
      ->type_name("FILE");
  c->add_flag("-j,--json", o->json, "print JSON instead of tables");
  c->footer(
      "Nothing is simulated; src/wan/plan has the formulas. A kilometre takes 5 us. Rows of boxes say what a "
      "pair of\n"
      "them would reach.\n"
      "Examples:\n  weft wan plan --distance 1000km --loss 1e-5 --tx-depth 2048\n"
      "  weft wan plan --table --rate 400Gbps --distances 10km,80km,1200km\n"
      "  weft wan plan --message 512B --packet-rate 4500000 --svg wan.svg");
  c->callback([o, &exit_code] { exit_code = plan_line(*o); });
}

}  // namespace weft::cli
