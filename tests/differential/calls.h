// What two programs that meet do, drawn from a seed: who is foreign, who calls whom, how a call is taken,
// what is said on it, who leaves when; and what the networks of both lanes do meanwhile.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "tests/differential/script.h"
#include "tests/differential/worlds.h"

namespace weft::differential {

enum class Kind : std::uint8_t {
  kAuto,     // finds out what its peer speaks
  kFixed,    // has one mode, and says so to those who ask
  kForeign,  // speaks plain RoCE, and knows no message of the extension
};

// How the end that is called takes it, and how the end that called takes the answer.
enum class Taking : std::uint8_t { kAccepts, kLate, kRejects, kAbandons };

struct Call {
  Duration after{};   // the last event of the call before
  bool heard = true;  // somebody listens at that port
  Taking request = Taking::kAccepts;
  Taking response = Taking::kAccepts;
  Duration late{};
  // The queue pair of the end that is called goes to RTS with its answer, as the engine's does; otherwise
  // when the connection is established.
  bool whole = true;
  // By side, the caller's first: it disconnects once so many of its messages are complete.
  std::array<bool, 2> leaves{};
  std::array<std::size_t, 2> leaves_after{};
  std::array<std::vector<Message>, 2> messages;
  cm::ConnectAttr terms;
  cm::AcceptAttr answer;
  std::array<std::vector<std::uint8_t>, 2> said;  // private data
};

// Both ends connect a queue pair by hand: the numbers of both are known, the mode is asked for.
struct Round {
  Time at;  // the queue pairs of the round before go
  std::array<std::vector<Message>, 2> messages;
  std::uint32_t mtu = 1024;
  WirePsn psn[2];
  std::uint8_t timeout = 10;
};

struct CallsPlan {
  WorldPlan world;
  std::array<Kind, 2> kinds{};
  std::array<wire::Mode, 2> modes{};              // kFixed
  std::array<std::vector<Call>, 2> calls;         // by caller
  std::array<Time, 2> closes = {kNever, kNever};  // its listener
  std::vector<Round> rounds;
};

CallsPlan make_calls(std::uint64_t seed);
// The same at the pace of the soft NIC's services, whose time-outs are thousands of times as long.
CallsPlan make_slow_calls(std::uint64_t seed);

}  // namespace weft::differential
