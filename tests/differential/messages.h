// The messages of a program and where they lie in memory: each end has a place for each of its requests, and
// for what its peer writes, sends and counts there.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/verbs/types.h"

namespace weft::differential {

inline constexpr std::uint64_t kMemoryAt = 0x4000'0000;
inline constexpr std::uint32_t kSlot = 8192;   // bytes of one message's place at either end
inline constexpr std::uint32_t kDepth = 4;     // messages outstanding
inline constexpr std::uint32_t kReceives = 8;  // posted at first; each is posted again when it completes

// Where each end's memory holds what: offsets from its start.
inline constexpr std::uint32_t kSources = 0;
inline constexpr std::uint32_t kWritten = kSources + kDepth * kSlot;  // by the peer
inline constexpr std::uint32_t kRead = kWritten + kDepth * kSlot;     // from the peer
inline constexpr std::uint32_t kReceived = kRead + kDepth * kSlot;    // SENT by the peer
inline constexpr std::uint32_t kCounters =
    kReceived + kReceives * kSlot;  // for atomics: nothing else writes here

struct Message {
  WrOpcode op{};
  std::uint32_t length = 0;
};

inline bool counts(WrOpcode op) { return op == WrOpcode::kCompareSwap || op == WrOpcode::kFetchAdd; }

inline std::vector<Message> draw_messages(Prng& r, std::uint64_t least, std::uint64_t most) {
  constexpr WrOpcode kOps[] = {WrOpcode::kWrite,   WrOpcode::kWriteImm, WrOpcode::kSend,
                               WrOpcode::kSendImm, WrOpcode::kRead,     WrOpcode::kCompareSwap,
                               WrOpcode::kFetchAdd};
  std::vector<Message> messages(r.between(least, most));
  for (Message& m : messages) {
    m.op = kOps[r.below(7)];
    m.length = counts(m.op) ? 8 : static_cast<std::uint32_t>(r.below(3) == 0 ? r.below(64) : r.below(kSlot));
  }
  return messages;
}

struct Keys {
  Key lkey{};
  Key rkey{};
};

// The request for message number `index`. It points to its own piece.
struct Request {
  Request(const Message& m, std::size_t index, Keys keys) {
    const std::uint64_t slot = index % kDepth * kSlot;
    const bool fetches = m.op == WrOpcode::kRead || counts(m.op);
    piece = {kMemoryAt + (fetches ? kRead : kSources) + slot, m.length, keys.lkey};
    wr.wr_id = index;
    wr.sges = {&piece, m.length == 0 ? 0U : 1U};
    wr.opcode = m.op;
    wr.flags = kSendSignaled;
    wr.imm = static_cast<std::uint32_t>(index);
    wr.remote_address = kMemoryAt +
                        (counts(m.op)              ? kCounters
                         : m.op == WrOpcode::kRead ? kSources
                                                   : kWritten) +
                        slot;
    wr.rkey = keys.rkey;
    wr.compare_or_add = 1;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Sge piece;
  SendWr wr;
};

inline Sge receive_piece(std::uint64_t index, Key lkey) {
  return {kMemoryAt + kReceived + index % kReceives * kSlot, kSlot, lkey};
}

inline bool is_receive(const Completion& c) {
  return static_cast<int>(c.opcode) >= static_cast<int>(WcOpcode::kReceive);
}

inline std::string to_text(const Completion& c) {
  return "completion " + std::to_string(c.wr_id) + " status " + std::to_string(static_cast<int>(c.status)) +
         " bytes " + std::to_string(c.byte_len) + " imm " + std::to_string(c.imm);
}

}  // namespace weft::differential
