// What watches TCP hosts: the program on them, and checkers. Calls come at the virtual time they describe.
#pragma once
#include "sim/fabric/segment.h"
#include "sim/tcp/connection.h"

namespace weft::sim::tcp {

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void sent(const Connection&, const Segment&, Cause, Time) {}
  virtual void arrived(const Connection&, const Segment&, Time) {}
  virtual void delivered(const Connection&, Receiver::Delivered, Time) {}
  // Bytes were acknowledged. The last call about an event: may write to connections, open and close them.
  virtual void progressed(Connection&, Time) {}
};

}  // namespace weft::sim::tcp
