// A host whose NIC runs TCP: iWARP's half of IRN §4.6, without the layers above TCP.
//
// It sends as the ideal NIC does (sim/nic/ideal_nic.h): acknowledgments at once, data one segment at a time
// when the link is free, from the connections in turn; a link that PFC has stopped is not free. Segments
// wait in the link's own queue only.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/fabric/fabric.h"
#include "sim/fabric/port.h"
#include "sim/tcp/connection.h"
#include "sim/tcp/frame.h"
#include "sim/tcp/observer.h"

namespace weft::sim::tcp {

// Traffic classes.
struct Classes {
  std::uint8_t data = 0;
  std::uint8_t acknowledgments = 0;
};

struct HostCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t acknowledgments = 0;
  std::uint64_t corrupt_dropped = 0;
  std::uint64_t late_dropped = 0;  // segments for connections that were closed before they came
};

class Host {
 public:
  Host(Fabric& fabric, HostId self, Port& egress, Classes classes, Connections& connections,
       Observer& observer);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void arrive(const Transit& t, std::uint32_t /*link*/);
  void doorbell(Connection& c);  // something was written to it

  const HostCounters& counters() const { return counters_; }

 private:
  struct Name {
    std::uint32_t socket;
    std::uint32_t number;
  };
  struct Due {
    Time at;
    Name name;
    bool sender;
  };
  static bool later(const Due& a, const Due& b);

  void on_line_free(Time /*now*/) { pump(); }
  void on_timer(Time now);
  void deliver(const Transit& t);
  void on_segment(Connection& c, const Segment& s, Time now);
  void line_up(Connection& c);
  void pump();
  void send(Connection& c, const Segment& s, HostId to, std::uint8_t traffic_class);
  void send_acknowledgment(Connection& c);
  void watch(Connection& c, bool sender);
  void ask_timer();

  Fabric& fabric_;
  HostId self_;
  Port& egress_;
  Classes classes_;
  Connections& connections_;
  Observer& observer_;
  ActorId timer_;
  Time timer_asked_ = kNever;  // the earliest pending wake-up
  std::deque<Name> line_;      // connections that may have something to send, in turn
  std::vector<Due> dues_;      // a heap with one entry for each connection; an entry may be early
  HostCounters counters_;
};

}  // namespace weft::sim::tcp
