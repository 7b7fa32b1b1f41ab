// What two boxes say to each other: management datagrams of the vendor class that weft's discovery has
// (docs/protocol/modes.md#capability-discovery), with an attribute of their own. They travel between the
// addresses of two endpoints, so they need no route of their own, and an endpoint that gets one ignores it.
//
//   0          24            37    40                                          240            256
//   | header   | reserved    | OUI | body (rows in message.cc)                 | first 16      |
//   |          |             |     |                                           | bytes of HMAC |
//
//   hello      I am instance X, I last heard instance Y; `answer`: say hello, too, and repeat `lease`,
//              `asked_at` and `half`, the two addresses between which the question goes
//   own        from packet `from` on this half is ours: I keep what I acknowledge, you deliver it
//   owned      agreed
//   report     everything before `stored` is with me, everything before `delivered` with the endpoint; and
//              these packets came ahead, and `from` could not be kept. Or the endpoint refused: `syndrome`
//   release    everything was delivered; from here on you are a wire again. Without a half: nothing is owned
//              under this lease
//   released   agreed
//   answers    I keep copies of the answers to `half` from `from` on; there are none for the numbers between
//              the pairs in `ahead`. Who hears of this lease first begins at `stored`; everything before
//              `delivered` was sent
//   answered   everything before `delivered` is here, and before `from` all but what lies in the pairs in
//              `ahead`. Or, refused: no place
//   leave      I am about to be switched off: let go of everything, and ask me for nothing
//
// A message is taken if its HMAC is right, it is for this instance of the box, and it is newer than what was
// taken before (docs/ARCHITECTURE.md, "What boxes say").
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "wan/logic/config.h"
#include "wan/logic/frame.h"
#include "wan/logic/hmac.h"

namespace weft::wan {

enum class Say : std::uint8_t {
  kHello = 1,
  kOwn,
  kOwned,
  kReport,
  kRelease,
  kReleased,
  kLeave,
  kAnswers,
  kAnswered
};

inline constexpr std::size_t kMostAhead = 24;

struct Message {
  Say say = Say::kHello;
  bool answer = false;        // hello
  bool refused = false;       // report: packet `from` came, and could not be kept; answered: no place
  std::uint8_t syndrome = 0;  // report: not zero: the endpoint refused packet `delivered`
  std::uint8_t ahead_count = 0;
  std::uint64_t sender = 0;             // instances: drawn anew whenever a box starts
  std::uint64_t receiver = 0;           // 0: not known yet
  std::uint64_t number = 0;             // of this message; grows
  std::uint64_t lease = 0;              // of an ownership; grows with every one that a box asks for
  wire::Mode mode = wire::Mode::kRoce;  // own: of the half
  WirePsn from{};                       // own, report
  WirePsn stored{};                     // report
  WirePsn delivered{};
  HalfName half;  // hello, own
  Qpn requester_qpn{};
  std::array<WirePsn, kMostAhead> ahead{};
  std::uint64_t asked_at = 0;  // hello: when the question left, on the clock of the box that asks
  std::uint64_t patience_ns =
      0;               // hello: so long after it last heard the other box, this one lets go of everything
  ParityTerms parity;  // hello: what the sender adds to its data, and that it restores what it is sent
  std::uint64_t parity_wait_ns = 0;  // hello: so long parity may come behind the data that it covers
  bool operator==(const Message&) const = default;
};

// False: no message between boxes.
bool is_message(std::span<const std::uint8_t> mad);
void encode(const Message& m, const Hmac& key, wire::Mad& out);
// False: the HMAC is wrong, or the content makes no sense.
bool decode(std::span<const std::uint8_t> mad, const Hmac& key, Message& out);

}  // namespace weft::wan
