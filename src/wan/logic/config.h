// Everything that can be set about a box, and what it counts.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace weft::wan {

// When a box acknowledges a request that it keeps.
enum class Acknowledge : std::uint8_t {
  kEarly,  // at once (NTT §5)
  kFar,    // when the far box has it, too: then no single box is missed
};

// Parity frames for each group of data frames on the line (parity.h). Both boxes must have it.
struct ParityTerms {
  static constexpr std::uint32_t kLeastData = 2;
  static constexpr std::uint32_t kMostData = 64;
  static constexpr std::uint32_t kMostRepair = 8;
  std::uint8_t data = 0;
  std::uint8_t repair = 0;  // 0: none
  bool there() const { return repair != 0; }
  bool operator==(const ParityTerms&) const = default;
};

// "16+2", or "0": none. The sentence of a failure begins with `field`.
Result<ParityTerms> parse_parity_terms(const std::string& field, const std::string& text);

struct BoxConfig {
  std::uint64_t instance = 1;        // drawn anew at every start; not 0
  std::uint64_t seed = 1;            // of what a partner must repeat
  std::vector<std::uint8_t> secret;  // the same in both boxes
  Acknowledge acknowledge = Acknowledge::kEarly;
  // Of READs and atomics, on the line; else they pass as on a wire. Both boxes must have it.
  bool repair_answers = false;

  // --- bounds ---
  Bytes store{256'000'000};
  std::uint32_t frames = 1U << 16U;  // in the store
  std::uint32_t halves = 1024;       // that its site's endpoints send on, and as many that they answer on
  std::uint32_t queue = 1024;        // frames that pass, by side
  std::uint32_t window = 8192;       // packets of a half on the line; a power of two, 65536 at most
  // Packets of a half that an endpoint has not acknowledged, where it keeps what is ahead of a gap: the
  // smallest bitmap that such endpoints have (docs/protocol/irn.md#the-window).
  std::uint32_t site_window = 110;
  std::uint32_t meetings = 256;     // connections that are being set up at one time
  std::uint32_t loss_blocks = 256;  // halves that miss packets at one time

  // --- times ---
  // Of a longer line they follow the round trip that its partner's answers tell (BoxState, "times of the
  // line").
  Duration line_timeout =
      milliseconds(50);  // without an answer the partner did not hear; at least two round trips
  Duration least_line_timeout = microseconds(100);  // of data
  Duration site_timeout = milliseconds(1);          // an endpoint of the site answers within this
  std::uint32_t site_tries = 8;                     // unanswered ones until it counts as gone
  Duration hello = milliseconds(20);  // between questions to the partner; at least a quarter of a round trip
  Duration patience = milliseconds(100);  // without an answer the partner counts as gone; and two round trips
  Duration give_up = seconds(30);         // so long a box waits for the partner with packets that it owes
  Duration quiet = milliseconds(1);  // a half without packets for so long is released; at least a round trip

  // --- parity ---
  ParityTerms parity;
  std::uint32_t covered = 4096;  // payload; a longer frame has no parity, because the line is not that wide
  // So long the far box leaves parity time before it says what it misses; an eighth of a long line's round
  // trip, because that is what parity saves. A group that does not fill is closed after half of it.
  Duration parity_wait = microseconds(200);

  // --- learning ---
  std::uint8_t agreements = 3;  // acknowledgements that must name the same requester
  std::uint32_t calm = 16;      // WRITEs and SENDs in order before a half is owned, since its last READ

  // A sentence that names the field and what it may be.
  Result<void> validate() const;
};

// X(name, sentence)
#define WEFT_BOX_COUNTERS(X)                                                                       \
  X(passed, "frames forwarded as a wire does")                                                     \
  X(drop_queue, "dropped: the queue of passing frames was full")                                   \
  X(taken, "request packets taken from the site, to be delivered by the pair")                     \
  X(acknowledged, "acknowledgements made for the site")                                            \
  X(refused_gap, "sequence NAKs made for the site")                                                \
  X(drop_gap, "dropped: ahead of the expected packet of the site")                                 \
  X(kept_ahead, "packets of the site kept ahead of the expected one")                              \
  X(drop_waiting, "dropped: a half was changing hands")                                            \
  X(drop_full, "dropped: no room in the store for the site's packet")                              \
  X(site_duplicate, "packets of the site that were taken before")                                  \
  X(swallowed, "acknowledgements of endpoints that end here")                                      \
  X(line_sent, "packets sent to the partner")                                                      \
  X(line_resent, "of those, sent before")                                                          \
  X(covered, "of packets sent to the partner, those under parity")                                 \
  X(uncovered, "packets without parity: their parity would be too long for the line")              \
  X(parity_sent, "parity frames sent to the partner")                                              \
  X(parity_short, "groups that ended before they were full")                                       \
  X(parity_heard, "parity frames of the partner")                                                  \
  X(restored, "packets of the line that were lost and restored by parity")                         \
  X(beyond_parity, "groups that lost more than their parity gives back in time")                   \
  X(restored_wrong, "restored packets that were not what was missed")                              \
  X(line_kept, "packets of the line kept ahead of the expected one")                               \
  X(line_duplicate, "packets of the line that were here already")                                  \
  X(drop_line_full, "dropped: no room in the store for the line's packet")                         \
  X(given, "packets sent to an endpoint of the site")                                              \
  X(given_again, "of those, sent before")                                                          \
  X(learned, "requesters learned from acknowledgements")                                           \
  X(followed, "requesters learned from the connection manager")                                    \
  X(farewells, "DREQs that waited for what was acknowledged")                                      \
  X(compared, "streams that acknowledgements of nobody known were held against")                   \
  X(ambiguous, "acknowledgements that fit several connections, or none")                           \
  X(unlearned, "connections that stopped being what was learned")                                  \
  X(table_full, "packets of connections that found no place")                                      \
  X(other_mode, "packets of another mode than their connection's")                                 \
  X(owned, "halves owned")                                                                         \
  X(declined, "ownerships that the partner did not agree to")                                      \
  X(renewed, "ownerships renewed with the partner")                                                \
  X(released, "halves released")                                                                   \
  X(reads, "READs and atomics that passed inside an ownership")                                    \
  X(answers_kept, "answers sent over the line with a copy kept")                                   \
  X(answers_unkept, "answers that passed without a copy: no room in the store")                    \
  X(answers_declined, "streams of answers that passed, because the partner had no place for them") \
  X(answers_resent, "answers sent again, because the partner misses them")                         \
  X(answers_ahead, "gaps in answers that came over the line")                                      \
  X(answers_anew, "times that answers waited for the partner's word: a READ was repeated")         \
  X(answers_asked_again, "times that what was held behind a gap went: its READ was repeated")      \
  X(answers_given_up, "gaps in answers that were not repaired in time")                            \
  X(drop_answer, "dropped: answers that were repeated while the partner may have held older ones") \
  X(drained_for_read, "of those, because of a READ of unknown length")                             \
  X(failed, "halves that ended with an error")                                                     \
  X(orphaned, "halves whose partner went away")                                                    \
  X(said, "messages sent to the partner")                                                          \
  X(heard, "messages of the partner taken")                                                        \
  X(not_heard, "messages refused: wrong HMAC, another instance, too old, or a second time")        \
  X(partner_found, "times that a partner answered for the first time, or again after it was lost") \
  X(partner_lost, "times that it stopped answering")

enum class BoxCounter : std::size_t {
#define WEFT_X(name, text) name,
  WEFT_BOX_COUNTERS(WEFT_X)
#undef WEFT_X
      kCount
};
inline constexpr std::size_t kBoxCounterCount = static_cast<std::size_t>(BoxCounter::kCount);

struct BoxCounterInfo {
  const char* name;
  const char* text;
};
inline constexpr std::array<BoxCounterInfo, kBoxCounterCount> kBoxCounterInfo{{
#define WEFT_X(name, text) {#name, text},
    WEFT_BOX_COUNTERS(WEFT_X)
#undef WEFT_X
}};

class BoxCounters {
 public:
  void add(BoxCounter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  std::uint64_t get(BoxCounter c) const { return values_[static_cast<std::size_t>(c)]; }

 private:
  std::array<std::uint64_t, kBoxCounterCount> values_{};
};

}  // namespace weft::wan
