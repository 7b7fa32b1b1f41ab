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
  Outcome<SrqId> create_srq(std::uint32_t entries) override;
  Outcome<void> destroy_srq(SrqId srq) override { return host().device.destroy_srq(srq); }
  Outcome<Qpn> create_qp(const PortQueuePair& wanted) override;
  Outcome<PortMemory> adopt(std::span<std::uint8_t>, std::uint8_t) override {
    return fail(Errc::kUnsupported);
  }
  Outcome<void> prepare(Qpn qpn) override;
  Outcome<Qpn> recycle(Qpn qpn) override;  // a new one: observers know a queue pair by its number
  Outcome<void> destroy_qp(Qpn qpn) override;
  Outcome<QpState> state(Qpn qpn) const override;
  Posted post_send(Qpn qpn, std::span<const SendWr> list) override;
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override;
  Posted post_shared(SrqId srq, std::span<const RecvWr> list) override;
  void ring() override {}  // the World lets transmitters go after every act()
  std::uint32_t poll(CqId cq, std::span<Completion> out) override;
  Outcome<void> arm(CqId cq, bool solicited_only) override;

 private:
  static constexpr std::uint32_t kInline = 64;

  Host& host() const { return world_.host(host_); }
  Outcome<void> raise(const ConnectEnd& own, const ConnectEnd& peer) override;
  Outcome<void> join(const ConnectEnd& own, MeetingPort& other, const ConnectEnd& theirs) override;
  void fall(Qpn qpn) override;
  void post_early(Qpn qpn);
  bool device_event(PortEvent& out) override;
  EndConfig end_config(const ConnectEnd& end, const ConnectEnd& peer) const;
  bool copy_inline(std::span<const Sge> sges, std::vector<std::uint8_t>& out) const;

  World& world_;
  std::uint32_t host_;
  Prng random_;
  PdId domain_;
  std::vector<Buffer> buffers_;
  // Receives of a queue pair that has no peer yet. Observers hear of a queue pair when it has one, so these
  // are posted then, at the same instant.
  struct Early {
    std::uint64_t wr_id;
    std::vector<Sge> sges;
  };
  std::map<Qpn, PortQueuePair> made_;
  std::map<Qpn, std::vector<Early>> early_;
};

}  // namespace weft::pair
