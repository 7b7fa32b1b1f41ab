// A connection manager that costs nothing, for worlds in virtual time: the ends of one world meet in its
// Exchange, and what one of them says reaches the other at once. (Over libibverbs the connections are
// librdmacm's: verbs_port/meetings.h. The connection manager of core/cm takes this place when its MADs are
// to be part of a run.)
//
// An end is a port that brings up its queue pair towards a given peer; the Exchange keeps which end asked for
// the connection.
#pragma once
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/verbs/port.h"

namespace weft {

// What each end of a connection needs to know of the other.
struct ConnectEnd {
  wire::Address address;
  Qpn qpn = kNoQpn;
  ConnectTerms terms;
};

// The attributes of `own` end's queue pair; its path is the world's affair.
QpAttr attributes_of(const ConnectEnd& own, const ConnectEnd& peer);

// What a program hears of a Device's event; false: nothing.
bool as_port_event(const DeviceEvent& event, PortEvent& out);

class Exchange;

// A port whose connections are made by an Exchange.
class MeetingPort : public VerbsPort {
 public:
  MeetingPort(Exchange& exchange, const wire::Address& address);
  ~MeetingPort() override;

  Outcome<void> listen(std::uint16_t service) override;
  Outcome<ConnectionId> connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                const ConnectTerms& terms, const ConnectData& data) override;
  Outcome<void> accept(ConnectionId connection, Qpn qpn, const ConnectTerms& terms,
                       const ConnectData& data) override;
  Outcome<void> reject(ConnectionId connection, const ConnectData& why) override;
  Outcome<void> disconnect(ConnectionId connection) override;
  bool poll_event(PortEvent& out) override;

  const wire::Address& address() const { return address_; }

 protected:
  friend class Exchange;
  // Brings the queue pair from RESET to RTS; to ERR.
  virtual Outcome<void> raise(const ConnectEnd& own, const ConnectEnd& peer) = 0;
  virtual void fall(Qpn qpn) = 0;
  // Brings up both ends. A world overrides this when its observers must hear of both ends at once.
  virtual Outcome<void> join(const ConnectEnd& own, MeetingPort& other, const ConnectEnd& theirs);
  // The device's own next event, such as a completion queue that was armed; false when there is none.
  virtual bool device_event(PortEvent& out) = 0;
  // Something has happened that a program waits for. A world overrides this to wake the program.
  virtual void awake() {}

 private:
  void tell(const PortEvent& event);

  Exchange& exchange_;
  wire::Address address_;
  std::deque<PortEvent> events_;
};

class Exchange {
 public:
  // Connects two ends in one step, for worlds that are set up before they begin.
  Outcome<void> join(MeetingPort& a, const ConnectEnd& at_a, MeetingPort& b, const ConnectEnd& at_b);

 private:
  friend class MeetingPort;
  enum class State : std::uint8_t { kAsked, kOpen, kClosed };
  struct Connection {
    State state = State::kAsked;
    MeetingPort* ports[2] = {};  // the end that asked, and the end that was asked
    ConnectEnd ends[2];
  };
  Connection* find(ConnectionId id, const MeetingPort& port, State state);
  Outcome<void> give_up(ConnectionId id, const MeetingPort& port);

  MeetingPort* at(const wire::Address& address) const;

  std::vector<MeetingPort*> ports_;
  std::vector<std::pair<MeetingPort*, std::uint16_t>> listeners_;
  std::vector<Connection> connections_;  // by ConnectionId
};

}  // namespace weft
