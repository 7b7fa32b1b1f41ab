#include "tests/differential/party.h"

#include <algorithm>

#include "core/base/check.h"

namespace weft::differential {
namespace {

constexpr std::uint16_t kPort = 7471;
constexpr std::uint16_t kFirstLocalPort = 1000;  // a call's own port says which one of the caller's it is
constexpr unsigned kTalkShift = 24;              // of the numbers of requests and receives
constexpr std::uint64_t kReceiveBit = 1U << 20U;

std::string number(std::uint64_t n) { return std::string(" ").append(std::to_string(n)); }

std::string to_text(const cm::CmEvent& e) {
  constexpr const char* kNames[] = {"request",     "response",     "established",   "rejected",
                                    "unreachable", "disconnected", "timewait exit", "resolve request",
                                    "resolved",    "refused"};
  const cm::ConnInfo& i = e.info;
  std::string text = std::string("event ") + kNames[static_cast<std::size_t>(e.kind)];
  for (const std::uint64_t n :
       {std::uint64_t{e.conn.v}, std::uint64_t{e.listener.v}, std::uint64_t{e.reason},
        std::uint64_t{i.local_port}, std::uint64_t{i.peer_port}, std::uint64_t{i.qpn.v},
        std::uint64_t{i.peer_qpn.v}, std::uint64_t{i.rq_psn.v}, std::uint64_t{i.sq_psn.v},
        std::uint64_t{i.mtu}, std::uint64_t{i.responder_resources}, std::uint64_t{i.initiator_depth},
        std::uint64_t{i.retry_count}, std::uint64_t{i.rnr_retry}, std::uint64_t{i.peer_rnr_retry},
        std::uint64_t{i.ack_timeout}, std::uint64_t{i.tos}, std::uint64_t{i.flow_control},
        std::uint64_t{i.srq}})
    text += number(n);
  text += ' ';
  text += wire::mode_name(i.mode);
  text += i.options.irn ? " irn" : "";
  text += i.options.srnic ? " srnic" : "";
  text += " said";
  for (std::uint32_t b = 0; b < e.private_length; ++b) text += number(e.private_data[b]);
  return text;
}

}  // namespace

template <class T>
bool Party::did(std::size_t h, Time now, const char* what, const Talk& t, const Outcome<T>& done) {
  say(h, now,
      what + number(t.qpn.v) +
          (done ? " done" : " refused" + number(static_cast<std::uint64_t>(done.error()))));
  return done.has_value();
}

void Party::set_up(std::array<Host*, 2> hosts) {
  enter({open_door(*hosts[0], 0, hosts[1]->address()), open_door(*hosts[1], 1, hosts[0]->address())});
}

void Party::enter(std::array<std::unique_ptr<Door>, 2> doors) {
  for (std::size_t h = 0; h < 2; ++h) {
    Side& s = sides_[h];
    s.door = std::move(doors[h]);
    // Both ends know the numbers of queue pairs that are connected by hand.
    for (std::size_t k = 0; k < plan_.rounds.size(); ++k) {
      Talk& t = begin_talk(h, nullptr, h);
      t.messages = &plan_.rounds[k].messages[h];
      t.round = k;
      s.rounds.push_back(t.index);
      s.numbers.push_back(t.qpn);
      s.steps.push_back({plan_.rounds[k].at, What::kRound, t.index});
    }
    if (!plan_.calls[1 - h].empty()) {
      cm::ListenAttr l;
      l.port = kPort;
      l.backlog = 2;
      s.listener = *s.door->listen(l);
      if (plan_.closes[h] != kNever) s.steps.push_back({plan_.closes[h], What::kClose, 0});
    }
    next_call(h, Time{});
  }
}

Time Party::next_wake(std::size_t h) const {
  const Side& s = sides_[h];
  Time at = kNever;
  if (s.asking) return at;
  for (const Step& step : s.steps) at = std::min(at, step.due);
  return at;
}

bool Party::may_wait(std::size_t h, Time now) const {
  const auto& steps = sides_[h].steps;
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& x) { return x.what == What::kRound && x.due <= now; });
}

void Party::act(std::size_t h, Time now) {
  Side& s = sides_[h];
  if (s.asking) {
    Talk& t = s.talks[*s.asking];
    if (!raise(h, t, now)) return;
    s.asking.reset();
  }
  for (bool moved = true; moved && !s.asking; now = std::max(now, s.door->now())) {
    moved = poll(h, now);
    moved = hear_device(h, now) || moved;
    moved = hear_manager(h, now) || moved;
    moved = post(h, now) || moved;
    moved = part(h, now) || moved;
    moved = take_steps(h, now) || moved;
  }
}

void Party::leave(Time now) {
  for (std::size_t h = 0; h < 2; ++h) {
    say(h, now, sides_[h].door->counted());
    for (const Talk& t : sides_[h].talks) {
      if (t.qpn == kNoQpn) continue;
      show_state(h, t, now);
      say(h, now, "completed" + number(t.completed) + " received" + number(t.receives));
    }
  }
}

// --- queue pairs -------------------------------------------------------------------------------------------

Party::Talk& Party::begin_talk(std::size_t h, const Call* call, std::size_t side) {
  Side& s = sides_[h];
  Talk& t = s.talks.emplace_back();
  t.index = s.talks.size() - 1;
  t.call = call;
  t.side = side;
  if (call != nullptr) t.messages = &call->messages[side];
  const auto made = s.door->create_qp();
  if (made) t.qpn = *made;
  return t;
}

void Party::end_talk(std::size_t h, Talk& t, Time now) {
  if (t.qpn == kNoQpn) return;
  t.open = false;
  t.left = true;
  did(h, now, "destroy", t, sides_[h].door->destroy_qp(t.qpn));
  t.qpn = kNoQpn;
}

void Party::receive(std::size_t h, Talk& t) {
  Side& s = sides_[h];
  const Sge piece = receive_piece(t.receives, s.door->keys().lkey);
  static_cast<void>(
      s.door->post_receive(t.qpn, {t.index << kTalkShift | kReceiveBit | t.receives++, {&piece, 1}}));
}

void Party::show_state(std::size_t h, const Talk& t, Time now) {
  const auto attr = sides_[h].door->query_qp(t.qpn);
  CHECK(attr.has_value());
  say(h, now,
      "queue pair" + number(t.qpn.v) + " state" + number(static_cast<std::uint64_t>(attr->state)) + " " +
          std::string(wire::mode_name(attr->mode)));
}

void Party::opened(std::size_t h, Talk& t, Time now) {
  t.opened = t.open = true;
  show_state(h, t, now);
  ++counts_.modes[static_cast<std::size_t>(sides_[h].door->query_qp(t.qpn)->mode)];
}

Party::Talk* Party::talk_of(std::size_t h, cm::ConnId conn) {
  for (Talk& t : sides_[h].talks) {
    if (t.conn == conn) return &t;
  }
  return nullptr;
}

bool Party::poll(std::size_t h, Time now) {
  Side& s = sides_[h];
  std::array<Completion, 16> got;
  const std::uint32_t n = s.door->poll(got);
  for (std::uint32_t i = 0; i < n; ++i) {
    const Completion& c = got[i];
    say(h, now, differential::to_text(c));
    Talk& t = s.talks[c.wr_id >> kTalkShift];
    const bool good = c.status == WcStatus::kSuccess;
    ++(good ? counts_.completed : counts_.failed);
    if ((c.wr_id & kReceiveBit) == 0) {
      ++t.completed;
      if (!good) t.open = false;
    } else if (good && t.qpn != kNoQpn) {
      receive(h, t);
    }
  }
  return n != 0;
}

bool Party::hear_device(std::size_t h, Time now) {
  Side& s = sides_[h];
  bool moved = false;
  for (DeviceEvent e; s.door->device_event(e); moved = true) {
    say(h, now, "device" + number(static_cast<std::uint64_t>(e.kind)) + number(e.qpn.v));
    if (e.kind != DeviceEventKind::kCommEstablished) continue;
    for (Talk& t : s.talks) {
      if (t.qpn != e.qpn || !t.conn) continue;
      ++counts_.early;
      did(h, now, "notify", t, s.door->notify(*t.conn, now));
    }
  }
  return moved;
}

bool Party::post(std::size_t h, Time now) {
  Side& s = sides_[h];
  bool moved = false;
  for (Talk& t : s.talks) {
    std::deque<Request> requests;
    std::vector<const SendWr*> list;
    while (t.open && t.posted + list.size() < t.messages->size() &&
           t.posted + list.size() - t.completed < kDepth) {
      const std::size_t index = t.posted + list.size();
      Request& r = requests.emplace_back((*t.messages)[index], index,
                                         Keys{s.door->keys().lkey, sides_[1 - h].door->keys().rkey});
      r.wr.wr_id |= t.index << kTalkShift;
      list.push_back(&r.wr);
    }
    if (list.empty()) continue;
    moved = true;
    const std::size_t taken = s.door->post_sends(t.qpn, list);
    t.posted += taken;
    if (taken == list.size()) continue;
    say(h, now, "send refused");
    t.open = false;
  }
  return moved;
}

// Who is done leaves if that is the plan, and so does whoever can send no more.
bool Party::part(std::size_t h, Time now) {
  Side& s = sides_[h];
  bool moved = false;
  for (Talk& t : s.talks) {
    if (t.call == nullptr || !t.conn || t.left || !t.opened) continue;
    const bool done = t.call->leaves[t.side] && t.completed >= t.call->leaves_after[t.side];
    if (!done && t.open) continue;
    t.left = moved = true;
    did(h, now, "disconnect", t, s.door->disconnect(*t.conn, now));
  }
  return moved;
}

// --- calls -------------------------------------------------------------------------------------------------

void Party::next_call(std::size_t h, Time now) {
  Side& s = sides_[h];
  if (s.called == plan_.calls[h].size()) return;
  s.steps.push_back({now + plan_.calls[h][s.called].after, What::kCall, 0});
}

void Party::call(std::size_t h, Time now) {
  Side& s = sides_[h];
  const Call& c = plan_.calls[h][s.called];
  Talk& t = begin_talk(h, &c, 0);
  for (std::uint32_t i = 0; i < kReceives; ++i) receive(h, t);
  cm::ConnectAttr attr = c.terms;
  attr.local = s.door->address();
  attr.peer = sides_[1 - h].door->address();
  attr.port = c.heard ? kPort : kPort + 1;
  attr.local_port = static_cast<std::uint16_t>(kFirstLocalPort + s.called++);
  attr.qpn = t.qpn;
  attr.private_data = c.said[0];
  const auto conn = s.door->connect(attr, now);
  if (did(h, now, "connect", t, conn))
    t.conn = *conn;
  else
    over(h, t, now);
}

bool Party::hear_manager(std::size_t h, Time now) {
  Side& s = sides_[h];
  bool moved = false;
  for (cm::CmEvent e; s.door->next_event(e); moved = true) {
    say(h, now, to_text(e));
    if (e.kind == cm::CmEventKind::kConnectRequest) {
      requested(h, e, now);
      continue;
    }
    Talk* const t = talk_of(h, e.conn);
    if (t == nullptr) continue;  // its program gave it up
    switch (e.kind) {
      case cm::CmEventKind::kConnectResponse:
        answered(h, *t, now);
        break;
      case cm::CmEventKind::kEstablished:
        ++counts_.established;
        if (t->side == 1 && !t->call->whole) did(h, now, "finish", *t, s.door->finish(e.conn, t->qpn, now));
        opened(h, *t, now);
        break;
      case cm::CmEventKind::kDisconnected:
        ++counts_.parted;
        t->open = false;
        t->left = true;
        did(h, now, "fail", *t, s.door->fail_qp(t->qpn, now));
        break;
      case cm::CmEventKind::kRejected:
        ++counts_.rejected;
        over(h, *t, now);
        break;
      case cm::CmEventKind::kUnreachable:
        ++counts_.unreachable;
        over(h, *t, now);
        break;
      case cm::CmEventKind::kTimewaitExit:
        over(h, *t, now);
        break;
      default:
        CHECK(false);
    }
  }
  return moved;
}

void Party::requested(std::size_t h, const cm::CmEvent& e, Time now) {
  Side& s = sides_[h];
  const Call& c = plan_.calls[1 - h].at(e.info.peer_port - kFirstLocalPort);
  if (c.request == Taking::kRejects) {
    const auto done = s.door->reject(e.conn, c.said[1], now);
    return say(h, now, done ? "reject done" : "reject refused");
  }
  if (c.request == Taking::kAbandons) return s.door->abandon(e.conn, now);
  Talk& t = begin_talk(h, &c, 1);
  if (t.qpn == kNoQpn) return s.door->abandon(e.conn, now);
  t.conn = e.conn;
  for (std::uint32_t i = 0; i < kReceives; ++i) receive(h, t);
  if (c.request == Taking::kAccepts) return accept(h, t, now);
  s.steps.push_back({now + c.late, What::kAccept, t.index});
}

void Party::accept(std::size_t h, Talk& t, Time now) {
  cm::AcceptAttr attr = t.call->answer;
  attr.qpn = t.qpn;
  attr.private_data = t.call->said[1];
  if (!did(h, now, "accept", t, sides_[h].door->accept(*t.conn, attr, t.call->whole, now))) return;
  show_state(h, t, now);
}

void Party::answered(std::size_t h, Talk& t, Time now) {
  Side& s = sides_[h];
  switch (t.call->response) {
    case Taking::kAccepts:
      return complete(h, t, now);
    case Taking::kLate:
      return s.steps.push_back({now + t.call->late, What::kComplete, t.index});
    case Taking::kRejects:
      did(h, now, "reject", t, s.door->reject(*t.conn, t.call->said[0], now));
      return over(h, t, now);
    case Taking::kAbandons:
      s.door->abandon(*t.conn, now);
      return over(h, t, now);
  }
}

void Party::complete(std::size_t h, Talk& t, Time now) {
  did(h, now, "complete", t, sides_[h].door->complete(*t.conn, t.qpn, now));
}

// Nothing more is heard of this connection.
void Party::over(std::size_t h, Talk& t, Time now) {
  const bool called = t.side == 0;
  t.conn.reset();
  end_talk(h, t, now);
  if (called) next_call(h, now);
}

// --- by hand -----------------------------------------------------------------------------------------------

void Party::begin_round(std::size_t h, Talk& t, Time now) {
  Side& s = sides_[h];
  if (t.round > 0) end_talk(h, s.talks[s.rounds[t.round - 1]], now);
  for (std::uint32_t i = 0; i < kReceives; ++i) receive(h, t);
  if (!raise(h, t, now)) s.asking = t.index;
}

// False: the peer is being asked.
bool Party::raise(std::size_t h, Talk& t, Time now) {
  const Round& round = plan_.rounds[t.round];
  QpAttr a;
  a.mtu = round.mtu;
  a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  a.dest_qpn = sides_[1 - h].numbers[t.round];
  a.sq_psn = round.psn[h];
  a.rq_psn = round.psn[1 - h];
  a.max_rd_atomic = a.max_dest_rd_atomic = 2;
  a.min_rnr_timer = 1;
  a.timeout = round.timeout;
  std::optional<wire::Mode> mode;
  if (plan_.kinds[h] != Kind::kAuto) mode = plan_.modes[h];
  const auto risen = sides_[h].door->raise(t.qpn, a, mode, now);
  if (!risen) return false;
  now = std::max(now, sides_[h].door->now());
  if (!mode) ++counts_.asked;
  if (did(h, now, "raise", t, *risen)) opened(h, t, now);
  return true;
}

bool Party::take_steps(std::size_t h, Time now) {
  Side& s = sides_[h];
  const auto due = std::find_if(s.steps.begin(), s.steps.end(), [&](const Step& x) { return x.due <= now; });
  if (due == s.steps.end()) return false;
  const Step step = *due;
  s.steps.erase(due);
  switch (step.what) {
    case What::kCall:
      call(h, now);
      break;
    case What::kAccept:
      if (Talk& t = s.talks[step.talk]; t.conn) accept(h, t, now);
      break;
    case What::kComplete:
      if (Talk& t = s.talks[step.talk]; t.conn) complete(h, t, now);
      break;
    case What::kClose:
      s.door->close(*s.listener, now);
      break;
    case What::kRound:
      begin_round(h, s.talks[step.talk], now);
      break;
  }
  return true;
}

}  // namespace weft::differential
