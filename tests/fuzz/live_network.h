// What becomes of trains on their way in the world of the live target, and those that nobody sent.
#pragma once
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "tests/fuzz/live_world.h"

namespace weft::fuzz {

// Who seems to have sent a train, and what the wire saw of it.
inline live::RxTrain as_from(const World& w, const Host& from, std::uint32_t frame_size) {
  live::RxTrain t;
  t.frame_size = frame_size;
  t.source = w.address(from);
  t.source_port = kPort;
  return t;
}

inline void alter_facts(World& w, Host& to, live::RxTrain& t, Input& in) {
  switch (in.below(10)) {
    case 0:
      t.source = w.v6 ? plain_v6(3) : plain(3);
      break;
    case 1:
      t.source = w.address(to);  // it seems to come from itself
      break;
    case 2:
      t.source_port = in.u16();
      break;
    case 3:
      t.stray = true;
      break;
    case 4:
      t.handed = true;
      break;
    case 5:
      t.header_seen = true;
      t.identification = t.first = in.u16();
      break;
    case 6:
      t.header_seen = true;
      t.dont_fragment = false;
      break;
    case 7:
      t.group = in.flag() ? kGroup : wire::Address::v4(239, 9, 9, 9);
      break;
    default:
      t.tos = in.u8();
      t.ttl = in.u8();
  }
}

// Puts a train, all of whose frames but the last are of one size, before one of the host's doors. A ring is
// the peer's, and says nothing of its trains but their bytes; datagrams have real addresses and ports.
inline void enter(Host& to, const live::RxTrain& t, Bytes bytes, Input& in) {
  Doors* const doors = to.wire->doors();
  const std::uint32_t door = doors != nullptr ? in.below(4) : 0;
  const bool whole = t.frame_size != 0 && bytes.size() <= 60'000;
  if (door == 1 && whole &&
      doors->send_shared(
          {.bytes = bytes, .frame_size = t.frame_size, .destination = {}, .ip = {t.tos, t.ttl}})) {
    return;
  }
  const bool other = t.source == plain(3);
  if (door == 2 && whole && (other || t.source == plain(2))) {
    const auto source = static_cast<std::uint8_t>((other ? 1U : 0U) + (t.stray ? 2U : 0U));
    if (doors->send_udp(source, bytes, t.frame_size)) return;
  }
  to.wire->give(t, std::move(bytes));
}

// Each frame by itself, for they may differ in size.
inline void enter_singly(Host& to, const live::RxTrain& t, std::vector<Bytes> frames, Input& in) {
  for (Bytes& f : frames) {
    live::RxTrain one = t;
    one.frame_size = static_cast<std::uint32_t>(f.size());
    enter(to, one, std::move(f), in);
  }
}

inline void remember(World& w, const Host& from, const Bytes& frame) {
  constexpr std::size_t kSeen = 16;
  if (w.seen.size() == kSeen) w.seen.erase(w.seen.begin());
  w.seen.emplace_back(w.index(from), frame);
  wire::Decoded d;
  wire::DecodeError error{};
  if (wire::decode(frame, d, error)) w.psns[{w.index(from) ^ 1U, d.header.dest_qp.v}] = d.header.psn;
}

inline bool is_for(const Host& to, const wire::Address& destination) {
  return to.wire->facts().own.have(destination);
}

// As a good network does: in order, whole.
inline void carry_well(World& w, Host& from) {
  Host& to = w.other(from);
  for (; !from.wire->sent.empty(); from.wire->sent.pop_front()) {
    Sent& s = from.wire->sent.front();
    live::RxTrain t = as_from(w, from, s.frame_size);
    t.source = from.wire->facts().own.towards(s.destination);
    if (is_for(to, s.destination)) to.wire->give(t, std::move(s.bytes));
  }
}

inline void carry(World& w, Host& from, Input& in) {
  Host& to = w.other(from);
  auto& sent = from.wire->sent;
  if (sent.empty()) return;
  const std::uint32_t fate = in.below(16);
  const std::size_t at = fate == 1 ? in.u8() % sent.size() : 0;
  Sent s = sent[at];
  if (fate != 2) sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(at));  // 2: it comes again
  std::vector<Bytes> frames = frames_of(s.bytes, s.frame_size);
  for (const Bytes& f : frames) remember(w, from, f);
  if (fate == 0) return;  // lost
  live::RxTrain t = as_from(w, from, s.frame_size);
  t.source = from.wire->facts().own.towards(s.destination);
  t.tos = s.ip.traffic_class;
  t.ttl = s.ip.hop_limit;
  if (wire::is_group(s.destination)) t.group = s.destination;
  if (fate == 3) alter_facts(w, to, t, in);
  if (fate == 4) return enter_singly(to, t, std::move(frames), in);
  if (fate == 5) {  // some are lost
    std::erase_if(frames, [&](const Bytes&) { return in.below(4) == 0; });
    return enter_singly(to, t, std::move(frames), in);
  }
  if (fate == 6 || fate == 7) {
    Bytes& f = frames[in.u8() % frames.size()];
    const auto place = static_cast<std::uint16_t>(&f - frames.data());
    fate == 6 ? alter_header(f, in) : alter_bytes(f, in);
    if (in.below(4) != 1)
      seal(f, t.source, w.address(to), t.source_port, w.counts && !w.v6 ? place : std::uint16_t{0});
    return enter_singly(to, t, std::move(frames), in);
  }
  if (fate == 8) {  // joined anew, at places that mean nothing
    t.frame_size = 1U + in.u16() % static_cast<std::uint32_t>(s.bytes.size());
  }
  if (fate == 9) t.tos |= wire::kEcnCe;
  enter(to, t, std::move(s.bytes), in);
}

inline Qpn any_qpn(const Host& h, Input& in) {
  switch (in.below(16)) {
    case 0:
      return {in.u32() & 0xFF'FFFFU};
    case 1:
      return {in.below(3)};
    case 2:
      return wire::kEveryMember;
    case 3:
      return {std::uint32_t{Doors::kBeside} << 16U | in.below(16)};  // another process's
    default: {
      const Queue& q = *h.queues[in.u8() % h.queues.size()];
      return q.qpn;
    }
  }
}

// An address in a region; one time in four at its end, or some bytes beyond.
inline std::uint64_t any_address(const Block& b, std::uint64_t bytes, Input& in) {
  const bool at_the_end = in.below(4) == 1;
  const std::uint16_t where = in.u16();
  if (at_the_end) return b.address(b.length() - std::min<std::uint64_t>(b.length(), bytes) + where % 24U);
  return b.address(where % b.length()) & (where % 2 != 0 ? ~std::uint64_t{7} : ~std::uint64_t{0});
}

inline Bytes forged_packet(World& w, Host& to, Input& in) {
  wire::Header h;
  h.opcode = any_opcode(in);
  h.mode = in.below(4) == 3 ? static_cast<wire::Mode>(in.below(wire::kModeCount)) : w.mode;
  h.dest_qp = any_qpn(to, in);
  const auto last = w.psns.find({w.index(to), h.dest_qp.v});
  const bool follows = in.flag();
  const std::uint32_t near = follows && last != w.psns.end() ? last->second.v : kFirstPsn;
  h.psn = {(near + in.below(24) - 4) & kPsnMask};
  Bytes payload(in.below(4) == 0 ? in.u16() % 2000U : in.u8(), 0xCD);
  Block& b = to.block(in.below(Host::kBlocks));
  h.rkey = in.below(16) == 1 ? Key{in.u32()} : b.mr.rkey;
  h.dma_len = in.below(4) == 1 ? in.u16() : static_cast<std::uint32_t>(payload.size());
  h.va = in.below(16) == 1 ? in.u64() : any_address(b, h.dma_len, in);
  h.syndrome = in.below(4) == 1 ? in.u8() : std::uint8_t{wire::kSyndromeAck};
  h.imm = in.u8();
  h.sn = in.u8();
  h.bits = in.u8() & 31U;
  if (h.opcode == wire::kUdSendOnly || h.opcode == wire::kUdSendOnlyImm) {
    const bool special = h.dest_qp == wire::kGeneralServices;
    h.set_deth(in.below(8) == 1 ? in.u32() : special ? wire::kGeneralKey : kQkey, {in.u8()});
  } else {
    h.set_sack({(near + in.below(32)) & kPsnMask});
  }
  const wire::ExtLayout& layout = wire::ext_layout(h.opcode, h.mode, h.syndrome);
  if (!layout.known) {  // with the BTH of another one
    const std::uint8_t opcode = std::exchange(h.opcode, wire::kSendOnly);
    Bytes f = frame_of(h, payload);
    f[0] = opcode;
    return f;
  }
  if (!layout.payload) payload.clear();
  return frame_of(h, payload);
}

inline void lie(Doors& doors, Input& in) {
  Doors::Lie lie;
  lie.trains = in.below(10);
  lie.bytes = std::uint32_t{in.u16()} + 1;
  const std::uint32_t how = in.below(4);
  lie.last_bytes = how == 0 ? in.u32() : how == 1 ? std::uint32_t{in.u16()} * 16 : in.u8();
  lie.last_frame_size = in.flag() ? in.u32() : lie.last_bytes;
  lie.more = in.below(4) == 1 ? in.u64() : std::uint64_t{in.u16()} * 64;
  lie.taken = in.below(4) == 1 ? in.u64() : 0;
  doors.lie(lie);
}

// Whether it is for a queue pair that takes datagrams from anybody, or for nobody knows whom.
inline bool for_datagrams(const Host& h, const Bytes& frame) {
  if (frame.size() < wire::kBthBytes) return true;
  const std::uint32_t to = std::uint32_t{frame[5]} << 16U | std::uint32_t{frame[6]} << 8U | frame[7];
  return to == wire::kEveryMember.v || std::any_of(h.queues.begin(), h.queues.end(), [&](const auto& q) {
           return q->type == QpType::kUd && q->qpn.v == to;
         });
}

// True: it must not change a byte, whatever it says, if it comes by the wire of the test. It is from another
// address than the peer's, from a port that is no NIC's, or has a wrong ICRC where the right one is known.
inline bool forge(World& w, Host& to, Input& in) {
  Bytes f;
  const std::uint32_t what = in.below(8);
  if (what == 0) {
    f.resize(in.u8());
    for (std::uint8_t& b : f) b = in.u8();
  } else if (what <= 2) {
    const Qpn qpn = any_qpn(what == 1 ? w.other(to) : to, in);
    const wire::Mad mad =
        what == 1 ? any_cm_message(w.address(w.other(to)), w.address(to), qpn, in) : any_capability(qpn, in);
    f = mad_frame(mad, in.u8());
  } else if (what <= 4 && !w.seen.empty()) {
    f = w.seen[in.u8() % w.seen.size()].second;
    alter_header(f, in);
    if (in.below(4) == 1) alter_bytes(f, in);
  } else {
    f = forged_packet(w, to, in);
    if (in.below(8) == 1) alter_header(f, in);
  }
  live::RxTrain t = as_from(w, w.other(to), static_cast<std::uint32_t>(f.size()));
  if (in.below(8) == 1) alter_facts(w, to, t, in);
  const wire::Address& destination = t.for_group() ? t.group : w.address(to);
  const bool sealed = in.below(16) != 1;
  seal(f, t.source, destination, t.source_port, t.header_seen ? t.identification : std::uint16_t{0});
  if (!sealed && !f.empty()) f.back() ^= static_cast<std::uint8_t>(1U + in.below(255));
  const bool known = t.header_seen || !wire::is_v4_mapped(t.source);
  const bool harmless = t.stray || (!sealed && known && w.options.icrc) ||
                        (t.source != w.address(w.other(to)) && !for_datagrams(to, f));
  enter(to, t, std::move(f), in);
  return harmless;
}

}  // namespace weft::fuzz
