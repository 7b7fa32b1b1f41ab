// What a context can be told. Defaults that the paper gives are its own; the others say why.
#pragma once
#include <cstdint>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/verbs/port.h"

namespace weft::channel {

// Where regions of the memory cache come from (X-RDMA §7.6, Table III).
enum class MemoryMode : std::uint8_t {
  kPort,        // the port's own allocator
  kPages,       // anonymous pages of the platform
  kHuge,        // huge pages that it has set aside; where there are none, anonymous ones
  kMalloc,      // the program's heap
  kContiguous,  // anonymous pages that lie together, 2 MiB at a time; where they cannot, as they lie
};

// How a platform gives memory: with a hole on either side, at addresses that are marked as the cache's; of a
// heap as it likes.
struct Pages {
  void* (*map)(std::uint64_t bytes, MemoryMode mode) = nullptr;  // nullptr: there is none of that kind
  void (*unmap)(void* at, std::uint64_t bytes, MemoryMode mode) = nullptr;
};

struct Config {
  // --- offline: fixed when the context is made ---
  std::uint32_t channels = 1024;  // open at a time
  std::uint32_t calls = 4096;     // requests without an answer, all channels together
  std::uint32_t depth = 32;       // messages in flight on a channel, each way
  std::uint32_t queue = 64;       // messages of a channel that wait for the window
  std::uint32_t small = 4096;     // longer payloads are announced and fetched (X-RDMA §4.3)
  // The longest message that this end takes. A context takes none above half of its memory, so that one fits
  // beside frames and other messages.
  std::uint32_t largest = 64U << 20U;
  std::uint32_t fragment = 64U << 10U;  // of a fetch (X-RDMA §5.3)
  std::uint32_t outstanding = 64;  // fragments in flight, all channels together; the paper leaves it open
  std::uint32_t reads = 4;  // fragments in flight on a channel: what the queue pair has in flight at most
  // One receive queue for all channels (shared.h), of `srq_size` entries. The promise that a frame always
  // finds a receive stands while srq_size >= open channels * (depth + 8).
  bool use_srq = false;  // X-RDMA §7.6
  std::uint32_t srq_size = 4096;
  std::uint32_t cq_size = 0;      // entries of the completion queue; 0: what `channels` need
  std::uint32_t pieces = 1;       // parts of a message that lies in the program's memory, at most kMostPieces
  std::uint32_t cached_qps = 64;  // queue pairs that wait in RESET for the next channel
  Bytes region{4U << 20U};        // X-RDMA §4.5
  Bytes memory{1U << 30U};        // registered at most, for what is sent and for what is received each
  MemoryMode memory_mode = MemoryMode::kPort;
  bool fork_safe =
      false;             // a child's calls are refused, and nothing that it does reaches the parent's memory
  bool isolate = false;  // guards behind every block, holes around every region (X-RDMA §6.3)
  std::uint16_t tcp_port =
      0;        // where sessions of this end may go on over TCP (X-RDMA §6.3, Mock); 0: nowhere
  Pages pages;  // of the platform; without, memory is the port's whatever the mode
  // The machine's clock in nanoseconds, for stamps of traced messages and for what takes too long; `program`
  // is given to it. nullptr: stamps have the time of poll(), and parts of a turn are not timed.
  std::uint64_t (*clock)(void*) = nullptr;
  // Names of sessions: 64 bits that nobody can foretell. nullptr: from the context's seed, for worlds that
  // are to repeat. Whoever has one such name can compute the others.
  std::uint64_t (*draw)() = nullptr;
  ConnectTerms terms;
  void* program = nullptr;  // whatever the program wants to find again in config()

  // --- online: may change at any time ---
  Duration ack_delay =
      microseconds(50);                 // taken messages are told after this at the latest, permission given
  Duration patience = milliseconds(5);  // before a NOP: long against ack_delay, short against people
  Duration keepalive = seconds(3);      // silence before a probe; the paper names none. Zero: never
  Duration connecting = seconds(5);     // before an attempt to connect is given up
  Duration linger = seconds(1);         // a channel that closes waits so long for what is not yet taken
  Duration reconnect{};                 // a session whose connection failed is kept so long. Zero: not at all
  Duration redial = milliseconds(10);   // between attempts to reconnect
  Duration look{};  // between looks at what is not a completion: over libibverbs that asks the kernel
  // weft_wait looks busily until nothing has happened for so long, then it sleeps. Zero: it sleeps at once.
  // The library's (channel_c/waiting.h): a context itself never waits.
  Duration spin = microseconds(50);
  Duration idle_memory = seconds(1);  // an unused region is given back after this
  // Tracing (trace.h), and what took too long (slow_log.h). Zero: off.
  std::uint64_t trace_mask = 0;                  // its bits go round: 1, this message is traced
  Duration clock_interval = milliseconds(1000);  // between questions about a peer's clock, while tracing
  Duration slow{};       // a message, a request or a part of the turn that took longer
  Duration poll_warn{};  // a time between two polls, for a program that did not sleep
  // Over TCP or over RDMA (moving.cc): by command, or by itself while RDMA is too slow or not to be had.
  std::uint32_t mock = 0;  // 1: channels go over TCP
  Duration mock_slow{};    // a message's time to the peer's device and back; zero: it does not count
  Duration mock_slow_for = seconds(1);  // that it is too slow
  std::uint32_t mock_redials = 0;       // attempts over RDMA before one over TCP; 0: all are over RDMA
  Duration mock_cool = seconds(10);     // before RDMA is tried again; zero: never
  // Faults on purpose, of messages that come (filter.cc).
  std::uint32_t filter_drop = 0;  // of a million
  std::uint32_t filter_fail = 0;  // of a million: the connection fails
  Duration filter_delay{};        // of each
  bool filters() const { return filter_drop != 0 || filter_fail != 0 || filter_delay.ps != 0; }

  Result<void> validate() const;
};

}  // namespace weft::channel
