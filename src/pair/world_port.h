// A host of a pair world as a port (core/verbs/port.h): what the program does goes through the World, so the
// referee judges it. Its memory holds bytes always.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/verbs/exchange.h"
#include "pair/world.h"

namespace weft::pair {

class WorldPort final : public MeetingPort {
 public:
  WorldPort(Exchange& exchange, World& world, std::uint32_t host, std::uint64_t seed);

  PortFacts facts() const override { return {address(), false, kInline}; }
  Outcome<PortMemory> allocate(std::uint64_t length, std::uint8_t access, MemoryKind kind) override;
  Outcome<void> release(Key lkey) override;
  Outcome<CqId> create_cq(std::uint32_t entries) override;
  Outcome<void> destroy_cq(CqId cq) override;
  Outcome<Qpn> create_qp(const PortQueuePair& wanted) override;
  Outcome<void> destroy_qp(Qpn qpn) override;
  Outcome<QpState> state(Qpn qpn) const override;
  Posted post_send(Qpn qpn, std::span<const SendWr> list) override;
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override;
  void ring() override {}  // the World lets transmitters go after every act()
  std::uint32_t poll(CqId cq, std::span<Completion> out) override;
  Outcome<void> arm(CqId cq, bool solicited_only) override;

 private:
  static constexpr std::uint32_t kInline = 64;

  Host& host() const { return world_.host(host_); }
  Outcome<void> raise(const ConnectEnd& own, const ConnectEnd& peer) override;
  Outcome<void> join(const ConnectEnd& own, MeetingPort& other, const ConnectEnd& theirs) override;
  void fall(Qpn qpn) override;
  bool device_event(PortEvent& out) override;
  EndConfig end_config(const ConnectEnd& end, const ConnectEnd& peer) const;
  bool copy_inline(std::span<const Sge> sges, std::vector<std::uint8_t>& out) const;

  World& world_;
  std::uint32_t host_;
  Prng random_;
  PdId domain_;
  std::vector<Buffer> buffers_;
  std::map<Qpn, PortQueuePair> made_;
};

}  // namespace weft::pair
