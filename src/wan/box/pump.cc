#include "wan/box/pump.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/wire/ip.h"
#include "wan/box/trains.h"
#include "wan/logic/parity.h"
#include "wan/logic/store.h"

namespace weft::wan {
namespace {

constexpr std::size_t kMostAtOnce = 256;  // that leave before the ports are looked at again
constexpr std::uint32_t kLongestRoce = kHeadersBytes + 64 + kMostPayload + 4;
// Ethernet's own: preamble, gap, FCS.
constexpr std::uint32_t kAroundFrame = 24;
// Sleeping is not exact: so much of the line's time may be made up for.
constexpr Duration kCatchUp = microseconds(500);
constexpr Duration kMostDebt = milliseconds(10);  // of passing frames, to be paid by the boxes' own
constexpr std::uint64_t kMostFrames = 1U << 24U;

std::uint32_t widest(const Port& near, const Port& far) {
  return std::max(near.facts().mtu, far.facts().mtu);
}

BoxConfig with_frames(BoxConfig c, const Port& near, const Port& far) {
  const std::uint32_t slot = Pump::slot_bytes(widest(near, far), c.parity);
  c.covered = std::min(c.covered, LineParity::covered(far.facts().mtu));
  c.frames = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(c.store.n / slot, 4, kMostFrames));
  return c;
}

// In the store, in both queues of passing frames, DREQs that wait, what one turn takes and gives; and frames
// of the line that parity may need.
std::uint32_t slots_of(const BoxConfig& c) {
  const std::uint64_t queues = std::uint64_t{std::bit_ceil(c.queue)} * 2 + c.halves;
  constexpr std::uint32_t kOfParity = Restoring::kRecent + Restoring::kGroups * ParityTerms::kMostRepair;
  return static_cast<std::uint32_t>(c.frames + queues + kMostAtOnce * 4 + (c.parity.there() ? kOfParity : 0));
}

}  // namespace

std::uint32_t Pump::slot_bytes(std::uint32_t mtu, ParityTerms parity) {
  const std::uint32_t longest = kLongestRoce + (parity.there() ? LineParity::kLongerBy : 0);
  return (std::min(static_cast<std::uint32_t>(mtu + kEthernetBytes), longest) + 63U) & ~63U;
}

Pump::Pump(const PumpConfig& config, Port& near, Port& far)
    : box_(with_frames(config.box, near, far)),
      ports_{&near, &far},
      bodies_(slots_of(box_.config()), slot_bytes(widest(near, far), config.box.parity)),
      parity_(config.box.parity, bodies_.slot_bytes()),
      outboxes_{std::make_unique<Outbox>(), std::make_unique<Outbox>()},
      rate_(config.rate) {}

void Pump::pay(Time now, std::uint32_t bytes) {
  if (rate_.bps == 0) return;
  line_free_ = std::max(line_free_, now - kCatchUp).after(rate_.time_for(Bytes{bytes + kAroundFrame}));
  // What passes is never held back. A site that floods may slow the boxes' own frames down, but not for
  // longer than this: what is owed must go on.
  line_free_ = std::min(line_free_, now.after(kMostDebt));
}

void Pump::flush(Side to) {
  Outbox& o = outbox(to);
  if (o.size != 0) port(to).send({o.frames.data(), o.size});
  for (std::size_t i = 0; i < o.over_count; ++i) bodies_.give_back(o.over[i]);
  o.size = o.over_count = 0;
}

void Pump::put(Side to, const TxFrame& f) {
  Outbox& o = outbox(to);
  o.frames[o.size++] = f;
  if (o.size == o.frames.size()) flush(to);
}

void Pump::pass(Time now, Side to, const RxFrame& f) {
  if (to == Side::kLine) pay(now, f.bytes);
  put(to, {f.data, f.bytes, f.offload});
}

// The frame lies in `body`; false: it is not the box's, and the body is back.
bool Pump::feed(Time now, Side from, BodyId body) {
  const std::span<const std::uint8_t> bytes(bodies_.at(body), bodies_.length(body));
  Frame f;
  std::span<const std::uint8_t> mad;
  Stranger reason{};
  if (!understand(bytes, f, mad, reason)) {
    ++strangers_[static_cast<std::size_t>(reason)];
    return false;
  }
  senders_.saw(f.source, f.destination, bytes.data(), source_port(bytes));
  f.body = body;
  box_.on_frame(now, from, f, mad);
  return true;
}

void Pump::take_train(Time now, Side from, const RxFrame& train) {
  ++trains_;
  const std::uint32_t n = frames_of(train);
  for (std::uint32_t i = 0; i < n; ++i) {
    const BodyId body = bodies_.take();
    if (body == kNoBody) {
      no_slot_ += n - i;
      return;
    }
    bodies_.length(body) = cut_frame(train, i, bodies_.at(body));
    if (feed(now, from, body)) continue;
    const Side to = other(from);
    if (to == Side::kLine) pay(now, bodies_.length(body));
    Outbox& o = outbox(to);
    o.over[o.over_count++] = body;
    put(to, {bodies_.at(body), bodies_.length(body), {}});
  }
}

void Pump::take_frame(Time now, Side from, const RxFrame& f) {
  const std::span<const std::uint8_t> bytes(f.data, f.bytes);
  if (f.offload.is_train() || f.bytes > bodies_.slot_bytes() || !is_rocev2(bytes)) {
    Frame ignored;
    std::span<const std::uint8_t> mad;
    Stranger reason = Stranger::other;
    // A frame that would be understood and is too long for RoCEv2 is none.
    if (!f.offload.is_train() && understand(bytes, ignored, mad, reason)) reason = Stranger::malformed;
    ++strangers_[static_cast<std::size_t>(reason)];
    return pass(now, other(from), f);
  }
  const BodyId body = bodies_.take();
  if (body == kNoBody) {
    ++no_slot_;
    return;
  }
  std::memcpy(bodies_.at(body), f.data, f.bytes);
  bodies_.length(body) = f.bytes;
  if ((f.offload.flags & Offload::kNeedsChecksum) != 0) clear_udp_checksum(bodies_.at(body));
  if (feed(now, from, body)) return;
  bodies_.give_back(body);
  pass(now, other(from), f);
}

bool Pump::take(Time now, Side from) {
  const std::span<const RxFrame> frames = port(from).receive();
  for (const RxFrame& f : frames) {
    // Cutting understands RoCEv2 only; any other train passes as one, and is cut further on.
    const bool ours = can_be_cut(f) && is_rocev2({f.data, f.bytes}) && longest_of(f) <= bodies_.slot_bytes();
    ours ? take_train(now, from, f) : take_frame(now, from, f);
  }
  if (from == Side::kLine) parity_.restore(now, box_, bodies_, senders_);
  flush(other(from));
  port(from).done();
  return !frames.empty();
}

bool Pump::give(Time now, Side to) {
  Outbox& o = outbox(to);
  const bool paced = to == Side::kLine && rate_.bps != 0;
  std::size_t n = 0;
  if (paced) line_waits_ = false;
  for (Out out; n < kMostAtOnce; ++n) {
    if (paced && line_free_ > now) {
      line_waits_ = true;
      break;
    }
    if (!box_.poll(now, to, out)) break;
    TxFrame f;
    const BodyId body = out.frame.body;
    if (body != kNoBody) {
      f = {bodies_.at(body), bodies_.length(body), {}};
      if (out.last) o.over[o.over_count++] = body;
      if (out.member != Out::kNoMember) parity_.cover(out.member, bodies_.at(body));
    } else {
      EthernetHeader ethernet;
      std::uint16_t from_port = 0;
      const bool known = wire::is_v4_mapped(out.frame.source) && wire::is_v4_mapped(out.frame.destination) &&
                         senders_.header(out.frame.source, out.frame.destination, ethernet, from_port);
      if (!known) {
        ++no_header_;
        continue;
      }
      const std::span<const std::uint8_t> payload =
          out.mad != nullptr ? std::span<const std::uint8_t>(*out.mad) : std::span<const std::uint8_t>();
      if (!out.parity.empty()) {
        const BodyId slot = bodies_.take();
        if (slot == kNoBody) {
          ++no_slot_;
          continue;
        }
        const std::span<std::uint8_t> bytes(bodies_.at(slot), bodies_.slot_bytes());
        f = {bytes.data(), parity_.write(out, ethernet, from_port, bytes), {}};
        o.over[o.over_count++] = slot;
      } else {
        auto& written = o.written[o.size];
        f = {written.data(),
             static_cast<std::uint32_t>(write_frame(out.frame, payload, ethernet, from_port, written)),
             {}};
      }
    }
    if (paced) pay(now, f.bytes);
    put(to, f);
  }
  flush(to);
  return n != 0;
}

bool Pump::turn(Time now) {
  bool moved = take(now, Side::kSite);
  moved = take(now, Side::kLine) || moved;
  if (box_.next_deadline() <= now) box_.on_timer(now);
  moved = give(now, Side::kSite) || moved;
  moved = give(now, Side::kLine) || moved;
  for (BodyId body; box_.poll_released(body);) bodies_.give_back(body);
  return moved;
}

Time Pump::next_due(Time) const {
  return line_waits_ ? std::min(line_free_, box_.next_deadline()) : box_.next_deadline();
}

}  // namespace weft::wan
