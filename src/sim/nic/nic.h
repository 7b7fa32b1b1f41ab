// What every simulated NIC is: a port for the program on its host, and an attachment to the network. A model
// decides what a post, a doorbell, a packet that arrives and a completion cost, and when; IdealNic is the one
// that costs nothing. Programs post and poll through the NIC, never around it: a detailed model has PCIe in
// between, and packets of one queue pair may wait inside it while others go on.
//
// Here is what models share: the Device and the link (endpoint.h), one protection domain, memory, and queue
// pairs whose making costs no time in any of them. A model implements the data path: take (what
// post_send brings), ring, poll.
//
// Memory of kCounted holds nothing; bytes travel between memories that hold them, and are counted elsewhere.
// What a program allocates is zero and costs only what is touched of it; map() fills its own with noise, for
// observers that compare bytes.
#pragma once
#include <cstdint>
#include <optional>

#include "core/verbs/exchange.h"
#include "sim/fabric/network.h"
#include "sim/nic/endpoint.h"

namespace weft::sim {

class Nic : public MeetingPort {
 public:
  Nic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress,
      PacketMarking marking, NicObserver* observer);

  // From here on what the network has for this host arrives here.
  virtual void attach(Network& network) = 0;

  Device& device() { return endpoint_.device; }
  const Device& device() const { return endpoint_.device; }
  const Endpoint& endpoint() const { return endpoint_; }
  Endpoint& endpoint() { return endpoint_; }
  HostMemory& memory() { return endpoint_.memory; }
  PdId domain() const { return domain_; }
  HostId host() const { return endpoint_.host(); }

  // Memory where the program wants it to appear; `random` fills what holds bytes.
  Outcome<PortMemory> map(std::uint64_t address, std::uint64_t length, std::uint8_t access, MemoryKind kind,
                          std::optional<Prng> random);
  RegionId region_of(Key key) const;

  PortFacts facts() const override { return {address(), true, 0}; }
  Outcome<PortMemory> allocate(std::uint64_t length, std::uint8_t access, MemoryKind kind) override;
  Outcome<void> release(Key lkey) override;
  Outcome<CqId> create_cq(std::uint32_t entries) override { return device().create_cq(entries); }
  Outcome<void> destroy_cq(CqId cq) override { return device().destroy_cq(cq); }
  Outcome<SrqId> create_srq(std::uint32_t entries) override {
    return device().create_srq(domain_, {entries, 1, 0});
  }
  Outcome<void> destroy_srq(SrqId srq) override { return device().destroy_srq(srq); }
  Outcome<Qpn> create_qp(const PortQueuePair& wanted) override;
  Outcome<PortMemory> adopt(std::span<std::uint8_t> bytes, std::uint8_t access) override;
  Outcome<void> prepare(Qpn qpn) override;
  Outcome<Qpn> recycle(Qpn qpn) override;
  Outcome<void> destroy_qp(Qpn qpn) override { return device().destroy_qp(qpn); }
  Outcome<QpState> state(Qpn qpn) const override;
  Posted post_send(Qpn qpn, std::span<const SendWr> list) final;
  // A receive lies in host memory, and the NIC reads it when it needs it. No doorbell is waited for.
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override;
  Posted post_shared(SrqId srq, std::span<const RecvWr> list) override;
  Outcome<void> arm(CqId cq, bool solicited_only) override {
    return device().request_notify(cq, solicited_only);
  }

 protected:
  // One request of post_send, none of them inline.
  virtual Outcome<void> take(Qpn qpn, const SendWr& wr) = 0;
  bool device_event(PortEvent& out) override;
  void fall(Qpn qpn) override;
  void awake() override { endpoint_.told(); }

  Endpoint endpoint_;

 private:
  Outcome<void> raise(const ConnectEnd& own, const ConnectEnd& peer) override;

  PdId domain_;
  std::uint64_t next_address_ = 1ULL << 40U;
  std::map<Key, RegionId> regions_;  // of allocated memory
};

}  // namespace weft::sim
