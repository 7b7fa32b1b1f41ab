#include "live/engine/connections.h"

#include <new>

#include "live/engine/nic_state.h"
#include "live/wires/neighbours.h"

namespace weft::live {
namespace {

// The queue pair through the states that remain, as its connection has agreed. One that was not brought to
// INIT begins there.
Outcome<void> bring_up_owned(Nic& nic, cm::ConnId conn, Qp& qp) {
  const auto info = nic.connections_owned().info(conn);
  if (!info) return fail(info.error());
  const PathAttr to{.peer = info->peer, .traffic_class = info->tos, .hop_limit = 0};
  for (const QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts}) {
    const auto setup = nic.connections_owned().qp_setup(conn, state);
    if (!setup) return fail(setup.error());
    record(&qp).mode = info->mode;
    const auto done = record(&qp).nic->modify_owned(qp, setup->attr, setup->mask, to);
    if (!done) return done;
  }
  return {};
}

// The connections are the first shard's, and it is owned; the queue pair may be another's.
Outcome<void> bring_up(Nic& nic, cm::ConnId conn, Qp& qp) {
  Nic& its = *record(&qp).nic;
  if (&its == &nic) return bring_up_owned(nic, conn, qp);
  const Owned owned(its.ownership());
  const auto up = bring_up_owned(nic, conn, qp);
  its.settle_owned();
  its.dispatch_events_owned();
  return up;
}

bool holds(const Nic& nic, cm::ConnId conn, const ConnectionSink& sink) {
  const auto it = nic.sinks.find(conn.v);
  return it != nic.sinks.end() && it->second == &sink;
}

// False: there is no memory.
template <class Map, class Value>
bool enter(Map& map, std::uint32_t number, const Value& value) {
  try {
    map[number] = value;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Outcome<void> claim(Nic& nic, std::uint32_t service) {
  Neighbours* const others = nic.neighbours_owned();
  if (others == nullptr) return {};
  try {
    return others->claim(service);
  } catch (const std::bad_alloc&) {
    return fail(Errc::kNoMemory);
  }
}

}  // namespace

Outcome<cm::ListenerId> Connections::listen(const cm::ListenAttr& attr, ConnectionSink& sink) {
  const Owned owned(nic_->ownership());
  const auto listener = nic_->connections_owned().listen(attr);
  if (!listener) return listener;
  const std::uint32_t service = static_cast<std::uint32_t>(attr.space) << 16U | attr.port;
  Outcome<void> done = fail(Errc::kNoMemory);
  if (enter(nic_->listeners, listener->v, Nic::Listener{&sink, service})) done = claim(*nic_, service);
  if (!done) {
    nic_->listeners.erase(listener->v);
    static_cast<void>(nic_->connections_owned().close(*listener, nic_->clock().now()));
    return fail(done.error());
  }
  return listener;
}

void Connections::close(cm::ListenerId listener) {
  const Owned owned(nic_->ownership());
  const auto it = nic_->listeners.find(listener.v);
  if (it != nic_->listeners.end()) {
    if (Neighbours* const others = nic_->neighbours_owned(); others != nullptr)
      others->give_back(it->second.service,
                        nic_->clock().now() + nic_->connections_owned().config().reopening);
    nic_->listeners.erase(it);
  }
  static_cast<void>(nic_->connections_owned().close(listener, nic_->clock().now()));
  nic_->settle_owned();
}

// A connection that nobody would be told of is ended before a word of it has left.
Outcome<void> Connections::keep_owned(const Outcome<cm::ConnId>& made, ConnectionSink& sink,
                                      std::optional<cm::ConnId>& conn) {
  if (!made) return fail(made.error());
  const bool kept = enter(nic_->sinks, made->v, &sink);
  if (kept)
    conn = *made;
  else
    static_cast<void>(nic_->connections_owned().abandon(*made, nic_->clock().now()));
  nic_->settle_owned();
  if (!kept) return fail(Errc::kNoMemory);
  return {};
}

Outcome<void> Connections::connect(const cm::ConnectAttr& attr, ConnectionSink& sink,
                                   std::optional<cm::ConnId>& conn) {
  const Owned owned(nic_->ownership());
  return keep_owned(nic_->connections_owned().connect(attr, nic_->clock().now()), sink, conn);
}

Outcome<void> Connections::complete(cm::ConnId conn, const ConnectionSink& sink, Qp& qp) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const auto up = bring_up(*nic_, conn, qp);
  if (!up) return up;
  const auto done = nic_->connections_owned().establish(conn, nic_->clock().now());
  nic_->settle_owned();
  nic_->dispatch_events_owned();
  return done;
}

Outcome<void> Connections::establish(cm::ConnId conn, const ConnectionSink& sink) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const auto done = nic_->connections_owned().establish(conn, nic_->clock().now());
  nic_->settle_owned();
  nic_->dispatch_events_owned();
  return done;
}

// The answer is written first, for it draws the numbers that the queue pair begins with; it leaves when
// everything is settled.
Outcome<void> Connections::accept(cm::ConnId conn, const ConnectionSink& sink, const cm::AcceptAttr& attr,
                                  Qp* qp) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const Time now = nic_->clock().now();
  const auto accepted = nic_->connections_owned().accept(conn, attr, now);
  if (!accepted) return accepted;
  if (qp != nullptr) {
    if (const auto up = bring_up(*nic_, conn, *qp); !up) {
      nic_->sinks.erase(conn.v);
      static_cast<void>(nic_->connections_owned().abandon(conn, now));
      nic_->settle_owned();
      return up;
    }
  }
  nic_->settle_owned();
  return {};
}

Outcome<void> Connections::reject(cm::ConnId conn, const ConnectionSink& sink,
                                  std::span<const std::uint8_t> private_data) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const auto done = nic_->connections_owned().reject(conn, private_data, nic_->clock().now());
  if (done) nic_->sinks.erase(conn.v);
  nic_->settle_services_owned();
  return done;
}

Outcome<void> Connections::notify(cm::ConnId conn, const ConnectionSink& sink) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const auto done = nic_->connections_owned().notify(conn, nic_->clock().now());
  nic_->settle_owned();
  nic_->dispatch_events_owned();
  return done;
}

Outcome<void> Connections::disconnect(cm::ConnId conn, const ConnectionSink& sink) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const auto done = nic_->connections_owned().disconnect(conn, nic_->clock().now());
  nic_->settle_services_owned();
  nic_->dispatch_events_owned();
  return done;
}

void Connections::forget(cm::ConnId conn, const ConnectionSink& sink) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return;
  nic_->sinks.erase(conn.v);
  static_cast<void>(nic_->connections_owned().abandon(conn, nic_->clock().now()));
  nic_->settle_services_owned();
}

Outcome<void> Connections::resolve(const cm::ResolveAttr& attr, ConnectionSink& sink,
                                   std::optional<cm::ConnId>& conn) {
  const Owned owned(nic_->ownership());
  return keep_owned(nic_->connections_owned().resolve(attr, nic_->clock().now()), sink, conn);
}

Outcome<void> Connections::answer(cm::ConnId conn, const ConnectionSink& sink, const cm::AnswerAttr& attr) {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  const auto done = nic_->connections_owned().answer(conn, attr, nic_->clock().now());
  if (done) nic_->sinks.erase(conn.v);
  nic_->settle_services_owned();
  return done;
}

Outcome<cm::QpSetup> Connections::qp_setup(cm::ConnId conn, const ConnectionSink& sink, QpState state) const {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  return std::as_const(nic_->shard().services()).manager().qp_setup(conn, state);
}

Outcome<cm::ConnInfo> Connections::info(cm::ConnId conn, const ConnectionSink& sink) const {
  const Owned owned(nic_->ownership());
  if (!holds(*nic_, conn, sink)) return fail(Errc::kNotFound);
  return std::as_const(nic_->shard().services()).manager().info(conn);
}

std::uint32_t Connections::count() const {
  const Owned owned(nic_->ownership());
  return std::as_const(nic_->shard().services()).manager().connections();
}

void Connections::end_all() {
  const Owned owned(nic_->ownership());
  const Time now = nic_->clock().now();
  for (const auto& [number, sink] : nic_->sinks)
    static_cast<void>(nic_->connections_owned().abandon({number}, now));
  nic_->sinks.clear();
  if (Neighbours* const others = nic_->neighbours_owned(); others != nullptr) {
    for (const auto& [number, listener] : nic_->listeners) others->give_back(listener.service, now);
  }
  nic_->listeners.clear();
  nic_->settle_services_owned();
  nic_->report_once();
}

void Connections::hold() const { nic_->ownership().acquire(); }
void Connections::release() const { nic_->ownership().release(); }

// --- telling -----------------------------------------------------------------------------------------

void Nic::tell_owned(const cm::CmEvent& event) {
  using cm::CmEventKind;
  if (event.kind == CmEventKind::kConnectRequest || event.kind == CmEventKind::kResolveRequest) {
    const auto listener = listeners.find(event.listener.v);
    ConnectionSink* const sink =
        listener != listeners.end() ? listener->second.sink->requested(event) : nullptr;
    if (sink == nullptr) {
      static_cast<void>(connections_owned().abandon(event.conn, clock_.now()));
    } else if (!enter(sinks, event.conn.v, sink)) {
      // Turned away, and the sink sees the request withdrawn.
      static_cast<void>(connections_owned().abandon(event.conn, clock_.now()));
      cm::CmEvent withdrawn = event;
      withdrawn.kind = CmEventKind::kRejected;
      sink->happened(withdrawn);
    }
    return;
  }
  const auto it = sinks.find(event.conn.v);
  if (it == sinks.end()) return;
  ConnectionSink* const sink = it->second;
  const bool last = event.kind == CmEventKind::kRejected || event.kind == CmEventKind::kUnreachable ||
                    event.kind == CmEventKind::kTimewaitExit || event.kind == CmEventKind::kResolved ||
                    event.kind == CmEventKind::kRefused;
  if (last) sinks.erase(it);
  sink->happened(event);
}

}  // namespace weft::live
