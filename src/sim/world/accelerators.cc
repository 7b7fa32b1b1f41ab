#include "sim/world/accelerators.h"

#include <algorithm>
#include <bit>

#include "sim/fabric/frame.h"

namespace weft::sim {
namespace {

using Links = std::vector<std::size_t>;

// The one link of "host0-edge0", and the node that is named first: the box's site.
Result<std::pair<std::size_t, std::uint32_t>> end_named(const Scenario& s, const std::string& ends) {
  const auto links = s.graph.links_named(ends);
  if (!links) return tl::unexpected(links.error());
  if (links->size() != 1) return fail("there are " + std::to_string(links->size()) + " links " + ends);
  return std::pair{links->front(), *s.graph.node(ends.substr(0, ends.find('-')))};
}

Result<void> give_length(Scenario& s, const LineSpec& l, Links& taken) {
  if (l.link.empty()) return fail("line.link: name the two nodes of the link, such as edge0-edge1");
  const auto links = s.graph.links_named(l.link);
  if (!links) return fail("line.link: " + links.error().message);
  if (const auto ok = l.impair.validate(); !ok) return fail("line: " + ok.error().message);
  for (const std::size_t i : *links) {
    if (std::find(taken.begin(), taken.end(), i) != taken.end())
      return fail("line.link: " + l.link + " has another [[line]] already");
    taken.push_back(i);
    Link& link = s.graph.links[i];
    if (l.distance) link.delay = propagation(*l.distance);
    if (l.rate.bps != 0) link.rate = l.rate;
    link.impair = l.impair;
  }
  return {};
}

std::string place_of(const AcceleratorSpec& a) { return a.link.empty() ? a.near + " and " + a.far : a.link; }

Result<void> place_pair(Scenario& s, std::size_t table) {
  const AcceleratorSpec& a = s.accelerators[table];
  if (a.link.empty() == (a.near.empty() && a.far.empty()) || a.near.empty() != a.far.empty())
    return fail("accelerator: give either link, or near and far, the links in which the two boxes stand");
  std::vector<std::pair<std::size_t, std::uint32_t>> places;  // link and site, two for each pair
  if (a.link.empty()) {
    for (const auto& [name, ends] : {std::pair{"near", a.near}, std::pair{"far", a.far}}) {
      const auto place = end_named(s, ends);
      if (!place) return fail("accelerator." + std::string(name) + ": " + place.error().message);
      places.push_back(*place);
    }
  } else {
    const auto links = s.graph.links_named(a.link);
    if (!links) return fail("accelerator.link: " + links.error().message);
    for (const std::size_t i : *links) {
      const Link l = s.graph.links[i];
      if (s.graph.is_box(l.a) || s.graph.is_box(l.b))
        return fail("accelerator.link: other boxes stand at " + a.link + " already");
      places.emplace_back(i, l.a);
      places.emplace_back(i, l.b);
    }
  }
  const auto check = [&](const std::pair<std::size_t, std::uint32_t>& p) {
    const Link& l = s.graph.links[p.first];
    return !s.graph.is_box(p.second) && (l.a == p.second || l.b == p.second);
  };
  for (const auto& [link, site] : places) {
    if (!check({link, site}))
      return fail("accelerator: " + place_of(a) + ": another box stands there already");
    // To its site a box is next door.
    s.graph.insert_box(link, site, s.topology.rate, s.topology.delay);
    s.derived.accelerator_of.push_back(table);
  }
  return {};
}

std::string refused(const Scenario& s) {
  if (s.transport.tcp) return "accelerator: boxes know no tcp, leave them out";
  if (s.network.routing == Routing::kSpray)
    return "accelerator: routing = spray takes packets of a connection past the boxes, choose ecmp or fixed";
  if (s.network.switches.credits) return "accelerator: boxes give no credit back, choose pfc or neither";
  return {};
}

std::uint64_t bytes_in(Rate rate, Duration d) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{rate.bps} * static_cast<std::uint64_t>(d.ps) / 8'000'000'000'000ULL);
}

std::uint32_t power(std::uint64_t n, std::uint32_t least, std::uint32_t most) {
  return static_cast<std::uint32_t>(std::bit_ceil(std::clamp<std::uint64_t>(n, least, most)));
}

}  // namespace

Result<void> place_lines(Scenario& s) {
  Links taken;
  for (const LineSpec& l : s.lines) {
    if (const auto ok = give_length(s, l, taken); !ok) return ok;
  }
  s.derived.boxes.clear();
  s.derived.accelerator_of.clear();
  for (std::size_t i = 0; i < s.accelerators.size(); ++i) {
    if (s.accelerators[i].acknowledge == AcceleratorSpec::Acknowledge::kNone) continue;
    if (std::string wrong = refused(s); !wrong.empty()) return fail(std::move(wrong));
    if (const auto ok = place_pair(s, i); !ok) return ok;
  }
  return {};
}

Result<void> configure_boxes(Scenario& s) {
  const Duration trip = s.derived.base_rtt;
  wire::Header full;
  full.opcode = wire::kWriteMiddle;
  const std::uint64_t frame = frame_bytes(full, s.transport.mtu, Framing::kWire);
  std::uint64_t queue_pairs = s.derived.traffic_flows;
  for (const FlowSpec& f : s.flows) queue_pairs += f.qps;
  for (std::size_t i = 0; i < s.graph.boxes.size(); ++i) {
    const AcceleratorSpec& a = s.accelerators[s.derived.accelerator_of[i]];
    const Rate rate = s.graph.links[s.graph.boxes[i].line].rate;
    const std::uint64_t bdp = rate.bps == 0 ? 65536 * frame : bytes_in(rate, trip);
    wan::BoxConfig b;
    b.acknowledge = a.acknowledge == AcceleratorSpec::Acknowledge::kFar ? wan::Acknowledge::kFar
                                                                        : wan::Acknowledge::kEarly;
    b.instance = (s.seed * 0x9E37'79B9'7F4A'7C15ULL << 20U) + 2 * i + 1;  // no two alike
    b.seed = s.seed + i;
    b.secret = {'w', 'e', 'f', 't'};
    b.store = a.store;
    if (a.store.n < 100'000) return fail("accelerator.store: less than 100kB holds no traffic");
    b.frames = a.frames != 0 ? a.frames : power(std::max(4 * bdp, a.store.n) / frame, 1024, 1U << 18U);
    b.queue = power(bdp / frame, 1024, 65536);
    b.halves = power(queue_pairs * 2, 64, 65536);
    b.window = power(2 * bdp / frame + 64, 64, 65536);
    b.line_timeout = trip * 2 + milliseconds(1);
    b.patience = std::max(b.patience, trip * 6);
    b.hello = std::max(b.hello, trip);
    b.give_up = a.give_up;
    b.quiet = a.quiet;
    const auto parity = wan::parse_parity_terms("accelerator.parity", a.parity);
    if (!parity) return tl::unexpected(parity.error());
    b.parity = *parity;
    b.repair_answers = a.repair_answers;
    if (b.quiet.ps <= 0) return fail("accelerator.quiet must be positive");
    if (b.give_up <= b.patience)
      return fail("accelerator.give_up must be longer than a partner may be silent, " +
                  std::to_string(b.patience.ps / milliseconds(1).ps) + " ms here");
    if (const auto ok = b.validate(); !ok) return fail("accelerator." + ok.error().message);
    s.derived.boxes.push_back(std::move(b));
  }
  return {};
}

BoxCost cost_of(const AcceleratorSpec& a) { return {a.frame_time, a.rate}; }

}  // namespace weft::sim
