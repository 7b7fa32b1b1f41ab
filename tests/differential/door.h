// What a program that meets others sees of its host, in every world: memory, queue pairs, connections, and
// what its peer speaks. The calls are those of the soft NIC's Context and Connections (live/engine), so that
// these stand behind one door and the state machines alone behind the other.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/cm/terms.h"
#include "tests/differential/messages.h"
#include "tests/differential/worlds.h"

namespace weft::differential {

class Door {
 public:
  Door() = default;
  virtual ~Door() = default;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Where a call may wait, the time after it; otherwise the program knows it already.
  virtual Time now() const { return {}; }
  virtual wire::Address address() const = 0;
  virtual Keys keys() const = 0;  // of its memory

  // --- queue pairs ---
  virtual Outcome<Qpn> create_qp() = 0;  // in INIT, so that receives can be posted
  virtual Outcome<void> destroy_qp(Qpn qpn) = 0;
  virtual Outcome<QpAttr> query_qp(Qpn qpn) const = 0;
  virtual Outcome<void> fail_qp(Qpn qpn, Time now) = 0;  // to the error state
  // To RTS towards the peer, by hand. `mode`: what it is then, or, if there is none, what the peer is found
  // to speak. Nothing: it is being asked, and the program calls again.
  virtual std::optional<Outcome<void>> raise(Qpn qpn, const QpAttr& attr, std::optional<wire::Mode> mode,
                                             Time now) = 0;
  // How many of them were taken.
  virtual std::size_t post_sends(Qpn qpn, std::span<const SendWr* const> list) = 0;
  virtual Outcome<void> post_receive(Qpn qpn, const RecvWr& wr) = 0;
  virtual std::uint32_t poll(std::span<Completion> out) = 0;
  virtual bool device_event(DeviceEvent& out) = 0;

  // --- connections ---
  virtual Outcome<cm::ListenerId> listen(const cm::ListenAttr& attr) = 0;
  virtual void close(cm::ListenerId listener, Time now) = 0;
  virtual Outcome<cm::ConnId> connect(const cm::ConnectAttr& attr, Time now) = 0;
  // The queue pair to RTR, or all the way if `whole`, and the answer. Without `whole`, finish() follows when
  // the connection is established.
  virtual Outcome<void> accept(cm::ConnId conn, const cm::AcceptAttr& attr, bool whole, Time now) = 0;
  virtual Outcome<void> finish(cm::ConnId conn, Qpn qpn, Time now) = 0;
  // The queue pair of the end that called to RTS, then the word that it is established.
  virtual Outcome<void> complete(cm::ConnId conn, Qpn qpn, Time now) = 0;
  virtual Outcome<void> reject(cm::ConnId conn, std::span<const std::uint8_t> said, Time now) = 0;
  virtual Outcome<void> notify(cm::ConnId conn, Time now) = 0;
  virtual Outcome<void> disconnect(cm::ConnId conn, Time now) = 0;
  virtual void abandon(cm::ConnId conn, Time now) = 0;
  virtual bool next_event(cm::CmEvent& out) = 0;

  // What manager and discovery have counted, as one line.
  virtual std::string counted() const = 0;
  virtual const std::vector<std::uint8_t>& bytes() const = 0;
};

// A host's door to its state machines and nothing else.
std::unique_ptr<Door> open_door(Host& host, std::size_t number, const wire::Address& peer);

// The two that every door prints.
std::string counted_text(const cm::Cm& manager, const cm::Discovery& discovery);

}  // namespace weft::differential
