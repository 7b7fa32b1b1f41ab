// Where the time of a message went (X-RDMA §6.1, I). A message that is traced has a head with two stamps: its
// trace's number and when it left. The receiver adds when it arrived; T2 - T1 - Toff is then its time on the
// network. Which messages are traced says `trace_sample_mask`: its bits go round, one for each message. With
// no bit set (bare data) nothing has a head but requests and responses, and no stamp is taken.
//
// Toff is what this end's clock shows more than the peer's. While messages are traced both ends ask for it,
// as NTP does (RFC 5905 §8): a question with T1, an answer with T1, T2, T3, taken at T4. Half of what the
// question and the answer were on their way is the most that the answer can be wrong by; the best sample is
// kept, and grows older by kDrift.
//
//   ours    T1 ------- question ----.                  .---------> T4      offset of theirs to ours
//   theirs                           `--> T2 ... T3 --'                    ((T2 - T1) + (T3 - T4)) / 2
//
// A request and its response are such an exchange themselves: the response of a traced request tells when the
// request arrived and when the response left, so the requester sees all five parts without any Toff.
//
// Stamps are nanoseconds of a context's clock: Config::clock where there is one, otherwise the time that
// poll() was told. What a peer writes in them is believed about nothing but itself.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/units.h"

namespace weft::channel {

// What trace_of() tells of a received message.
struct Trace {
  std::uint64_t id = 0;
  std::uint64_t left_ns = 0;     // T1, of the sender's clock
  std::uint64_t arrived_ns = 0;  // T2, of this end's
  bool offset_known = false;
  std::int64_t offset_ns = 0;   // Toff: this end's clock less the sender's
  std::uint64_t error_ns = 0;   // it is wrong by this at most
  std::int64_t network_ns = 0;  // T2 - T1 - Toff, if that is known
  // --- of a response ---
  bool response = false;
  std::uint64_t queued_ns = 0;  // from call() until the request left
  std::uint64_t round_ns = 0;   // from there until the response was here
  std::uint64_t there_ns = 0;   // of that the peer had it
  std::uint64_t ways_ns() const { return round_ns > there_ns ? round_ns - there_ns : 0; }
};

// Times on the network that were measured.
struct Ways {
  std::uint64_t count = 0;
  std::uint64_t last_ns = 0;
  std::uint64_t longest_ns = 0;
  std::uint64_t smoothed_ns = 0;

  void add(std::uint64_t ns) {
    last_ns = ns;
    longest_ns = std::max(longest_ns, ns);
    smoothed_ns = count == 0 ? ns : smoothed_ns - smoothed_ns / 8 + ns / 8;
    ++count;
  }
};

// What is known of a peer's clock.
struct PeerClock {
  static constexpr std::uint64_t kDrift = 50;  // millionths by which two clocks drift apart at most

  std::uint64_t samples = 0;
  std::int64_t offset_ns = 0;  // ours less theirs
  std::uint64_t error_then = 0;
  std::uint64_t at_ns = 0;     // when it was measured
  std::uint64_t asked_ns = 0;  // T1 of the question that has no answer yet
  Time ask_at = kNever;

  constexpr std::uint64_t error_ns(std::uint64_t now_ns) const {
    const std::uint64_t age = now_ns > at_ns ? now_ns - at_ns : 0;
    return error_then + age / 1'000'000 * kDrift;
  }
  // False: these four cannot be; nothing changes.
  constexpr bool sample(std::uint64_t t1, std::uint64_t t2, std::uint64_t t3, std::uint64_t t4) {
    if (t4 < t1 || t3 < t2 || t3 - t2 > t4 - t1) return false;
    const std::uint64_t error = (t4 - t1 - (t3 - t2)) / 2 + 1;
    if (samples != 0 && error > error_ns(t4)) return ++samples, true;
    // Modulo 2^64, since the two clocks began anywhere.
    const auto there = static_cast<std::int64_t>(t1 - t2);
    const auto back = static_cast<std::int64_t>(t4 - t3);
    const auto between =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(back) - static_cast<std::uint64_t>(there));
    offset_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(there) +
                                          static_cast<std::uint64_t>(between / 2));
    error_then = error;
    at_ns = t4;
    ++samples;
    return true;
  }
};

}  // namespace weft::channel
