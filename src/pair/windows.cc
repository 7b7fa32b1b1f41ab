// Memory windows of a swarm world: over the sinks of the peer's WRITEs, bound, used a few times, shut, bound
// again; and binds that must fail.
#include <algorithm>

#include "core/base/check.h"
#include "pair/workload.h"

namespace weft::pair {
namespace {

Covered covered_by(BindFault f) {
  switch (f) {
    case BindFault::kBeyond:
    case BindFault::kEmpty:
    case BindFault::kWrongKey:
      return Covered::binds_beyond;
    case BindFault::kNoBindRight:
    case BindFault::kNoLocalWrite:
    case BindFault::kBindRight:
      return Covered::binds_without_right;
    case BindFault::kForeignRegion:
    case BindFault::kForeignWindow:
      return Covered::binds_foreign;
    default:
      return Covered::binds_in_use;
  }
}

}  // namespace

bool Workload::uses_window(const std::deque<Posted>& posted) {
  return std::any_of(posted.begin(), posted.end(), [](const Posted& p) { return p.through_window; });
}

void Workload::make_window(World& world, End& e, PdId pd, std::uint32_t memory) {
  Host& here = world.host(e.host);
  e.window.key = here.allocate_window(pd);
  e.window.state = Window::State::kShut;
  const BindFault bad = plan_of(e).bad_bind[e.side];
  if (bad != BindFault::kForeignRegion && bad != BindFault::kForeignWindow) return;
  const PdId other = *here.device.alloc_pd();
  if (bad == BindFault::kForeignRegion) {
    e.foreign = here.allocate(other, memory, kLocalWrite | kRemoteWrite | kMwBind, random_);
  } else {
    e.foreign_window = here.allocate_window(other);
  }
}

WindowBind Workload::good_bind(End& e) {
  const Buffer& sinks = peer_of(e).write_sinks.buffer;
  const Key key = e.window.key;
  return {{(key.v & ~0xFFU) | ((key.v + 1U) & 0xFFU)},
          sinks.mr.lkey,
          sinks.address,
          sinks.bytes.size(),
          kRemoteWrite};
}

void Workload::spoil_bind(const End& e, BindFault fault, WindowBind& bind) {
  const auto over = [&](const Buffer& b) {
    bind.region = b.mr.lkey;
    bind.address = b.address;
    bind.length = b.bytes.size();
  };
  switch (fault) {
    case BindFault::kBeyond:
      if (random_.below(2) == 0)
        ++bind.address;  // the last byte lies outside
      else
        ++bind.length;
      break;
    case BindFault::kEmpty:
      bind.length = 0;
      break;
    case BindFault::kNoBindRight:
      over(e.no_right);
      break;
    case BindFault::kNoLocalWrite:
      over(e.source);
      break;
    case BindFault::kBindRight:
      bind.access |= kMwBind;
      break;
    case BindFault::kWrongKey:
      bind.region = {bind.region.v ^ 0x5A};
      break;
    case BindFault::kForeignRegion:
      over(e.foreign);
      break;
    case BindFault::kForeignWindow:
      bind.window = e.foreign_window;
      break;
    case BindFault::kNone:
    case BindFault::kInUse:
    case BindFault::kCount:
      break;
  }
}

// A bind or an invalidation needs a place in the send queue, like any request.
void Workload::tend_window(World& world, End& e) {
  Window& w = e.window;
  const BindFault bad = plan_of(e).bad_bind[e.side];
  const bool turn_of_bad = bad != BindFault::kNone && w.binds == plan_of(e).good_binds[e.side];
  const bool spoil =
      turn_of_bad && w.state == (bad == BindFault::kInUse ? Window::State::kOpen : Window::State::kShut);
  if (w.state != Window::State::kShut && w.state != Window::State::kClosing && !spoil) return;
  SendWr wr;
  wr.wr_id = e.last_id + 1;
  wr.flags = kSendSignaled | (random_.below(4) == 0 ? kSendFence : 0);
  Window::State next = Window::State::kNone;
  if (w.state == Window::State::kShut || spoil) {
    wr.opcode = WrOpcode::kBindWindow;
    wr.bind = good_bind(e);
    next = Window::State::kBinding;
    if (spoil) {
      spoil_bind(e, bad, wr.bind);
      next = Window::State::kSpoilt;
    }
  } else if (w.state == Window::State::kClosing && !w.by_peer && !uses_window(peer_of(e).posted)) {
    wr.opcode = WrOpcode::kLocalInvalidate;
    wr.imm = w.key.v;
    next = Window::State::kShutting;
  } else {
    return;
  }
  if (!world.post_send(e.host, e.qpn, wr)) return;
  e.last_id = wr.wr_id;
  e.posted.push_back({wr.wr_id});
  e.posted.back().signaled = true;
  if (next == Window::State::kBinding) {
    w.key = wr.bind.window;
    ++w.binds;
  }
  w.state = next;
}

void Workload::window_completed(World& world, End& e, const Completion& c) {
  Window& w = e.window;
  Coverage& coverage = world.host(e.host).coverage;
  if (c.status == WcStatus::kBindError) coverage.hit(covered_by(plan_of(e).bad_bind[e.side]));
  if (c.status != WcStatus::kSuccess) return;
  if (c.opcode == WcOpcode::kBindWindow) {
    coverage.hit(Covered::windows_bound);
    w.uses = static_cast<std::uint32_t>(random_.between(1, 4));
    w.by_peer = random_.below(2) == 0;
    w.state = Window::State::kOpen;
  } else if (c.opcode == WcOpcode::kLocalInvalidate) {
    coverage.hit(Covered::windows_shut_here);
    w.state = Window::State::kShut;
  } else if ((c.wr_id & kReceiveMark) != 0 && (c.flags & kWcWithInvalidate) != 0) {
    coverage.hit(Covered::windows_shut_by_peer);
    w.state = Window::State::kShut;
  }
}

}  // namespace weft::pair
