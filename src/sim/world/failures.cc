#include "sim/world/failures.h"

#include <algorithm>

namespace weft::sim {

Failures::Failures(const Scenario& scenario, Network& network, Timeline& timeline)
    : network_(network),
      timeline_(timeline),
      reconverge_(scenario.network.reconverge),
      change_(timeline.add<&Failures::on_change>(*this)),
      reconverged_(timeline.add<&Failures::on_reconverged>(*this)),
      changes_(scenario.derived.link_changes),
      failed_(scenario.graph.links.size(), 0) {
  for (const LinkChange& c : changes_) timeline.wake(change_, c.at);
}

void Failures::on_change(Time now) {
  const LinkChange& c = changes_[next_++];
  failed_[c.link] += c.up ? -1U : 1U;
  network_.set_link(c.link, failed_[c.link] == 0);
  // Switches learn at the same time of links that failed at the same time.
  if (next_ == changes_.size() || changes_[next_].at != now) timeline_.wake(reconverged_, now + reconverge_);
}

Result<std::vector<LinkChange>> link_changes(const Scenario& s) {
  std::vector<LinkChange> changes;
  Prng random(s.seed * 0xA24B'AED4'963E'E407ULL + 1U);
  for (const FailureSpec& f : s.failures) {
    std::vector<std::size_t> links;
    if (!f.link.empty()) {
      const auto named = s.graph.links_named(f.link);
      if (!named) return fail("failure.link: " + named.error().message);
      links = *named;
    } else {
      for (std::size_t i = 0; i < s.graph.links.size(); ++i) {
        if (s.graph.links[i].a >= s.graph.hosts && s.graph.links[i].b >= s.graph.hosts) links.push_back(i);
      }
      if (links.size() < f.links)
        return fail("failure.links: " + std::to_string(f.links) + " is more than the " +
                    std::to_string(links.size()) + " links between switches");
      for (std::size_t i = 0; i < f.links; ++i)
        std::swap(links[i], links[random.between(i, links.size() - 1)]);
      links.resize(f.links);
    }
    for (const std::size_t link : links) {
      changes.push_back({Time{} + f.at, link, false});
      if (f.repair.ps != 0) changes.push_back({Time{} + f.repair, link, true});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
  return changes;
}

}  // namespace weft::sim
