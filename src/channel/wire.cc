#include "channel/wire.h"

#include <algorithm>

namespace weft::channel {
namespace {

constexpr std::uint8_t kContinues = 1;
constexpr std::uint8_t kMoves = 2;

void put(std::uint8_t* at, unsigned bytes, std::uint64_t value) {
  for (unsigned i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(value >> (8U * (bytes - 1U - i)));
}
std::uint64_t get(const std::uint8_t* at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value = value << 8U | at[i];
  return value;
}
std::uint32_t get32(const std::uint8_t* at) { return static_cast<std::uint32_t>(get(at, 4)); }

}  // namespace

ConnectData write_hello(const Hello& h) {
  ConnectData d;
  d.size = Hello::kBytes;
  std::uint8_t* const b = d.bytes.data();
  b[0] = 'w';
  b[1] = 'c';
  b[2] = h.version;
  b[3] = static_cast<std::uint8_t>((h.continues ? kContinues : 0U) | (h.moves ? kMoves : 0U));
  put(b + 4, 8, h.session);
  put(b + 12, 2, h.depth);
  put(b + 14, 2, h.tcp_port);
  put(b + 16, 4, h.frame);
  put(b + 20, 4, h.largest);
  put(b + 24, 8, h.received);
  put(b + 32, 8, h.taken);
  put(b + 40, 4, h.reconnect_ms);
  put(b + 44, 4, h.alive_ms);
  put(b + 48, 4, static_cast<std::uint32_t>(h.reason));
  return d;
}

Refusal read_hello(const ConnectData& d, Hello& h) {
  const std::uint8_t* const b = d.bytes.data();
  if (d.size != Hello::kBytes || b[0] != 'w' || b[1] != 'c' || b[2] != kProtocol) return Refusal::kVersion;
  h.version = b[2];
  h.continues = (b[3] & kContinues) != 0;
  h.moves = (b[3] & kMoves) != 0;
  h.session = get(b + 4, 8);
  h.depth = static_cast<std::uint32_t>(get(b + 12, 2));
  h.tcp_port = static_cast<std::uint16_t>(get(b + 14, 2));
  h.frame = get32(b + 16);
  h.largest = get32(b + 20);
  h.received = get(b + 24, 8);
  h.taken = get(b + 32, 8);
  h.reconnect_ms = get32(b + 40);
  h.alive_ms = get32(b + 44);
  const std::uint32_t reason = get32(b + 48);
  h.reason =
      reason > static_cast<std::uint32_t>(Refusal::kRange) ? Refusal::kRange : static_cast<Refusal>(reason);
  if (h.reason != Refusal::kNone) return h.reason;
  const bool sound = h.depth >= 1 && h.depth <= kMostDepth && h.frame >= kLeastFrame && h.taken <= h.received;
  return sound ? Refusal::kNone : Refusal::kRange;
}

void write_prefix(const Prefix& p, std::uint8_t* out) {
  put(out, 4, p.length);
  put(out + 4, 4, p.immediate);
}

Prefix read_prefix(const std::uint8_t* in) { return {get32(in), get32(in + 4)}; }

void write_head(const Head& h, std::uint8_t* out) {
  put(out, 4, h.call);
  put(out + 4, 4, h.status);
  put(out + 8, 8, h.trace);
  put(out + 16, 8, h.left_at);
  put(out + 24, 8, h.arrived);
}

Head read_head(const std::uint8_t* in) {
  return {get32(in), get32(in + 4), get(in + 8, 8), get(in + 16, 8), get(in + 24, 8)};
}

std::uint32_t write_announcement(const Announcement& a, std::uint8_t* out) {
  put(out, 8, a.length);
  put(out + 8, 2, a.count);
  put(out + 10, 6, 0);
  std::uint8_t* at = out + Announcement::kFixed;
  for (std::uint32_t i = 0; i < a.count; ++i, at += Announcement::kPiece) {
    put(at, 8, a.pieces[i].address);
    put(at + 8, 4, a.pieces[i].rkey.v);
    put(at + 12, 4, a.pieces[i].length);
  }
  return static_cast<std::uint32_t>(at - out);
}

bool read_announcement(std::span<const std::uint8_t> in, std::uint64_t largest, Announcement& a) {
  if (in.size() < Announcement::kFixed) return false;
  a.length = get(in.data(), 8);
  a.count = static_cast<std::uint32_t>(get(in.data() + 8, 2));
  if (a.length == 0 || a.length > largest || a.count == 0 || a.count > kMostPieces) return false;
  if (in.size() != Announcement::kFixed + a.count * Announcement::kPiece) return false;
  std::uint64_t sum = 0;
  const std::uint8_t* at = in.data() + Announcement::kFixed;
  for (std::uint32_t i = 0; i < a.count; ++i, at += Announcement::kPiece) {
    a.pieces[i] = {get(at, 8), get32(at + 12), {get32(at + 8)}};
    if (a.pieces[i].length == 0) return false;
    sum += a.pieces[i].length;
  }
  return sum == a.length;
}

}  // namespace weft::channel
