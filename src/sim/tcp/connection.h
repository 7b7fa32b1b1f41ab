// All connections of a network, by socket. Of each, the sender belongs to one host and the receiver to
// another; they share nothing but this place, and meet only through segments.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/fabric/packet.h"
#include "sim/tcp/receiver.h"
#include "sim/tcp/sender.h"

namespace weft::sim::tcp {

struct Connection {
  explicit Connection(const Config& config) : sender(config), receiver(config) {}

  std::uint32_t socket = 0;
  std::uint32_t number = 0;
  HostId from{};
  HostId to{};
  bool open = false;
  bool in_line = false;        // it stands in its host's line of connections that may send
  Time sender_wakes = kNever;  // the earliest wake-up asked for on its behalf
  Time receiver_wakes = kNever;
  Sender sender;
  Receiver receiver;
};

class Connections {
 public:
  explicit Connections(const Config& config) : config_(config) {}
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Established at once: there is no handshake.
  Connection& open(HostId from, HostId to) {
    std::uint32_t socket = 0;
    if (free_.empty()) {
      socket = static_cast<std::uint32_t>(all_.size());
      all_.emplace_back(config_);
    } else {
      socket = free_.back();
      free_.pop_back();
      all_[socket] = Connection(config_);
    }
    Connection& c = all_[socket];
    c.socket = socket;
    c.number = ++numbers_;
    c.from = from;
    c.to = to;
    c.open = true;
    return c;
  }
  // Frees the place; another connection may get it.
  void close(Connection& c) {
    c.open = false;
    free_.push_back(c.socket);
  }
  // Null when it was closed.
  Connection* find(std::uint32_t socket, std::uint32_t number) {
    if (socket >= all_.size()) return nullptr;
    Connection& c = all_[socket];
    return c.open && c.number == number ? &c : nullptr;
  }

 private:
  Config config_;
  std::uint32_t numbers_ = 0;
  std::deque<Connection> all_;  // places that do not move
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::sim::tcp
