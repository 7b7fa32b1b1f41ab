// Packets of the line that were lost and that parity gives back.
//
// What a group misses is known when its parity comes, and what it does not miss may be with the endpoint by
// then. So the last frames of the line stay here for a while, also when the store has let go of them:
//
//     tail                                   head
//   ---|--x--o--o--x--x--o--o--o--o--o--o--o--|--->  o = also in the store   x = only here any more
//
// A packet that comes ahead of a gap is not reported at once: a report makes the partner send again what is
// missing before it. It waits as long as parity may still come, and is not named at all when the gap has
// closed by then.
//
// Of a group from which nothing is missed nothing is kept, and its signature is looked at now and then only,
// so that an old group cannot pass for a new one. A group that is used was verified. A restored packet takes
// the path of one that came, and counts only if it is one that was missed.
#include <algorithm>
#include <bit>

#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

using Group = Restoring::Group;
using Recent = Restoring::Recent;

Recent& at(Restoring& r, std::uint32_t i) { return r.recent[i & (Restoring::kRecent - 1)]; }

// So long frames and groups are kept: parity comes within half of it.
Duration kept_for(const BoxState& b) { return std::max(b.partner.parity_wait * 2, parity_wait(b) * 2); }

void forget_oldest(BoxState& b) {
  Recent& e = at(b.restoring, b.restoring.tail++);
  if (e.only_here) b.released.push_back(e.body);
  e = {};
}

void drop(BoxState& b, Group& g) {
  for (const BodyId body : g.rows) {
    if (body != kNoBody) b.released.push_back(body);
  }
  g.used = false;
  --b.restoring.waiting;
}

bool is_missed(const BoxState& b, const Giving& g, WirePsn psn) {
  if (!g.used || g.orphan || g.syndrome != 0) return false;
  const Seq seq = expand(psn, g.line.expected);
  if (seq < g.line.expected || seq - g.line.expected >= b.pool.window()) return false;
  return g.line.block == kNoBlock || !b.pool.arrived(g.line.block, seq);
}

// A bit for each member.
std::uint64_t missed(const BoxState& b, const ParityHeader& h) {
  std::uint64_t bits = 0;
  std::uint32_t member = 0;
  for (std::uint32_t i = 0; i < h.runs; ++i) {
    const ParityRun& run = h.run[i];
    const auto it = b.giving_by_lease.find(run.lease);
    if (it != b.giving_by_lease.end()) {
      const Giving& g = b.givings[it->second];
      const Seq end = expand({(run.first.v + run.count) & kPsnMask}, g.line.expected);
      // Mostly all of it is here.
      for (std::uint32_t k = end <= g.line.expected ? run.count : 0U; k < run.count; ++k) {
        if (is_missed(b, g, {(run.first.v + k) & kPsnMask})) bits |= std::uint64_t{1} << (member + k);
      }
    }
    member += run.count;
  }
  return bits;
}

// A bit for each member that is here.
std::uint64_t collect(BoxState& b, const ParityHeader& h, std::array<BodyId, 64>& here) {
  std::uint64_t found = 0;
  Restoring& r = b.restoring;
  for (std::uint32_t i = r.tail; i != r.head; ++i) {
    const Recent& e = at(r, i);
    std::uint32_t member = 0;
    for (std::uint32_t k = 0; k < h.runs; ++k) {
      const ParityRun& run = h.run[k];
      const std::uint32_t place = (e.psn.v - run.first.v) & kPsnMask;
      if (run.lease == e.lease && place < run.count) {
        here[member + place] = e.body;
        found |= std::uint64_t{1} << (member + place);
        break;
      }
      member += run.count;
    }
  }
  return found;
}

bool same_group(const Group& g, std::span<const std::uint8_t> bytes) {
  const std::uint32_t n = parity_header_bytes(g.header.runs);
  return bytes.size() >= n && std::equal(g.bytes.begin() + 1, g.bytes.begin() + n, bytes.begin() + 1);
}

Group* place(BoxState& b) {
  Restoring& r = b.restoring;
  Group* oldest = &r.groups[0];
  for (Group& g : r.groups) {
    if (!g.used) return &g;
    if (g.at < oldest->at) oldest = &g;
  }
  b.counters.add(BoxCounter::beyond_parity);
  drop(b, *oldest);
  return oldest;
}

bool verified(BoxState& b, const ParityHeader& h, std::span<const std::uint8_t> bytes) {
  Restoring& r = b.restoring;
  if (h.number + Restoring::kOldest <= r.newest || !authentic(bytes, b.key)) {
    b.counters.add(BoxCounter::not_heard);
    return false;
  }
  r.newest = std::max(r.newest, h.number);
  return true;
}

}  // namespace

bool on_parity(BoxState& b, const Frame& f, std::span<const std::uint8_t> bytes, Time now) {
  Restoring& r = b.restoring;
  ParityHeader h;
  if (r.groups.empty() || f.body == kNoBody || !decode(bytes, h)) return false;
  if (h.receiver != b.config.instance || h.sender != b.partner.instance) return false;
  b.counters.add(BoxCounter::parity_heard);
  for (Group& g : r.groups) {
    if (!g.used || g.header.number != h.number || !same_group(g, bytes)) continue;
    if (g.rows[h.row] != kNoBody) {
      let_go(b, f);
    } else {
      g.rows[h.row] = f.body;
      ++g.rows_here;
      r.look = true;
    }
    return true;
  }
  const std::uint64_t misses = missed(b, h);
  const bool old = misses == 0 && h.number < r.newest + Restoring::kVerifyEvery;
  if (old || !verified(b, h, bytes) || misses == 0) {
    let_go(b, f);
    return true;
  }
  Group* g = place(b);
  g->used = true;
  g->header = h;
  std::copy_n(bytes.begin(), parity_header_bytes(h.runs), g->bytes.begin());
  g->at = now;
  g->rows.fill(kNoBody);
  g->rows[h.row] = f.body;
  g->rows_here = 1;
  ++r.waiting;
  r.look = true;
  b.deadlines.at_latest(b.parity_row(), now.after(kept_for(b)));
  return true;
}

std::uint32_t remember(BoxState& b, const Giving& g, Seq seq, BodyId body, Time now) {
  if (!b.config.parity.there() || !b.partner.parity.there()) return 0;
  Restoring& r = b.restoring;
  if (r.head - r.tail == Restoring::kRecent) forget_oldest(b);
  if (r.head == UINT32_MAX) {  // stamps begin anew; what the store has of older ones is its own again
    while (r.tail != r.head) forget_oldest(b);
    r.head = r.tail = 0;
  }
  if (r.head == r.tail) b.deadlines.at_latest(b.parity_row(), now.after(kept_for(b)));
  at(r, r.head) = {g.lease, seq.wire(), body, now, false};
  if (r.waiting != 0) r.look = true;
  return ++r.head;  // 0 is no stamp
}

void let_go_of_recent(BoxState& b, std::uint32_t stamp, BodyId body) {
  Restoring& r = b.restoring;
  if (stamp != 0 && stamp - 1 - r.tail < r.head - r.tail) {
    Recent& e = at(r, stamp - 1);
    if (e.body == body) {
      e.only_here = true;
      return;
    }
  }
  b.released.push_back(body);
}

bool tell_later(BoxState& b, const Giving& g, Seq seq, Time now) {
  if (!b.config.parity.there() || !b.partner.parity.there()) return false;
  const Time due = now.after(b.partner.parity_wait);
  if (!b.restoring.unnamed.push({b.index_of(g), g.lease, seq, due})) return false;
  b.deadlines.at_latest(b.parity_row(), due);
  return true;
}

void tell_what_is_due(BoxState& b, Time now) {
  Ring<Restoring::Unnamed>& waiting = b.restoring.unnamed;
  for (; !waiting.empty() && waiting.front().due <= now; waiting.pop()) {
    const Restoring::Unnamed& u = waiting.front();
    Giving& g = b.givings[u.giving];
    if (!g.used || g.orphan || g.syndrome != 0 || g.lease != u.lease || u.seq <= g.line.expected) continue;
    name_ahead(b, g, u.seq);
  }
}

void forget_recent(BoxState& b, Time now) {
  Restoring& r = b.restoring;
  while (r.tail != r.head && at(r, r.tail).at.after(kept_for(b)) <= now) forget_oldest(b);
}

void forget_groups(BoxState& b, Time now) {
  if (b.restoring.waiting == 0) return;
  for (Group& g : b.restoring.groups) {
    if (!g.used || g.at.after(kept_for(b)) > now) continue;
    if (missed(b, g.header) != 0) b.counters.add(BoxCounter::beyond_parity);
    drop(b, g);
  }
}

Time restoring_deadline(const BoxState& b) {
  const Restoring& r = b.restoring;
  Time due = kNever;
  if (r.tail != r.head) due = r.recent[r.tail & (Restoring::kRecent - 1)].at.after(kept_for(b));
  if (!r.unnamed.empty()) due = std::min(due, r.unnamed.front().due);
  for (const Group& g : r.groups) {
    if (g.used) due = std::min(due, g.at.after(kept_for(b)));
  }
  return due;
}

bool next_restore(BoxState& b, Restore& out) {
  Restoring& r = b.restoring;
  if (!r.look) return false;
  for (Group& g : r.groups) {
    if (!g.used) continue;
    const std::uint64_t misses = missed(b, g.header);
    if (misses == 0) {
      drop(b, g);
      continue;
    }
    std::array<BodyId, 64> here;
    here.fill(kNoBody);
    const std::uint32_t members = g.header.members();
    const auto lacks = members - static_cast<std::uint32_t>(std::popcount(collect(b, g.header, here)));
    if (lacks > g.rows_here) continue;
    out = {};
    out.members = members;
    out.here = here;
    out.wanted = misses;
    out.header_bytes = parity_header_bytes(g.header.runs);
    for (std::uint8_t row = 0; row < g.header.repair && out.rows < lacks; ++row) {
      if (g.rows[row] != kNoBody) out.row[out.rows++] = {row, g.rows[row]};
    }
    r.last = g.header;
    r.last_wanted = misses;
    drop(b, g);
    return true;
  }
  r.look = false;
  return false;
}

void on_restored(BoxState& b, const Frame& f, Time now) {
  Restoring& r = b.restoring;
  const auto it = b.giving_of.find(HalfName{f.source, f.destination, f.header.dest_qp});
  std::uint32_t member = 0;
  bool right = false;
  for (std::uint32_t i = 0; i < r.last.runs && it != b.giving_of.end() && !right; ++i) {
    const ParityRun& run = r.last.run[i];
    const std::uint32_t place = (f.header.psn.v - run.first.v) & kPsnMask;
    right = b.givings[it->second].lease == run.lease && place < run.count &&
            (r.last_wanted >> (member + place) & 1U) != 0;
    member += right ? place : run.count;
  }
  if (!right) {
    b.counters.add(BoxCounter::restored_wrong);
    return let_go(b, f);
  }
  r.last_wanted &= ~(std::uint64_t{1} << member);
  b.counters.add(BoxCounter::restored);
  if (!on_line_request(b, f, now)) let_go(b, f);
}

}  // namespace weft::wan
