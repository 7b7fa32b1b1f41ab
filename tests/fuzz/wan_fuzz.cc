// A pair of boxes, the endpoints of two connections, and a byte string that plays them, the line, and
// attackers at both sites and on the line: frames are sent, lost, recorded, altered, repeated and made up,
// parity among them, and time passes.
//
// What must hold: nothing crashes, invariants hold after every step, the stores stay below their bounds, and
// when everybody falls silent the boxes let go of everything: no frame is kept, no half is owned.
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "tests/fuzz/input.h"
#include "tests/wan/by_hand.h"
#include "wan/logic/store.h"

namespace {

using namespace weft;
using namespace weft::wan;

constexpr std::size_t kBag = 16;

wire::Mode some_mode(fuzz::Input& in) { return static_cast<wire::Mode>(in.below(wire::kModeCount)); }

struct World {
  ByHand boxes;
  std::vector<Connection> connections;
  std::vector<ByHand::Seen> bag;  // what an attacker has seen at the sites
  std::uint32_t lost = 0;         // of the next frames on the line, a bit each

  explicit World(fuzz::Input& in)
      : boxes([&in, how = in.u8()](std::uint32_t, BoxConfig& c) {
          c.acknowledge = (how & 1U) != 0 ? Acknowledge::kFar : Acknowledge::kEarly;
          if ((how & 2U) != 0) c.parity = {4, 2};
          c.halves = 2;
          c.meetings = 2;
          c.agreements = 2;
          c.calm = 1;
          c.store = Bytes{kLeastStore + 64U * in.u8()};
          c.loss_blocks = in.below(3);
        }) {
    for (std::uint32_t i = 0; i < 2; ++i)
      connections.emplace_back(boxes, Qpn{11 + i}, Qpn{21 + i}, 0xFF'FF00U + in.u8(), some_mode(in));
    boxes.lose_frame = [this](std::uint32_t, std::uint64_t, const Frame&) {
      const bool now = (lost & 1U) != 0;
      lost >>= 1U;
      return now;
    };
    boxes.heard = [this](std::uint32_t site, const ByHand::Seen& s) {
      for (Connection& c : connections) c.hear(site, s);
      if (bag.size() == kBag) bag.erase(bag.begin());
      bag.push_back(s);
    };
  }
};

Frame some_frame(fuzz::Input& in) {
  constexpr std::uint8_t kOpcodes[] = {
      wire::kWriteOnly,   wire::kSendOnly,    wire::kWriteFirst,       wire::kWriteMiddle,
      wire::kWriteLast,   wire::kReadRequest, wire::kReadResponseLast, wire::kFetchAdd,
      wire::kAcknowledge, wire::kAcknowledge, wire::kAcknowledge,      wire::kSendOnlyInvalidate};
  Frame f;
  wire::Header& h = f.header;
  h.opcode = kOpcodes[in.below(12)];
  if (in.flag()) h.bits = wire::kAckReq;
  h.psn = {(0xFF'FF00U + in.u16()) & kPsnMask};
  const std::uint32_t side = in.flag() ? 11U : 21U;
  h.dest_qp = {side + in.below(3)};
  h.dma_len = in.u16();
  if (h.opcode == wire::kAcknowledge) {
    const std::uint8_t syndrome = in.flag() ? std::uint8_t{wire::kSyndromeAck} : in.u8();
    h.set_aeth(syndrome, in.u8());
  } else {
    f.payload = in.u16() % 9000;
  }
  h.mode = some_mode(in);
  if (h.mode != wire::Mode::kRoce) {
    h.set_sack({(0xFF'FF00U + in.u16()) & kPsnMask});
    h.ext_flags = in.u8();
  }
  const bool forth = in.flag();
  f.source = forth ? Connection::kA : Connection::kB;
  f.destination = forth ? Connection::kB : Connection::kA;
  return f;
}

wire::Mad some_greeting(fuzz::Input& in) {
  constexpr wire::CmKind kKinds[] = {wire::CmKind::kReq, wire::CmKind::kRep, wire::CmKind::kDreq,
                                     wire::CmKind::kDrep};
  wire::CmMessage m;
  m.kind = kKinds[in.below(4)];
  m.local_id = m.remote_id = in.below(3);
  const std::uint32_t side = in.flag() ? 11U : 21U;
  m.qpn = {side + in.below(2)};
  m.starting_psn = {0xFF'FF00U + in.u8()};
  m.mtu = static_cast<std::uint8_t>(in.below(7));
  wire::Mad mad;
  encode(m, mad);
  return mad;
}

// At a site, or on the line.
void comes(World& w, fuzz::Input& in, const Frame& f, const wire::Mad* mad) {
  const std::uint32_t where = in.below(4);
  if (where < 2) return w.boxes.from_site(where, f, mad);
  w.boxes.from_line(where - 2, f, mad);
}

void step(World& w, fuzz::Input& in) {
  Connection& c = w.connections[in.below(2)];
  switch (in.below(13)) {
    case 0:
    case 1:
    case 2:
      if (in.below(8) == 7) c.lose(1);
      c.write(1 + in.below(8));
      break;
    case 3:
      c.read(Connection::kMtu * (1 + in.below(4)));
      break;
    case 4:
      c.resend();
      break;
    case 5:
      c.answers = in.below(4) != 0;
      c.refuses = in.below(8) == 7;
      break;
    case 6:
      w.boxes.cut = in.below(4) == 3;
      break;
    case 7:
      comes(w, in, some_frame(in), nullptr);
      break;
    case 8: {  // an attacker repeats what boxes said, sometimes altered
      const auto& said = w.boxes.said[in.below(2)];
      if (said.empty()) break;
      const ByHand::Seen s = said[said.size() - 1 - in.u8() % said.size()];
      wire::Mad mad = *s.mad;
      if (in.flag()) mad[in.u8()] ^= in.u8();
      comes(w, in, s.frame, &mad);
      break;
    }
    case 9: {
      if (w.bag.empty()) break;
      const ByHand::Seen s = w.bag[in.u8() % w.bag.size()];
      comes(w, in, s.frame, s.mad.has_value() ? &*s.mad : nullptr);
      break;
    }
    case 10: {
      const wire::Mad mad = some_greeting(in);
      Frame f = some_frame(in);
      f.header = wire::mad_packet({1});
      f.payload = wire::kMadBytes;
      comes(w, in, f, &mad);
      break;
    }
    case 12: {  // the line loses some, or an attacker repeats parity, sometimes altered, sometimes cut short
      const auto& seen = w.boxes.parity_seen[in.below(2)];
      if (in.flag() || seen.empty()) {
        w.lost = in.u16();
        break;
      }
      ByHand::Payload p = seen[seen.size() - 1 - in.u8() % seen.size()];
      for (std::uint32_t n = in.below(4); n > 0; --n) p[in.u8() % p.size()] ^= in.u8();
      if (in.below(4) == 3) p.resize(in.u8() % p.size());
      Frame f;
      f.header.opcode = kParityOpcode;
      f.payload = static_cast<std::uint32_t>(p.size());
      f.source = Connection::kA;
      f.destination = Connection::kB;
      w.boxes.parity_from_line(in.below(2), f, p);
      break;
    }
    default:
      w.boxes.run(microseconds(100) * in.u8());
      break;
  }
  for (std::uint32_t i = 0; i < 2; ++i)
    CHECK_OP(w.boxes.box(i).stored().n, <=, w.boxes.box(i).config().store.n);
  for (auto& s : w.boxes.parity_seen) {
    if (s.size() > 64) s.erase(s.begin(), s.end() - 64);
  }
  for (auto& s : w.boxes.said) {
    if (s.size() > 64) s.erase(s.begin(), s.end() - 64);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in({data, size});
  World w(in);
  for (int steps = 0; steps < 300 && !in.empty(); ++steps) step(w, in);
  // The endpoints fall silent, the line is whole.
  w.boxes.cut = false;
  w.lost = 0;
  w.boxes.heard = [](std::uint32_t, const ByHand::Seen&) {};
  w.boxes.run(seconds(4));
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK_OP(w.boxes.box(i).stored().n, ==, 0U);
    CHECK_OP(w.boxes.box(i).owned(), ==, 0U);
    CHECK_OP(w.boxes.box(i).loss_blocks_in_use(), ==, 0U);
  }
  CHECK_OP(w.boxes.bodies(), ==, 0U);
  return 0;
}
