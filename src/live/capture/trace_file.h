// The file of a packet trace, written by a thread of its own: the thread that drives a NIC only leaves blocks
// in memory (block_ring.h), and neither waits for a disk nor asks the kernel for anything, but for one
// wake-up when half of the memory is used. What finds no room is lost and counted.
//
// What is there after kEvery is in the file: a program that is killed loses the packets of that time at most.
// A file that cannot grow (a full disk) ends with its last whole block; the program goes on, and the rest is
// counted.
//
// Names. Each process, and each NIC of one process, has a file for itself. The name that was asked for is
// taken by whoever finds it empty and unlocked; `weft run` empties it. Others put their process number into
// it, and say so: trace.pcapng, trace.4711.pcapng, trace.4711-2.pcapng. A lock on the file (flock) tells
// which are taken, and is free again however its process ends.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "core/base/result.h"
#include "core/base/units.h"
#include "live/capture/block_ring.h"

namespace weft::live {

class TraceFile {
 public:
  static constexpr std::uint64_t kRingBytes = 16U << 20U;
  static constexpr Duration kEvery = milliseconds(10);

  static Result<std::unique_ptr<TraceFile>> open(const std::string& name);
  ~TraceFile();  // finish()
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::string& name() const { return name_; }

  // --- by the thread that drives ---
  BlockRing& ring() { return ring_; }
  // A packet was committed, or was not.
  void packet(bool taken) {
    auto& count = taken ? taken_ : refused_;
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (ring_.half_full() && !called_.exchange(true, std::memory_order_relaxed)) call();
  }

  // Everything that was committed is in the file; says what is missing. Later packets are counted, no more.
  void finish();
  void abandon(int nowhere);  // in a forked child

  // Packets.
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  std::uint64_t lost() const {
    return refused_.load(std::memory_order_relaxed) + dropped_.load(std::memory_order_relaxed);
  }

 private:
  TraceFile(std::string name, int fd);
  Result<void> start();
  void call();
  void write_on();
  void write_waiting();
  void give_up(int error);

  const std::string name_;
  int fd_;
  int call_fd_ = -1;
  BlockRing ring_{kRingBytes};
  std::atomic<std::uint64_t> taken_{0};  // by the ring, as is the next; only the driving thread writes them
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<bool> called_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> finished_{false};
  std::atomic<std::uint64_t> dropped_{0};  // after the file could not grow
  // The thread's.
  BlockCounter blocks_;
  int error_ = 0;
  std::thread thread_;
};

// The name of a process's own file: "trace.pcapng" -> "trace.4711.pcapng", and with `nth` above 1
// "trace.4711-2.pcapng".
std::string name_of_process(const std::string& name, int pid, int nth);

// Whether a trace may be written there; empties it. Of a sentence's field.
Result<void> prepare_trace(const char* field, const std::string& name);

}  // namespace weft::live
