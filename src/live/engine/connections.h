// The connection manager of a Nic (core/cm/cm.h), as a connection library sees it: its calls under the
// ownership, and its events told to sinks.
//
// A sink stands for one end of a connection, or for a listener. It is told under the ownership, by whichever
// thread drives: it must not call back, and it does not wait. A sink hears nothing more after forget() or
// close() has returned, or after the last event of its connection (cm::CmEventKind).
//
// A connection's number is used again after its last event. So every call about a connection names its sink,
// too, and finds nothing (kNotFound) where the number is another sink's by now.
//
// Queue pairs: accept() and complete() take the connection's queue pair to RTS before the peer hears of it,
// in one step under the ownership, so that no message leaves in between.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "core/base/result.h"
#include "core/cm/terms.h"
#include "live/engine/context.h"

namespace weft::live {

class ConnectionSink {
 public:
  // A peer asks for this service: the answer is the new connection's sink, or nullptr to turn it away.
  virtual ConnectionSink* requested(const cm::CmEvent& event) = 0;
  virtual void happened(const cm::CmEvent& event) = 0;

 protected:
  ~ConnectionSink() = default;
};

class Connections {
 public:
  explicit Connections(std::shared_ptr<Nic> nic) : nic_(std::move(nic)) {}

  Outcome<cm::ListenerId> listen(const cm::ListenAttr& attr, ConnectionSink& sink);
  void close(cm::ListenerId listener);

  // The number is in `conn` before anybody can be told of the connection.
  Outcome<void> connect(const cm::ConnectAttr& attr, ConnectionSink& sink, std::optional<cm::ConnId>& conn);
  // Of the end that asked: after kConnectResponse.
  Outcome<void> complete(cm::ConnId conn, const ConnectionSink& sink, Qp& qp);
  // The same for a queue pair that the caller has taken to RTS.
  Outcome<void> establish(cm::ConnId conn, const ConnectionSink& sink);
  // Likewise if `qp` is nullptr.
  Outcome<void> accept(cm::ConnId conn, const ConnectionSink& sink, const cm::AcceptAttr& attr, Qp* qp);
  Outcome<void> reject(cm::ConnId conn, const ConnectionSink& sink,
                       std::span<const std::uint8_t> private_data);
  Outcome<void> notify(cm::ConnId conn, const ConnectionSink& sink);
  Outcome<void> disconnect(cm::ConnId conn, const ConnectionSink& sink);
  void forget(cm::ConnId conn, const ConnectionSink& sink);  // in whatever state; the peer is told

  Outcome<void> resolve(const cm::ResolveAttr& attr, ConnectionSink& sink, std::optional<cm::ConnId>& conn);
  Outcome<void> answer(cm::ConnId conn, const ConnectionSink& sink, const cm::AnswerAttr& attr);

  Outcome<cm::QpSetup> qp_setup(cm::ConnId conn, const ConnectionSink& sink, QpState state) const;
  Outcome<cm::ConnInfo> info(cm::ConnId conn, const ConnectionSink& sink) const;
  std::uint32_t count() const;  // in whatever state
  // The process ends: every peer is told, once, and what the Nic counted is printed if that was asked for.
  void end_all();

  // Runs `step` while no sink is told anything.
  template <class Step>
  void quietly(const Step& step) const {
    hold();
    step();
    release();
  }

 private:
  void hold() const;
  void release() const;
  Outcome<void> keep_owned(const Outcome<cm::ConnId>& made, ConnectionSink& sink,
                           std::optional<cm::ConnId>& conn);
  std::shared_ptr<Nic> nic_;
};

}  // namespace weft::live
