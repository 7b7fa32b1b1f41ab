#include "pair/line.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "pair/datagram.h"
#include "wan/logic/parity_frame.h"

namespace weft::pair {
namespace {

constexpr int kMostAtOnce = 100'000;

// What parity codes of a frame: addresses, type of service and length, and the packet with its ICRC.
constexpr std::size_t kAround = 35;
constexpr std::uint32_t kLongestBlock = 4096 + 256;

void block_of(const Passage& p, std::vector<std::uint8_t>& block) {
  const std::vector<std::uint8_t> packet = to_datagram(p.source, p.destination, p.header, p.payload);
  block.assign(kAround, 0);
  std::copy(p.source.bytes.begin(), p.source.bytes.end(), block.begin());
  std::copy(p.destination.bytes.begin(), p.destination.bytes.end(), block.begin() + 16);
  block[32] = p.tos;
  wire::store_be16(block.data() + 33, static_cast<std::uint16_t>(packet.size()));
  block.insert(block.end(), packet.begin(), packet.end());
}

// False: its ICRC is wrong, or it is no packet.
bool passage_of(std::span<const std::uint8_t> block, Passage& p) {
  if (block.size() < kAround) return false;
  const std::size_t bytes = wire::load_be16(block.data() + 33);
  if (bytes > block.size() - kAround) return false;
  const auto packet = block.subspan(kAround, bytes);
  std::copy_n(block.begin(), 16, p.source.bytes.begin());
  std::copy_n(block.begin() + 16, 16, p.destination.bytes.begin());
  p.tos = block[32];
  wire::Decoded d;
  wire::DecodeError error{};
  if (!icrc_right(p.source, p.destination, packet) || !wire::decode(packet, d, error)) return false;
  p.header = d.header;
  p.payload.assign(packet.begin() + d.payload_offset, packet.begin() + d.payload_offset + d.payload);
  return true;
}

bool later(const auto& a, const auto& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

}  // namespace

Line::Line(const LineConfig& config, std::uint64_t seed)
    : config_(config),
      network_(config.network, Prng(seed).fork(7), {}),
      encoders_{{wan::kMostRows, kLongestBlock}, {wan::kMostRows, kLongestBlock}},
      decoder_(kLongestBlock) {
  for (std::uint32_t i = 0; i < 2; ++i) {
    boxes_[i] = std::make_unique<wan::Box>(config.boxes[i]);
    rate_[i] = impair::RateLimit(config.rate, kForever);
  }
}

std::uint32_t Line::store(std::uint32_t which, Passage frame) {
  std::uint32_t body = 0;
  if (free_bodies_[which].empty()) {
    body = static_cast<std::uint32_t>(bodies_[which].size());
    bodies_[which].emplace_back();
  } else {
    body = free_bodies_[which].back();
    free_bodies_[which].pop_back();
  }
  ++bodies_in_use_;
  bodies_[which][body] = std::move(frame);
  return body;
}

namespace {
wan::Frame frame_of(const Passage& p, std::uint32_t body) {
  wan::Frame f;
  f.header = p.header;
  f.source = p.source;
  f.destination = p.destination;
  f.payload = static_cast<std::uint32_t>(p.payload.size());
  f.tos = p.tos;
  f.body = {body};
  return f;
}
}  // namespace

void Line::feed(Time now, std::uint32_t which, wan::Side from, Passage frame) {
  const std::uint32_t body = store(which, std::move(frame));
  const std::vector<std::uint8_t>& bytes = bodies_[which][body].payload;
  const wan::Frame f = frame_of(bodies_[which][body], body);
  const bool reads = wire::carries_mad(f.header, f.payload) || wan::is_parity(f.header);
  boxes_[which]->on_frame(now, from, f,
                          reads ? std::span<const std::uint8_t>(bytes) : std::span<const std::uint8_t>());
  restore(now, which);
}

void Line::restore(Time now, std::uint32_t which) {
  for (wan::Restore r; boxes_[which]->poll_restore(r);) {
    std::vector<Passage> found;
    (void)wan::compute(
        r, decoder_,
        [&](wan::BodyId b) {
          block_of(bodies_[which][b.v], block_);
          return std::span<const std::uint8_t>(block_);
        },
        [&](const wan::Restore::Row& row) {
          return std::span<const std::uint8_t>(bodies_[which][row.body.v].payload).subspan(r.header_bytes);
        },
        [&](std::span<const std::uint8_t> block) {
          if (Passage p; passage_of(block, p)) found.push_back(std::move(p));
        });
    for (Passage& p : found) {
      const std::uint32_t body = store(which, std::move(p));
      boxes_[which]->on_restored(now, frame_of(bodies_[which][body], body));
    }
  }
}

void Line::drain_bodies(std::uint32_t which) {
  for (wan::BodyId body; boxes_[which]->poll_released(body);) {
    free_bodies_[which].push_back(body.v);
    --bodies_in_use_;
  }
}

Passage Line::passage(std::uint32_t which, const wan::Out& out) {
  Passage p{out.frame.header, out.frame.source, out.frame.destination, {}, out.frame.tos};
  if (out.mad != nullptr) p.payload.assign(out.mad->begin(), out.mad->end());
  if (!out.parity.empty()) {
    const auto coded = encoders_[which].row(out.row);
    p.payload.assign(out.parity.begin(), out.parity.end());
    p.payload.insert(p.payload.end(), coded.begin(), coded.end());
  }
  if (out.frame.body == wan::kNoBody) return p;
  p.payload = bodies_[which][out.frame.body.v].payload;
  if (out.member == 0) encoders_[which].begin();
  if (out.member != wan::Out::kNoMember) {
    block_of(p, block_);
    encoders_[which].add(out.member, block_);
  }
  if (out.last) {
    free_bodies_[which].push_back(out.frame.body.v);
    --bodies_in_use_;
  }
  return p;
}

void Line::arrive(Time now, std::uint32_t which, Passage frame) {
  feed(now, which, wan::Side::kSite, std::move(frame));
}

void Line::restart(Time now, std::uint32_t which) {
  config_.restart_at[which] = kNever;
  wan::BoxConfig c = config_.boxes[which];
  c.instance += 1'000'000 + static_cast<std::uint64_t>(now.ps);
  boxes_[which] = std::make_unique<wan::Box>(c);
  bodies_in_use_ -= bodies_[which].size() - free_bodies_[which].size();
  bodies_[which].clear();
  free_bodies_[which].clear();
}

void Line::run(Time now, const std::function<void(std::uint32_t, Passage)>& deliver) {
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (config_.restart_at[i] <= now) restart(now, i);
  }
  for (int i = 0; !flights_.empty() && flights_.front().at <= now; ++i) {
    CHECK_OP(i, <, kMostAtOnce);
    std::pop_heap(flights_.begin(), flights_.end(), later<Flight, Flight>);
    Flight f = std::move(flights_.back());
    flights_.pop_back();
    feed(now, f.to, wan::Side::kLine, std::move(f.frame));
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (boxes_[i]->next_deadline() <= now) boxes_[i]->on_timer(now);
    CHECK(boxes_[i]->next_deadline() > now);
    int sent = 0;
    for (wan::Out out; boxes_[i]->poll(now, wan::Side::kSite, out);) {
      CHECK_OP(++sent, <, kMostAtOnce);
      Passage p = passage(i, out);
      if (!wan::is_parity(p.header)) deliver(i, std::move(p));  // no endpoint knows that opcode
    }
    for (wan::Out out; free_at_[i] <= now && boxes_[i]->poll(now, wan::Side::kLine, out);) {
      CHECK_OP(++sent, <, kMostAtOnce);
      Passage p = passage(i, out);
      const Time depart = rate_[i].depart(now, Bytes{frame_bytes(p.header, p.payload.size())});
      free_at_[i] = depart;
      const impair::Fate fate = network_.decide();
      const bool cut = config_.cut_at <= now && now < config_.cut_at.after(config_.cut_for);
      for (std::uint8_t copy = 0; copy < fate.copies && !cut; ++copy) {
        if (fate.corrupt && copy == 0) continue;
        const Duration delay = copy == 0 ? fate.delay : fate.duplicate_delay;
        flights_.push_back({depart.after(delay), order_++, 1 - i, p});
        std::push_heap(flights_.begin(), flights_.end(), later<Flight, Flight>);
      }
    }
    drain_bodies(i);
    boxes_[i]->check_invariants();
  }
}

Time Line::next_wake(Time now) const {
  Time at = std::min(config_.restart_at[0], config_.restart_at[1]);
  if (!flights_.empty()) at = std::min(at, flights_.front().at);
  for (std::uint32_t i = 0; i < 2; ++i) {
    at = std::min(at, boxes_[i]->next_deadline());
    if (free_at_[i] > now) at = std::min(at, free_at_[i]);
  }
  return at;
}

bool Line::idle() const {
  return bodies_in_use_ == 0 && boxes_[0]->owned() == 0 && boxes_[1]->owned() == 0 &&
         boxes_[0]->stored().n == 0 && boxes_[1]->stored().n == 0 && boxes_[0]->loss_blocks_in_use() == 0 &&
         boxes_[1]->loss_blocks_in_use() == 0;
}

}  // namespace weft::pair
