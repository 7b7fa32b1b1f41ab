// The table of paths (sched/paths.h says what one is). Nobody gives a path back: when all rows are taken, a
// new path takes the row of one that nothing uses any more. Queue pairs, address handles, posted datagrams
// and bytes on their way use a path; the walk over all of them costs the packet path nothing, and no count
// can be wrong. docs/decisions/unused-paths-are-replaced.md has the alternative.
#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/transport/ud/requester.h"

namespace weft {
namespace {

// A queue pair's own path: from RTR on. Datagrams name theirs.
bool has_path(const QueuePair& q) {
  return q.type != QpType::kUd && q.state != QpState::kReset && q.state != QpState::kInit;
}

std::vector<bool> paths_in_use(Engine& e) {
  std::vector<bool> used(e.paths.size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Path& p = e.paths[i];
    used[i] = p.in_flight != 0 || p.reads != 0 || p.waiting_head != UINT32_MAX || p.called != UINT32_MAX;
  }
  for (const AddressHandle& a : e.address_handles.rows) {
    if (a.live) used[a.path.v] = true;
  }
  for (std::size_t i = 0; i < e.colds.size(); ++i) {
    if (e.colds[i] == nullptr) continue;
    const QueuePair& q = e.qp(static_cast<std::uint32_t>(i));
    if (!q.has(kInUse)) continue;
    if (has_path(q)) used[q.path.v] = true;
    if (q.type != QpType::kUd) continue;
    for (std::uint16_t slot = q.sq_head; slot != q.sq_tail; ++slot) {
      used[ud_path(e.send_wqe(*e.colds[i], slot)).v] = true;
    }
  }
  return used;
}

}  // namespace

Outcome<PathId> Device::open_path(const PathAttr& attr) {
  Engine& e = *engine_;
  e.settle();
  for (std::uint32_t i = 0; i < e.paths.size(); ++i) {
    Path& known = e.paths[i];
    if (!known.attr.same_as(attr)) continue;
    // What the peer offers now counts from the moment when nothing is on its way.
    const bool idle = known.in_flight == 0 && known.reads == 0 && known.waiting_head == UINT32_MAX &&
                      known.called == UINT32_MAX;
    if (idle && attr.credit.n != 0 && attr.credit.n != known.credit) known.credit = known.cap = attr.credit.n;
    return PathId{i};
  }
  Path p;
  p.attr = attr;
  p.credit = attr.credit.n != 0 ? attr.credit.n : e.config.path_credit.n;
  p.cap = p.credit;
  if (e.paths.size() < e.config.max_path) {
    e.paths.push_back(p);
    return PathId{static_cast<std::uint32_t>(e.paths.size() - 1)};
  }
  const std::vector<bool> used = paths_in_use(e);
  for (std::uint32_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    e.paths[i] = p;
    return PathId{i};
  }
  return fail(Errc::kNoMemory);
}

const PathAttr& Device::path(PathId id) const { return engine_->paths[id.v].attr; }
Bytes Device::path_in_flight(PathId id) const { return {engine_->paths[id.v].in_flight}; }

}  // namespace weft
