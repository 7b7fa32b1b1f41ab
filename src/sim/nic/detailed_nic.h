// A NIC with its inside: what a Design describes, assembled at run time around the Device
// (docs/ARCHITECTURE.md#a-detailed-nic). One job is one piece of work on its way through the parts; a step of
// it takes place at its time, and says what the next one is.
//
//   doorbell    the posted requests of one ring() cross PCIe, and the Device learns of them
//
//   turn        scheduler, context, WQEs over PCIe, then Device::transmit for what was fetched; a blind
//               scheduler learns only then that there is no credit
//
//   packet      its payload over PCIe, the transmit pipeline, the MAC
//
//   arrival     receive buffer and pipeline, context (unless the send window has what it answers), the
//               receive WQE over PCIe, room ahead of a gap, then Device::on_packets; ACKs that it owes leave
//               under the same grant, and its payload is written to memory
//
//   slow path   a packet out of order: its event to software and back, before the Device sees it
//               (SRNIC §4.4.2)
//
//   completion  the completion pipeline, its entry over PCIe; only then a poll returns it
//
//   timer       context, then fire_timer; each queue pair asks for its own
//
// What the transport decides, it decides at the time of the Device's call; the network sees packets when the
// MAC sends them. Observers hear of a packet when it is decided.
//
// Files: detailed_nic.cc (assembly, jobs, contexts), detailed_host.cc (the program's side), detailed_send.cc,
// detailed_receive.cc. Programs cost no processor time here.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "sim/nic/cache/tags.h"
#include "sim/nic/cache/translation.h"
#include "sim/nic/context/store.h"
#include "sim/nic/design.h"
#include "sim/nic/nic.h"
#include "sim/nic/nic_counters.h"
#include "sim/nic/pcie.h"
#include "sim/nic/reorder.h"
#include "sim/nic/send_window.h"
#include "sim/nic/stage.h"

namespace weft::sim {

class DetailedNic final : public Nic, private ContextMemory {
 public:
  // `design` is valid, and the Device has no more queue pairs than it bears.
  DetailedNic(Exchange& exchange, Fabric& fabric, HostId host, const DeviceConfig& config, Port& egress,
              PacketMarking marking, NicObserver* observer, const Design& design);

  void attach(Network& network) override { network.attach<&DetailedNic::arrive>(host().v, *this); }
  void arrive(const Transit& t, std::uint32_t /*link*/);
  // The network has PFC: a receive buffer that is half full stops it, for packets of this class.
  void pause_when_full(std::uint8_t traffic_class) { pause_class_ = traffic_class; }

  Outcome<CqId> create_cq(std::uint32_t entries) override;
  Outcome<void> destroy_cq(CqId cq) override;
  Outcome<void> destroy_qp(Qpn qpn) override;
  void ring() override;
  std::uint32_t poll(CqId cq, std::span<Completion> out) override;
  Outcome<void> arm(CqId cq, bool solicited_only) override;

  const Design& design() const { return design_; }
  // As of now, parts included.
  NicCounters counters() const;
  // The store that holds the contexts.
  const ContextStore& contexts() const { return *contexts_; }
  void observe_contexts(StoreObserver* observer) { contexts_->observe(observer); }

 protected:
  Outcome<void> take(Qpn qpn, const SendWr& wr) override;
  bool device_event(PortEvent& out) override;
  void fall(Qpn qpn) override;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kChannels = 3;
  static constexpr std::uint8_t kNoClass = 255;
  enum class Step : std::uint8_t {
    kDoorbell,  // requests of a ring are there
    kTurn,      // its context is granted next, or its WQEs are here
    kPayload,   // of an outgoing packet: here
    kMac,       // the packet is out of the transmit pipeline
    kReceived,  // out of the receive pipeline
    kDeliver,   // its receive WQE is here
    kSoftware,  // back from software
    kTimer,
    kVisible,  // completions are in memory
    kFetched,  // a context is here
  };
  struct Job {
    Step step = Step::kTurn;
    bool granted = false;
    bool fetched = false;   // kTurn: its WQEs
    bool early = false;     // kTurn: they did not wait for the context
    bool slow = false;      // kReceived: was given to software
    bool absorbed = false;  // its packet did not wait for software
    bool windowed = false;  // kReceived: the send window has what it answers, so no context is asked for
    Qpn qpn = kNoQpn;
    Transit transit;          // of a packet, either way
    std::uint32_t count = 0;  // requests, WQEs, completions
    std::uint32_t next = kNone;
    CqId cq{};
    Time entered{};  // into the NIC
    Time since{};    // into this step
    Time ready{};    // kTurn: out of the scheduler
  };
  struct Later {
    Time at;
    std::uint64_t serial;
    std::uint32_t job;
    bool operator<(const Later& o) const { return at != o.at ? o.at < at : serial > o.serial; }
  };
  struct Posted1 {  // a request that its doorbell has not reached yet
    Qpn qpn = kNoQpn;
    SendWr wr;
    std::vector<Sge> sges;
  };
  struct SlowPackets {  // jobs, in order of arrival
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct QueuePairState {
    std::uint32_t pending = 0;   // posted, and the doorbell is under way
    std::uint32_t unsent = 0;    // WQEs whose last packet has not been decided
    std::uint32_t cached = 0;    // of them, on the chip
    std::uint32_t receives = 0;  // on the chip
    std::uint32_t leaving = 0;   // packets of requests that have not left yet
    Time data_order{};           // no data of it leaves before
    Time in_order{};             // nothing of it is delivered before
    bool timer_asked = false;
    bool in_line = false;  // blind: waits for a turn, or has one
    bool picked = false;   // blind: the Device has given it a turn
    SlowPackets slow[2];   // requests; answers
  };
  struct CompletionState {
    bool used = false;
    bool raise = false;         // armed while entries were under way
    bool told = false;          // an event waits until entries are visible
    std::uint32_t known = 0;    // entries of the Device's queue that have been seen, and not been polled
    std::uint32_t visible = 0;  // of them, in host memory
  };

  // --- jobs ---
  std::uint32_t begin(Step step, Qpn qpn, const Transit& t = Transit{});
  void end(std::uint32_t job);
  void later(Time at, std::uint32_t job);
  void ask(Time at);
  void on_step(Time now);
  void run(std::uint32_t job);
  std::size_t row_of(Qpn qpn) const { return qpn.v & qpn_mask_; }
  QueuePairState& state_of(Qpn qpn) { return queue_pairs_[row_of(qpn)]; }

  // --- contexts ---
  void request(std::uint32_t job, StoreChannel channel);
  void drive_contexts();
  void granted(std::uint32_t job);
  void give_back(Qpn qpn);
  void read(Qpn qpn, Bytes bytes, Time now) override;
  void write(Qpn qpn, Bytes bytes, Time now) override;

  // --- the program's side ---
  void doorbell(std::uint32_t job);
  void complete_later(Time earliest);
  void visible(std::uint32_t job);

  // --- sending ---
  bool blind() const { return design_.scheduler.picks == Picks::kBlind; }
  Qpn next_turn();
  void note_credit();
  void line_up(Qpn qpn);
  void line_up_if_active(Qpn qpn);
  bool has_credit(Qpn qpn);
  void pump_turns();
  void fetch_wqes(std::uint32_t job);
  void take_turn(std::uint32_t job);
  void send_burst(const wire::Burst& burst);
  void send_control(Qpn qpn);
  void payload_here(std::uint32_t job);
  void at_mac(std::uint32_t job);
  void pump_mac();
  void left(std::uint32_t job);
  void on_line_free(Time now);
  Time translated(RegionId region, std::uint64_t offset, std::uint32_t length);
  bool has_room() const { return transmit_bytes_ < design_.buffers.transmit.n; }

  // --- receiving ---
  void pause();
  void received(std::uint32_t job);
  void process(std::uint32_t job);
  Time receive_here(QueuePairState& q, Qpn qpn);
  void deliver(std::uint32_t job);
  void to_device(const Job& job);
  void leave_slow(SlowPackets& q, std::uint32_t job);
  SlowPackets& slow_packets(std::uint32_t job);
  bool is_slow(std::uint32_t job);
  void to_software(std::uint32_t job);
  void from_software(std::uint32_t job);
  bool in_window(std::uint32_t job);
  bool is_reliable(Qpn qpn);
  void note_in_flight(Qpn qpn);
  void note_ahead(Qpn qpn);
  bool has_room_ahead(const wire::RxPacket& packet);
  void after_device(Qpn qpn, Time earliest, bool granted);
  void watch_timers();
  void timer(std::uint32_t job);

  Time now() const { return endpoint_.now(); }
  Duration width(std::uint32_t bytes) const { return per_byte_width_ * static_cast<std::int64_t>(bytes); }

  Design design_;
  std::uint32_t qpn_mask_;
  Pcie pcie_;
  BoardMemory board_;
  Stage doorbells_;
  Stage scheduler_;
  Stage transmit_;
  Stage receive_;
  Stage completer_;
  Stage software_;
  std::unique_ptr<ContextStore> contexts_;
  SendWindow window_;
  ReorderBuffers reorder_;
  Translation translation_;
  std::unique_ptr<Cache> receive_cache_;
  Duration per_byte_width_{};

  ActorId step_actor_;
  Time asked_ = kNever;
  std::uint64_t serial_ = 0;
  std::vector<Later> heap_;
  std::vector<Job> jobs_;
  std::uint32_t free_jobs_ = kNone;
  std::array<std::deque<std::uint32_t>, kChannels> wanting_;
  bool driving_ = false;

  std::deque<Posted1> posted_;
  std::vector<std::pair<Qpn, std::uint32_t>> rung_;  // runs of requests of one queue pair since the last ring
  std::vector<QueuePairState> queue_pairs_;
  std::vector<CompletionState> queues_;  // by CqId
  std::deque<PortEvent> events_;

  std::deque<Qpn> active_;  // blind: the line of those that have something to send
  std::uint32_t turns_ = 0;
  std::deque<std::uint32_t> blocked_;  // turns that found the transmit buffer full
  std::deque<std::uint32_t> mac_;      // packets for the link
  std::uint64_t transmit_bytes_ = 0;
  std::uint64_t receive_bytes_ = 0;
  Time written_{};  // when the last payload had crossed PCIe upwards
  std::uint8_t pause_class_ = kNoClass;
  bool pausing_ = false;
  NicCounters counts_;
};

}  // namespace weft::sim
