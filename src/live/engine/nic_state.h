// The inside of a Nic: wire and shard under one ownership, the resources' records, and the background
// thread. Methods whose name ends in `_owned` need the ownership; the others take it.
//
// A process with several shards has a Nic for each (docs/ARCHITECTURE.md#shards). The first one holds the
// others and what all share; connections and discovery towards the program are its too. Whoever needs the
// ownership of several takes them in the order of shards().
#pragma once
#include <atomic>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "live/engine/clock.h"
#include "live/engine/connections.h"
#include "live/engine/event_queue.h"
#include "live/engine/nic.h"
#include "live/engine/nic_page.h"
#include "live/engine/ownership.h"
#include "live/engine/patience.h"
#include "live/engine/records.h"
#include "live/engine/shard.h"
#include "live/engine/shared_tables.h"

namespace weft::live {

class PacketTrace;

class Nic {
 public:
  // `trace` is the wire's. `first` is the process's first Nic, if this is a further one.
  Nic(const Options& options, std::unique_ptr<Wire> wire, const DeviceConfig& config, const Clock& clock = {},
      PacketTrace* trace = nullptr, Nic* first = nullptr);
  ~Nic();  // stops the background thread
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;
  Result<void> start();
  void still_owned();  // in a forked child (forks.h)
  bool is_still() const { return still_; }
  void finish();  // the process ends, with this device open

  // --- several shards ---
  // The first's: before anything is made in it. The seeds of both configurations must be equal, for keys are
  // drawn from them.
  void add_shard(std::unique_ptr<Nic> further);
  Nic& first() { return *first_; }
  // All of the process, the first one first.
  std::span<Nic* const> shards() { return first_->shards_; }
  std::uint32_t number() const { return number_; }  // its place there

  // --- driving (driving.cc) ---
  std::uint32_t poll(CqId cq, std::span<Completion> out);
  // What is in the queue, and nothing is moved.
  std::uint32_t collect(CqId cq, std::span<Completion> out);
  void begin_posting() { ownership_.acquire(); }
  void count_post_owned() { ++posts_; }
  void end_posting(const QpRecord& qp);
  // What a poll left for the next call, or what this call made possible, leaves now: there may be no next
  // call.
  void settle_owned();
  // The same for a connection manager's message. One to this address may have come to our own socket though
  // it is for another process, so it is handed over before this process may end. Programs are told what came.
  void settle_services_owned();
  // The queue pair is about to go. Its last ACK may be lost, and nobody will be here to send it again.
  void farewell_owned(Qpn qpn);
  // The calling program is about to sleep: from here on the background thread drives.
  void hand_over();
  void arm_owned();  // a completion queue was armed: empty polls no longer mean that a program drives

  // Datagrams bring their IP header along, for the 40 bytes in front of their payload.
  void show_headers_owned() { wire_->show_headers(); }

  // --- what contexts reach through ---
  Ownership& ownership() { return ownership_; }
  Shard& shard() { return shard_; }
  Device& device() { return shard_.device(); }
  const Clock& clock() const { return clock_; }
  const Attributes& attributes() const { return attributes_; }
  // Whether the peer of a queue pair is asked what it speaks.
  bool asks() const { return !attributes_.mode.has_value(); }
  // What is known of a peer; asks it if nothing is, and waits for the answer: a round trip, or 21 ms if there
  // is none (docs/protocol/modes.md#capability-discovery); longer where the wire is never empty, for what a
  // socket holds is read before each question goes out again. Takes the ownership.
  cm::Known ask(const wire::Address& peer, Qpn target);
  // Tells programs what happened (completion channels, asynchronous events, connections).
  void dispatch_events_owned();
  // Nothing is sent before or after it, and nobody is told.
  Outcome<void> modify_owned(Qp& qp, const QpAttr& attr, std::uint32_t mask, const PathAttr& to);
  // --- groups (groups.cc) ---
  Outcome<void> attach_owned(const wire::Address& group, Qpn qpn);
  Outcome<void> detach_owned(const wire::Address& group, Qpn qpn);
  void detach_all_owned(Qpn qpn);
  void report_once();
  cm::Cm& connections_owned() { return shard_.services().manager(); }

  // What all shards have, and the first one holds.
  SharedTables& shared() { return *shared_; }
  // Records by the Device's SrqId, by AhId and by queue pair number (low bits); empty where there is none.
  std::vector<std::unique_ptr<SrqRecord>> srqs;
  std::vector<AhRecord> ahs;
  std::vector<std::unique_ptr<QpRecord>> qps;
  // Who is told of a connection or a listener, by its number (connections.h).
  std::unordered_map<std::uint32_t, ConnectionSink*> sinks;
  struct Listener {
    ConnectionSink* sink = nullptr;
    std::uint32_t service = 0;  // port space and port, as neighbours know it
  };
  std::unordered_map<std::uint32_t, Listener> listeners;
  Neighbours* neighbours_owned() { return wire_->neighbours(); }
  std::unique_ptr<QpRecord>& qp_slot(Qpn qpn) { return qps[qpn.v & qpn_mask_]; }

 private:
  void background();
  Time background_turn(Time now, Time& moved_at);
  void sleep(Time now, Time until, bool watch_wire);
  void wake();
  bool program_drives(Time now) const;
  bool take_wheel(std::uint32_t& missed);
  void learn_who_calls(Time now, bool& parked);
  // Whether the background thread looks soon enough for work to be left to it.
  bool watched(Time now) const;
  void transmit_owned(Time now);
  void tell_owned(const cm::CmEvent& event);

  // Keeps the statistics page; when it wants to be kept again.
  Time publish(Time now);

  void stop();
  void report();
  void visit_counters_owned(const Wire::SeeCounter& see);
  void say_old() const;

  Nic* const first_;
  const std::uint32_t number_;
  std::unique_ptr<SharedTables> tables_;  // the first's, as is the next
  std::vector<std::unique_ptr<Nic>> further_;
  std::vector<Nic*> shards_;
  SharedTables* const shared_;

  bool stats_;  // still to be printed
  const bool level_from_dscp_;
  Clock clock_;
  PacketTrace* const trace_;
  const bool paced_;  // the wire holds back what was sent
  std::unique_ptr<Wire> wire_;
  Shard shard_;
  std::uint32_t qpn_mask_;
  Attributes attributes_;
  NicPage page_;
  Time page_at_{};        // the background thread's, as is the next
  bool stirred_ = false;  // something happened since the page was kept
  Ownership ownership_;

  // Under the ownership.
  std::uint32_t posts_ = 0;  // since the last transmit
  Time first_post_{};        // of those, if any wait
  Time posted_at_{};         // when the last post was done
  bool waiting_ = false;
  bool told_old_ = false;
  bool armed_ = false;  // a completion queue is armed and nothing was polled since

  std::atomic<std::int64_t> polled_at_{kLongAgo};  // when a program last drove, picoseconds
  std::atomic<std::int64_t> wakes_at_{INT64_MAX};  // when the background thread looks next
  std::atomic<std::int64_t> called_at_{kLongAgo};  // when it last polled in vain or posted
  Patience patience_;
  std::atomic<bool> parked_{false};  // it sleeps and does not watch the wire
  std::atomic<bool> called_{false};  // woken by a post, and has not looked since
  std::atomic<bool> stopping_{false};
  std::atomic<bool> still_{false};
  std::atomic<int> groups_fd_{-1};  // the wire's, once it has one
  int wake_fd_ = -1;
  std::thread thread_;

  static constexpr std::int64_t kLongAgo = INT64_MIN / 2;
};

// The right to drive every shard of a process: nothing reads the shared tables meanwhile, and no packet is
// looked at.
class OwnedEverywhere {
 public:
  explicit OwnedEverywhere(Nic& nic) : shards_(nic.shards()) {
    for (Nic* const n : shards_) n->ownership().acquire();
  }
  ~OwnedEverywhere() {
    for (std::size_t i = shards_.size(); i != 0; --i) shards_[i - 1]->ownership().release();
  }
  OwnedEverywhere(const OwnedEverywhere&) = delete;
  OwnedEverywhere& operator=(const OwnedEverywhere&) = delete;

 private:
  std::span<Nic* const> shards_;
};

// Takes the completion queue out of the Devices and out of the tables; the caller, who owns every shard, gets
// the record. Its events are handed out first, because none may follow.
Outcome<std::unique_ptr<CqRecord>> take_cq_owned(Nic& first, CqId id);

}  // namespace weft::live
