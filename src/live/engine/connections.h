// The connection manager of a Nic (core/cm/cm.h), as a connection library sees it: its calls under the
// ownership, and its events told to sinks.
//
// A sink stands for one end of a connection, or for a listener. It is told under the ownership, by whichever
// thread drives: it must not call back, and it does not wait. A sink hears nothing more after forget() or
// close() has returned, or after the last event of its connection (cm::CmEventKind).
//
// Queue pairs: accept() and complete() take the connection's queue pair to RTS before the peer hears of it,
// in one step under the ownership, so that no message leaves in between.
#pragma once
#include <memory>

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

  Outcome<cm::ConnId> connect(const cm::ConnectAttr& attr, ConnectionSink& sink);
  Outcome<void> complete(cm::ConnId conn, Qp& qp);  // of the end that asked: after kConnectResponse
  Outcome<void> establish(cm::ConnId conn);  // the same for a queue pair that the caller has taken to RTS
  Outcome<void> accept(cm::ConnId conn, const cm::AcceptAttr& attr, Qp* qp);  // nullptr: likewise
  Outcome<void> reject(cm::ConnId conn, std::span<const std::uint8_t> private_data);
  Outcome<void> notify(cm::ConnId conn);
  Outcome<void> disconnect(cm::ConnId conn);
  void forget(cm::ConnId conn);  // in whatever state; the peer is told

  Outcome<cm::ConnId> resolve(const cm::ResolveAttr& attr, ConnectionSink& sink);
  Outcome<void> answer(cm::ConnId conn, const cm::AnswerAttr& attr);

  Outcome<cm::QpSetup> qp_setup(cm::ConnId conn, QpState state) const;
  Outcome<cm::ConnInfo> info(cm::ConnId conn) const;
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
  std::shared_ptr<Nic> nic_;
};

}  // namespace weft::live
