// The line is written by walking the packet's layout, one case per extension header, as codec.cc does with
// the bytes; a header that the table does not name cannot appear here, and one that it names cannot be
// forgotten (the compiler checks the switch).
//
// Addresses are written as RFC 5952 asks, without the system's inet_ntop: this code also runs in the
// simulated world, which includes no socket header.
#include "trace/text.h"

#include <algorithm>
#include <cstdio>

#include "core/wire/codec.h"

namespace weft::trace {
namespace {

using wire::Ext;
using wire::Header;

// " name=value"
void add(std::string& out, const char* name, std::uint64_t value) {
  out.append(" ").append(name).append("=").append(std::to_string(value));
}

std::string hex(std::uint64_t value) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(value));
  return digits;
}

void add_hex(std::string& out, const char* name, std::uint64_t value) {
  out.append(" ").append(name).append("=").append(hex(value));
}

// docs/protocol/packets.md#syndromes.
std::string syndrome_text(std::uint8_t syndrome) {
  if (syndrome == wire::kSyndromeAck) return " ack";
  if (syndrome < wire::kSyndromeAck) return " ack credits=" + std::to_string(syndrome);
  if ((syndrome & 0xE0U) == wire::kSyndromeRnr) return " rnr timer=" + std::to_string(syndrome & 0x1FU);
  switch (syndrome) {
    case wire::kSyndromeNakSequence:
      return " nak=sequence";
    case wire::kSyndromeNakInvalid:
      return " nak=invalid";
    case wire::kSyndromeNakAccess:
      return " nak=access";
    case wire::kSyndromeNakOperation:
      return " nak=operation";
    default:
      return " syndrome=" + hex(syndrome);
  }
}

// The immediate is four raw bytes: shown in the order they travel in.
std::uint32_t as_travelled(std::uint32_t raw) { return __builtin_bswap32(raw); }

void add_ext(std::string& out, Ext ext, const Header& h) {
  switch (ext) {
    case Ext::kNone:
    case Ext::kCnpPad:
      return;
    case Ext::kReth:
      add_hex(out, "va", h.va);
      add_hex(out, "rkey", h.rkey.v);
      return add(out, "len", h.dma_len);
    case Ext::kDeth:
      add_hex(out, "qkey", h.qkey());
      return add_hex(out, "src_qp", h.src_qp().v);
    case Ext::kAeth:
      out += syndrome_text(h.syndrome);
      return add(out, "msn", h.aeth_msn());
    case Ext::kAtomicEth:
      add_hex(out, "va", h.va);
      add_hex(out, "rkey", h.rkey.v);
      add_hex(out, h.opcode == wire::kCompareSwap ? "swap" : "add", h.a);
      if (h.opcode == wire::kCompareSwap) add_hex(out, "compare", h.b);
      return;
    case Ext::kAtomicAck:
      return add_hex(out, "original", h.va);
    case Ext::kImm:
      return add_hex(out, "imm", as_travelled(h.imm));
    case Ext::kIeth:
      return add_hex(out, "invalidate", h.imm);
    case Ext::kSnx:
      add(out, "recv_wqe_sn", h.sn);
      return add(out, "offset", h.psn_offset);
    case Ext::kRsn:
      return add(out, "read_wqe_sn", h.sn);
    case Ext::kSack:
      add_hex(out, (h.ext_flags & wire::kSackNotKept) != 0 ? "dropped" : "sack", h.sack_psn().v);
      if ((h.ext_flags & wire::kCeEcho) != 0) out += " ce";
      return;
    case Ext::kSrx:
      add(out, "message", h.srx_msn);
      add(out, "offset", h.psn_offset);
      return add(out, "ssn", h.sn);
    case Ext::kWax:
      add_hex(out, "va", h.va);
      return add_hex(out, "rkey", h.rkey.v);
    case Ext::kEcx:
      add_hex(out, "epsn", h.sack_psn().v);
      add(out, "echo_message", h.echo_msn());
      add(out, "echo_offset", h.echo_offset());
      if ((h.ext_flags & wire::kEcxOutOfOrder) != 0) out += " out_of_order";
      if ((h.ext_flags & wire::kEcxDuplicate) != 0) out += " duplicate";
      if ((h.ext_flags & wire::kCeEcho) != 0) out += " ce";
      return;
  }
}

std::string_view mode_text(wire::Mode mode) {
  return static_cast<std::size_t>(mode) < wire::kModeCount ? wire::mode_name(mode) : "mode?";
}

}  // namespace

std::string to_text(const wire::Address& address) {
  const auto& b = address.bytes;
  char text[64];
  const bool v4 = std::all_of(b.begin(), b.begin() + 10, [](std::uint8_t x) { return x == 0; }) &&
                  b[10] == 0xFF && b[11] == 0xFF;
  if (v4) {
    std::snprintf(text, sizeof text, "%u.%u.%u.%u", unsigned{b[12]}, unsigned{b[13]}, unsigned{b[14]},
                  unsigned{b[15]});
    return text;
  }
  // RFC 5952: the first longest run of two or more zero groups becomes "::".
  unsigned group[8];
  for (unsigned i = 0; i < 8; ++i) group[i] = (unsigned{b[2 * i]} << 8U) | b[2 * i + 1];
  unsigned best = 8, best_length = 1;
  for (unsigned i = 0; i < 8; ++i) {
    unsigned length = 0;
    while (i + length < 8 && group[i + length] == 0) ++length;
    if (length > best_length) best = i, best_length = length;
  }
  std::string out;
  for (unsigned i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    std::snprintf(text, sizeof text, "%x", group[i]);
    out += text;
  }
  return out;
}

std::string to_text(const wire::Header& h, std::uint32_t payload) {
  const std::string_view name = wire::opcode_name(h.opcode);
  std::string out(name);
  if (name.empty()) out = "opcode=" + hex(h.opcode);
  out += ' ';
  out += mode_text(h.mode);
  add_hex(out, "qp", h.dest_qp.v);
  add_hex(out, "psn", h.psn.v);
  if ((h.bits & wire::kAckReq) != 0) out += " ackreq";
  if ((h.bits & wire::kSolicited) != 0) out += " solicited";
  if ((h.bits & wire::kMigReq) != 0) out += " migreq";
  if ((h.bits & wire::kFecn) != 0) out += " fecn";
  if ((h.bits & wire::kBecn) != 0) out += " becn";
  if (h.pkey != 0xFFFF) add_hex(out, "pkey", h.pkey);
  const wire::ExtLayout& layout = wire::ext_layout(h.opcode, h.mode, h.syndrome);
  for (const Ext ext : layout.ext) add_ext(out, ext, h);
  if (layout.payload || payload != 0) add(out, "payload", payload);
  return out;
}

std::string to_text(const PacketInfo& info, const wire::Header& h, std::uint32_t payload) {
  char when[40];
  std::snprintf(when, sizeof when, "%lld.%06lldus ", static_cast<long long>(info.time.ps / 1'000'000),
                static_cast<long long>(info.time.ps % 1'000'000));
  std::string out = when;
  out.append(to_text(info.source)).append(":").append(std::to_string(info.source_port));
  out.append(" > ").append(to_text(info.destination)).append(" ").append(to_text(h, payload));
  if ((info.tos & wire::kEcnMask) == wire::kEcnCe) out += " ce_marked";
  if (!info.comment.empty()) out.append(" # ").append(info.comment);
  return out;
}

}  // namespace weft::trace
