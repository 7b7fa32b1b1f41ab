#include "tests/differential/calls.h"

namespace weft::differential {
namespace {

// Never a whole number of nanoseconds: two things that happen at one host at once have no order here.
Duration between(Prng& r, Duration low, Duration high) {
  const auto ns = r.between(static_cast<std::uint64_t>(low.ns()), static_cast<std::uint64_t>(high.ns()));
  return nanoseconds(static_cast<std::int64_t>(ns)) +
         picoseconds(static_cast<std::int64_t>(r.between(1, 998)));
}

std::uint32_t thousandths(Prng& r, std::uint64_t low, std::uint64_t high) {
  return static_cast<std::uint32_t>(r.between(low, high) * 1000);
}

impair::ImpairConfig draw_network(Prng& r, std::uint64_t most_loss, bool jitter) {
  impair::ImpairConfig n;
  if (r.below(3) != 0) n.loss = thousandths(r, 1, most_loss);
  if (r.below(3) == 0) n.duplicate = thousandths(r, 1, 150);
  if (r.below(3) == 0) {
    n.reorder = thousandths(r, 1, 150);
    n.reorder_by = between(r, microseconds(1), r.below(3) == 0 ? milliseconds(1) : microseconds(20));
  }
  if (r.below(4) == 0) n.corrupt = thousandths(r, 1, 50);
  // What took another way through the network takes another time, to the picosecond.
  if (jitter || n.duplicate != 0 || n.reorder != 0)
    n.jitter = between(r, nanoseconds(100), r.below(2) == 0 ? nanoseconds(200) : microseconds(3));
  return n;
}

// A set of modes as the engine offers them, and now and then another.
std::uint16_t draw_modes(Prng& r) {
  return static_cast<std::uint16_t>(r.below(4) != 0 ? wire::kAllModes : r.between(1, wire::kAllModes));
}

wire::Mode draw_mode(Prng& r, std::uint16_t modes) {
  for (;;) {
    const auto mode = static_cast<wire::Mode>(r.below(wire::kModeCount));
    if ((modes & wire::mode_bit(mode)) != 0) return mode;
  }
}

void draw_services(Prng& r, std::size_t h, CallsPlan& plan) {
  cm::CmConfig& c = plan.world.services->managers[h];
  c.max_connections = 16;
  c.max_listeners = 4;
  c.slot = static_cast<std::uint8_t>(r.below(2) * (h + 3));
  c.seed = r.next();
  c.ca_guid = r.next();
  c.packet_life = static_cast<std::uint8_t>(r.between(1, 5));
  c.ack_delay = static_cast<std::uint8_t>(r.below(6));
  c.response_timeout = static_cast<std::uint8_t>(r.between(1, 6));
  c.service_timeout = static_cast<std::uint8_t>(r.between(3, 10));
  c.max_retries = static_cast<std::uint8_t>(r.between(1, 8));
  c.patient_rnr_timer = 1;
  if (r.below(4) == 0) c.refuse_from = Time{} + between(r, microseconds(1), microseconds(300));
  if (r.below(2) == 0) c.reopening = between(r, microseconds(1), microseconds(300));
  cm::DiscoveryConfig& d = plan.world.services->discoveries[h];
  d.max_peers = 4;
  d.seed = r.next();
  d.slot = c.slot;
  d.instance = r.next();
  d.mtu = 4096;
  const auto first = between(r, microseconds(3), microseconds(50));
  d.tries = {first, first * 4, first * 16};
  d.silence = between(r, microseconds(50), milliseconds(20));
  std::uint16_t modes = draw_modes(r);
  wire::Mode preferred = draw_mode(r, modes);
  switch (plan.kinds[h]) {
    case Kind::kAuto:
      break;
    case Kind::kFixed:
      modes = wire::mode_bit(preferred);
      break;
    case Kind::kForeign:
      preferred = wire::Mode::kRoce;
      modes = wire::mode_bit(preferred);
      plan.world.services->foreign[h] = true;
      break;
  }
  plan.modes[h] = preferred;
  c.modes = d.modes = modes;
  c.preferred = d.preferred = preferred;
}

std::vector<std::uint8_t> draw_bytes(Prng& r, std::size_t most) {
  std::vector<std::uint8_t> bytes(r.below(most + 1));
  for (auto& b : bytes) b = static_cast<std::uint8_t>(r.next());
  return bytes;
}

Taking draw_taking(Prng& r) { return r.below(2) == 0 ? Taking::kAccepts : static_cast<Taking>(r.below(4)); }

std::uint32_t draw_mtu(Prng& r) { return 256U << r.below(5); }

Call draw_call(Prng& r) {
  Call c;
  c.after = between(r, nanoseconds(1), r.below(2) == 0 ? microseconds(5) : milliseconds(1));
  c.heard = r.below(8) != 0;
  c.request = draw_taking(r);
  c.response = draw_taking(r);
  c.late = between(r, microseconds(1), r.below(2) == 0 ? microseconds(300) : milliseconds(4));
  c.whole = r.below(2) == 0;
  for (std::size_t side = 0; side < 2; ++side) {
    c.messages[side] = draw_messages(r, 0, 12);
    c.leaves[side] = r.below(2) == 0;
    c.leaves_after[side] = r.below(3) == 0 ? r.below(c.messages[side].size() + 1) : c.messages[side].size();
    c.said[side] = draw_bytes(r, side == 0 ? cm::kConnectPrivate : cm::kRejectPrivate);
  }
  c.terms.mtu = draw_mtu(r);
  c.terms.responder_resources = static_cast<std::uint8_t>(r.between(1, 4));
  c.terms.initiator_depth = static_cast<std::uint8_t>(r.between(1, 4));
  c.terms.retry_count = static_cast<std::uint8_t>(r.below(8));
  c.terms.rnr_retry = static_cast<std::uint8_t>(r.below(8));
  if (r.below(3) == 0) c.terms.ack_timeout = static_cast<std::uint8_t>(r.between(2, 10));
  c.terms.tos = static_cast<std::uint8_t>(r.below(64) << 2U);
  c.terms.flow_control = r.below(2) == 0;
  c.answer.responder_resources = static_cast<std::uint8_t>(r.between(1, 4));
  c.answer.initiator_depth = static_cast<std::uint8_t>(r.between(1, 4));
  c.answer.rnr_retry = static_cast<std::uint8_t>(r.below(8));
  c.answer.flow_control = r.below(2) == 0;
  return c;
}

}  // namespace

CallsPlan make_calls(std::uint64_t seed) {
  CallsPlan p;
  Prng r = Prng(seed).fork(77);
  // Devices as those of the plans without calls, with room for more queue pairs.
  p.world = make_plan(seed, wire::Mode::kIrn).world;
  for (DeviceConfig& d : p.world.devices) {
    d.max_qp = 16;
    d.qpn_bits = 5;
  }
  p.world.networks = {draw_network(r, 60, false), draw_network(r, r.below(3) == 0 ? 600 : 150, true)};
  p.world.services.emplace();
  for (std::size_t h = 0; h < 2; ++h) {
    p.kinds[h] = r.below(2) == 0 ? Kind::kAuto : static_cast<Kind>(r.below(3));
    draw_services(r, h, p);
  }
  if (r.below(3) != 0) {
    for (std::size_t h = 0; h < 2; ++h) {
      p.calls[h].resize(h == 0 ? r.between(1, 3) : r.below(3));
      for (Call& c : p.calls[h]) c = draw_call(r);
      if (r.below(6) == 0) p.closes[h] = Time{} + between(r, microseconds(1), milliseconds(2));
    }
  }
  if (p.calls[0].empty() || r.below(3) == 0) {
    Time at{};
    p.rounds.resize(r.between(1, 3));
    for (Round& round : p.rounds) {
      round.at = at;
      for (auto& messages : round.messages) messages = draw_messages(r, 1, 12);
      round.mtu = draw_mtu(r);
      for (WirePsn& psn : round.psn) psn = {static_cast<std::uint32_t>(r.next()) & kPsnMask};
      round.timeout = static_cast<std::uint8_t>(r.between(4, 10));
      at = at + between(r, microseconds(200), milliseconds(30));
    }
  }
  return p;
}

CallsPlan make_slow_calls(std::uint64_t seed) {
  CallsPlan p = make_calls(seed);
  Prng r = Prng(seed).fork(78);
  p.world.end = Time{} + seconds(100);
  for (DeviceConfig& d : p.world.devices) d.seed = r.next();  // of its services, too
  // The services are patient: only a network that loses nearly all makes a peer unreachable.
  if (r.below(8) == 0) p.world.networks[1].loss = thousandths(r, 800, 1000);
  for (auto& calls : p.calls) {
    for (Call& c : calls) {
      c.after = c.after * 500;
      c.late = c.late * 1000;
      c.terms.ack_timeout = static_cast<std::uint8_t>(r.between(6, 12));
    }
  }
  for (Time& t : p.closes) t = t == kNever ? t : Time{} + (t - Time{}) * 1000;
  for (Round& round : p.rounds) round.at = Time{} + (round.at - Time{}) * 20;
  return p;
}

}  // namespace weft::differential
