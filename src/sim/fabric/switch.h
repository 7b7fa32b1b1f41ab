// A switch: routes each packet to the port it leaves by, and decides whether there is room for it to wait
// there, whether to mark it, and whether to stop its sender. Switching itself takes no time.
//
//   input-queued    each ingress port has a buffer of its own and, for every output, a virtual output queue;
//                   outputs serve inputs round robin (IRN §4.1; queues.h)
//   output-queued   one buffer for all; each output queue may hold `alpha` times what is still free of it
//   (dynamic
//                   thresholds: Choudhury and Hahne 1998), so that one hot port cannot take everything
//
// PFC counts what waits by the port and class it came in by, and sends X-OFF over the limit and X-ON below
// it (buffer.h has the arithmetic of limits). ECN marks packets by the length of the queue they join.
//
// With credits there is no X-OFF. A switch gives the credit of a packet back to the sending port when the
// packet leaves the buffer, or at once if the packet need not wait.
//
// A packet that finds its link free is not counted as buffered, because it begins to leave at once.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "sim/fabric/buffer.h"
#include "sim/fabric/port.h"
#include "sim/fabric/routing.h"

namespace weft::sim {

struct SwitchCounters {
  std::uint64_t dropped_no_route = 0;
  std::uint64_t dropped_full = 0;
  std::uint64_t fullest = 0;  // bytes buffered: input-queued in one ingress port, output-queued in all
};

class Switch {
 public:
  Switch(Fabric& fabric, const SwitchConfig& config, Routes routes, Prng random)
      : fabric_(fabric), config_(config), routes_(std::move(routes)), random_(random) {}
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  // Number of the new port: `egress` sends, and what arrives over the same link arrives as this number. The
  // port outlives the switch's last packet.
  std::uint32_t add_port(Port& egress);
  Routes& routes() { return routes_; }
  const Routes& routes() const { return routes_; }

  // Called once all ports exist: grants credits by each port's room.
  void set_share(std::uint64_t bytes) { share_ = bytes; }

  void arrive(const Transit& t, std::uint32_t ingress);

  // Bytes of packets that came in by this port and still wait, by class.
  const std::array<std::uint64_t, kClasses>& buffered_from(std::uint32_t port) const {
    return ingress_[port].class_bytes;
  }
  // A bit for each class that the switch has stopped at the far end of this port.
  std::uint32_t stopped(std::uint32_t port) const { return ingress_[port].stopped; }

  const SwitchCounters& counters() const { return counters_; }
  const std::vector<Port*>& ports() const { return ports_; }
  // No limit where buffers have no bound.
  std::uint64_t buffered() const { return used_; }

 private:
  struct Ingress {
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, kClasses> class_bytes{};
    std::uint32_t stopped = 0;  // bit k: X-OFF was sent for class k
    PauseLimits limits;
  };

  // Buffered bytes are needed: for PFC, for a bound, or for results.
  bool counts() const { return config_.pfc || config_.credits || config_.buffer.n != 0; }
  bool admits(const Transit& t, const Ingress& in, const Port& out) const;
  bool marks(const Port& out, const Transit& t);
  bool over(const Ingress& in, std::uint8_t k) const {
    return in.class_bytes[k] > pause_limit(config_, in.limits, reserved_, used_);
  }
  void left(const Transit& t, std::uint16_t ingress);

  Fabric& fabric_;
  SwitchConfig config_;
  Routes routes_;
  Prng random_;
  std::uint64_t used_ = 0;
  std::uint64_t reserved_ = 0;  // headroom of all ports
  std::uint64_t share_ = 0;     // with credits, of each port and class
  std::vector<Port*> ports_;
  std::vector<Ingress> ingress_;
  SwitchCounters counters_;
};

}  // namespace weft::sim
