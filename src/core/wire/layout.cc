// The one table of what weft speaks: every opcode, its name, whether payload may follow, and its
// extension headers in each mode (docs/protocol/packets.md#opcodes, irn.md#layouts, srnic.md#layouts).
//
// IRN and SRNIC exist for RC alone: UC and UD recover nothing, so they have no column there. A CNP is
// the same 32 bytes whatever mode its queue pair is in. SACK and ECX are listed where they can appear
// and taken off again for the syndromes that do without (`carries_report`).
//
// Lookup is two small arrays computed from the table at compile time: opcode -> row, row -> layouts.
#include <array>

#include "core/wire/codec.h"

namespace weft::wire {
namespace {

// Extension headers of one opcode in one mode; `-` when the opcode does not exist there.
struct Column {
  bool known = false;
  Ext ext[4] = {Ext::kNone, Ext::kNone, Ext::kNone, Ext::kNone};
};
template <class... E>
constexpr Column has(E... e) {
  return {true, {e...}};
}
constexpr Column kAbsent{};

struct Row {
  std::uint8_t opcode;
  std::string_view name;
  bool payload;
  Column mode[kModeCount];  // roce, irn, srnic
};

using enum Ext;
constexpr bool kData = true;   // payload may follow
constexpr bool kBare = false;  // headers only
constexpr std::uint8_t kUc = 0x20;

// clang-format off
constexpr Row kRows[] = {
    //  opcode                name                       payload  roce                    irn                        srnic
    {kSendFirst,          "RC_SEND_FIRST",           kData, {has(),                  has(kSnx),              has(kSrx)}},
    {kSendMiddle,         "RC_SEND_MIDDLE",          kData, {has(),                  has(kSnx),              has(kSrx)}},
    {kSendLast,           "RC_SEND_LAST",            kData, {has(),                  has(kSnx),              has(kSrx)}},
    {kSendLastImm,        "RC_SEND_LAST_IMM",        kData, {has(kImm),              has(kSnx, kImm),        has(kSrx, kImm)}},
    {kSendOnly,           "RC_SEND_ONLY",            kData, {has(),                  has(kSnx),              has(kSrx)}},
    {kSendOnlyImm,        "RC_SEND_ONLY_IMM",        kData, {has(kImm),              has(kSnx, kImm),        has(kSrx, kImm)}},
    {kWriteFirst,         "RC_WRITE_FIRST",          kData, {has(kReth),             has(kReth),             has(kSrx, kWax)}},
    {kWriteMiddle,        "RC_WRITE_MIDDLE",         kData, {has(),                  has(kReth),             has(kSrx, kWax)}},
    {kWriteLast,          "RC_WRITE_LAST",           kData, {has(),                  has(kReth),             has(kSrx, kWax)}},
    {kWriteLastImm,       "RC_WRITE_LAST_IMM",       kData, {has(kImm),              has(kSnx, kReth, kImm), has(kSrx, kWax, kImm)}},
    {kWriteOnly,          "RC_WRITE_ONLY",           kData, {has(kReth),             has(kReth),             has(kSrx, kWax)}},
    {kWriteOnlyImm,       "RC_WRITE_ONLY_IMM",       kData, {has(kReth, kImm),       has(kSnx, kReth, kImm), has(kSrx, kWax, kImm)}},
    {kReadRequest,        "RC_READ_REQUEST",         kBare, {has(kReth),             has(kRsn, kReth),       has(kSrx, kReth)}},
    {kReadResponseFirst,  "RC_READ_RESPONSE_FIRST",  kData, {has(kAeth),             has(kAeth),             has(kSrx, kAeth)}},
    {kReadResponseMiddle, "RC_READ_RESPONSE_MIDDLE", kData, {has(),                  has(),                  has(kSrx)}},
    {kReadResponseLast,   "RC_READ_RESPONSE_LAST",   kData, {has(kAeth),             has(kAeth),             has(kSrx, kAeth)}},
    {kReadResponseOnly,   "RC_READ_RESPONSE_ONLY",   kData, {has(kAeth),             has(kAeth),             has(kSrx, kAeth)}},
    {kAcknowledge,        "RC_ACKNOWLEDGE",          kBare, {has(kAeth),             has(kAeth, kSack),      has(kAeth, kEcx)}},
    {kAtomicAcknowledge,  "RC_ATOMIC_ACKNOWLEDGE",   kBare, {has(kAeth, kAtomicAck), has(kAeth, kAtomicAck), has(kSrx, kAeth, kAtomicAck)}},
    {kCompareSwap,        "RC_COMPARE_SWAP",         kBare, {has(kAtomicEth),        has(kRsn, kAtomicEth),  has(kSrx, kAtomicEth)}},
    {kFetchAdd,           "RC_FETCH_ADD",            kBare, {has(kAtomicEth),        has(kRsn, kAtomicEth),  has(kSrx, kAtomicEth)}},
    {kSendLastInvalidate, "RC_SEND_LAST_INVALIDATE", kData, {has(kIeth),             has(kSnx, kIeth),       has(kSrx, kIeth)}},
    {kSendOnlyInvalidate, "RC_SEND_ONLY_INVALIDATE", kData, {has(kIeth),             has(kSnx, kIeth),       has(kSrx, kIeth)}},
    {kReadAcknowledge,    "RC_READ_ACKNOWLEDGE",     kBare, {kAbsent,                has(kAeth, kSack),      has(kAeth, kEcx)}},

    {kUc | kSendFirst,    "UC_SEND_FIRST",           kData, {has(),                  kAbsent,                kAbsent}},
    {kUc | kSendMiddle,   "UC_SEND_MIDDLE",          kData, {has(),                  kAbsent,                kAbsent}},
    {kUc | kSendLast,     "UC_SEND_LAST",            kData, {has(),                  kAbsent,                kAbsent}},
    {kUc | kSendLastImm,  "UC_SEND_LAST_IMM",        kData, {has(kImm),              kAbsent,                kAbsent}},
    {kUc | kSendOnly,     "UC_SEND_ONLY",            kData, {has(),                  kAbsent,                kAbsent}},
    {kUc | kSendOnlyImm,  "UC_SEND_ONLY_IMM",        kData, {has(kImm),              kAbsent,                kAbsent}},
    {kUc | kWriteFirst,   "UC_WRITE_FIRST",          kData, {has(kReth),             kAbsent,                kAbsent}},
    {kUc | kWriteMiddle,  "UC_WRITE_MIDDLE",         kData, {has(),                  kAbsent,                kAbsent}},
    {kUc | kWriteLast,    "UC_WRITE_LAST",           kData, {has(),                  kAbsent,                kAbsent}},
    {kUc | kWriteLastImm, "UC_WRITE_LAST_IMM",       kData, {has(kImm),              kAbsent,                kAbsent}},
    {kUc | kWriteOnly,    "UC_WRITE_ONLY",           kData, {has(kReth),             kAbsent,                kAbsent}},
    {kUc | kWriteOnlyImm, "UC_WRITE_ONLY_IMM",       kData, {has(kReth, kImm),       kAbsent,                kAbsent}},

    {kUdSendOnly,         "UD_SEND_ONLY",            kData, {has(kDeth),             kAbsent,                kAbsent}},
    {kUdSendOnlyImm,      "UD_SEND_ONLY_IMM",        kData, {has(kDeth, kImm),       kAbsent,                kAbsent}},
    {kCnp,                "CNP",                     kBare, {has(kCnpPad),           has(kCnpPad),           has(kCnpPad)}},
};
// clang-format on
constexpr std::size_t kRowCount = std::size(kRows);
constexpr std::uint8_t kNoRow = kRowCount;

constexpr std::uint8_t ext_bytes(Ext e) {
  switch (e) {
    case kNone:
      return 0;
    case kReth:
      return 16;
    case kDeth:
      return 8;
    case kAeth:
      return 4;
    case kAtomicEth:
      return 28;
    case kAtomicAck:
      return 8;
    case kImm:
      return 4;
    case kIeth:
      return 4;
    case kSnx:
      return 6;
    case kRsn:
      return 4;
    case kSack:
      return 4;
    case kSrx:
      return 8;
    case kWax:
      return 12;
    case kEcx:
      return 12;
    case kCnpPad:
      return 16;
  }
  return 0;
}

constexpr std::array<std::uint8_t, 256> kRowOf = [] {
  std::array<std::uint8_t, 256> rows{};
  rows.fill(kNoRow);
  for (std::uint8_t i = 0; i < kRowCount; ++i) rows[kRows[i].opcode] = i;
  return rows;
}();

// [row][mode][1: with its report, 0: without]; the extra row answers for unknown opcodes.
using Variants = std::array<ExtLayout, 2>;
constexpr std::array<std::array<Variants, kModeCount>, kRowCount + 1> kLayouts = [] {
  std::array<std::array<Variants, kModeCount>, kRowCount + 1> layouts{};
  for (std::size_t r = 0; r < kRowCount; ++r) {
    for (std::size_t m = 0; m < kModeCount; ++m) {
      for (std::size_t with_report = 0; with_report < 2; ++with_report) {
        ExtLayout& l = layouts[r][m][with_report];
        l.known = kRows[r].mode[m].known;
        l.payload = l.known && kRows[r].payload;
        std::size_t n = 0;
        for (Ext e : kRows[r].mode[m].ext) {
          if ((e == kSack || e == kEcx) && with_report == 0) continue;
          if (e == kNone) continue;
          l.ext[n++] = e;
          l.bytes = static_cast<std::uint8_t>(l.bytes + ext_bytes(e));
        }
      }
    }
  }
  return layouts;
}();

constexpr bool fits() {
  for (const auto& row : kLayouts) {
    for (const auto& variants : row) {
      if (kBthBytes + variants[1].bytes > kMaxHeaderBytes) return false;
    }
  }
  return true;
}
static_assert(fits());

}  // namespace

const ExtLayout& ext_layout(std::uint8_t opcode, Mode mode, std::uint8_t syndrome) {
  const auto m = static_cast<std::size_t>(mode);
  if (m >= kModeCount) return kLayouts[kNoRow][0][0];
  return kLayouts[kRowOf[opcode]][m][carries_report(mode, syndrome) ? 1 : 0];
}

std::string_view opcode_name(std::uint8_t opcode) {
  const std::uint8_t row = kRowOf[opcode];
  return row == kNoRow ? std::string_view{} : kRows[row].name;
}

constexpr HeaderBytes kHeaderBytes = [] {
  HeaderBytes bytes{};
  for (std::size_t with_report = 0; with_report < 2; ++with_report) {
    for (std::size_t opcode = 0; opcode < 256; ++opcode) {
      for (std::size_t m = 0; m < 4; ++m) {
        const ExtLayout& l =
            m < kModeCount ? kLayouts[kRowOf[opcode]][m][with_report] : kLayouts[kNoRow][0][0];
        bytes[with_report][opcode][m] = static_cast<std::uint8_t>(kBthBytes + l.bytes);
      }
    }
  }
  return bytes;
}();

}  // namespace weft::wire
