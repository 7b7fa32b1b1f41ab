#include "pair/world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/check.h"
#include "core/wire/codec.h"
#include "pair/datagram.h"

namespace weft::pair {
namespace {

constexpr int kTurnsPerInstant = 100'000;  // more turns at one instant mean that a transmitter never stops

Duration transit(const WorldConfig& c) {
  Rate slowest = c.rate;
  if (c.drain.bps != 0 && (slowest.bps == 0 || c.drain < slowest)) slowest = c.drain;
  const impair::ImpairConfig& n = c.network;
  const Duration site =
      (n.delay + n.jitter + n.reorder_by + c.fetch) * 2 + slowest.time_for(c.most_under_way) * 2;
  if (!c.line.there) return site;
  // Both sites, the line, and so long as the boxes may wait for each other.
  const impair::ImpairConfig& l = c.line.network;
  return site * 2 + (l.delay + l.jitter + l.reorder_by) * 2 + c.line.rate.time_for(c.most_under_way) * 2 +
         c.line.boxes[0].give_up;
}

}  // namespace

World::World(const WorldConfig& config, Recorder* recorder)
    : config_(config),
      recorder_(recorder),
      referee_(transit(config)),
      network_(config.network, Prng(config.seed).fork(1), config.script),
      transmitters_(config.hosts.size()),
      doors_(config.hosts.size()),
      heard_(config.hosts.size()) {
  for (std::uint32_t i = 0; i < config.hosts.size(); ++i) {
    CHECK(config.hosts[i].validate().has_value());
    hosts_.push_back(std::make_unique<Host>(HostId{i}, config.hosts[i], referee_));
    transmitters_[i].line = impair::RateLimit(config.rate, kForever);
    doors_[i].line = impair::RateLimit(config.drain, kForever);
  }
  if (config.line.there) line_ = std::make_unique<Line>(config.line, config.seed);
}

// --- users ---

Outcome<void> World::post_send(std::uint32_t h, Qpn qpn, const SendWr& wr,
                               std::span<const std::uint8_t> inline_bytes) {
  Host& from = host(h);
  const auto slot = from.device.post_send(qpn, wr);
  if (!slot) return fail(slot.error());
  if ((wr.flags & kSendInline) != 0) {
    from.keep_inline(qpn, *slot, from.device.query_qp_init(qpn)->caps.max_inline, inline_bytes);
  }
  referee_.posted_send({from.id(), qpn}, wr, inline_bytes, now_);
  return {};
}

Outcome<void> World::post_recv(std::uint32_t h, Qpn qpn, const RecvWr& wr) {
  const auto done = host(h).device.post_recv(qpn, wr);
  if (done) referee_.posted_recv({host(h).id(), qpn}, wr, now_);
  return done;
}

SrqId World::create_srq(std::uint32_t h, PdId pd, const SrqCaps& caps) {
  const auto made = host(h).device.create_srq(pd, caps);
  CHECK(made.has_value());
  referee_.shared_receives(host(h).id(), *made, pd);
  referee_.limit_armed(host(h).id(), *made, caps.limit);
  return *made;
}

Outcome<void> World::post_shared(std::uint32_t h, SrqId srq, const RecvWr& wr) {
  const auto done = host(h).device.post_srq_recv(srq, wr);
  if (done) referee_.posted_shared(host(h).id(), srq, wr, now_);
  return done;
}

void World::arm_limit(std::uint32_t h, SrqId srq, std::uint32_t limit) {
  CHECK(host(h).device.set_srq_limit(srq, limit).has_value());
  referee_.limit_armed(host(h).id(), srq, limit);
}

bool World::limit_reached(std::uint32_t h, SrqId srq) {
  poll_events(h);
  return limits_reached_.erase({h, srq}) != 0;
}

std::uint32_t World::poll(std::uint32_t h, CqId cq, std::span<Completion> out) {
  if (!shares_.empty()) poll_events(h);  // before polling, because an event may be the cause of a completion
  const std::uint32_t n = host(h).device.poll_cq(cq, out);
  for (const Completion& c : out.first(n)) {
    if (recorder_ != nullptr && recorder_->wants_text()) {
      char text[120];
      std::snprintf(text, sizeof text, "host %u qp=0x%x: completion of %llx, status %u, %u bytes", h, c.qpn.v,
                    static_cast<unsigned long long>(c.wr_id), static_cast<unsigned>(c.status), c.byte_len);
      recorder_->note(now_, text);
    }
    referee_.completed(host(h).id(), c, now_);
  }
  return n;
}

void World::destroy(std::uint32_t h, Qpn qpn) {
  if (recorder_ != nullptr) recorder_->note(now_, "host " + std::to_string(h) + " destroys a queue pair");
  CHECK(host(h).device.destroy_qp(qpn).has_value());
  host(h).forget_inline(qpn);
  referee_.destroyed({host(h).id(), qpn}, now_);
}

void World::force_error(std::uint32_t h, Qpn qpn) {
  if (recorder_ != nullptr) recorder_->note(now_, "host " + std::to_string(h) + " moves a queue pair to ERR");
  QpAttr attr;
  attr.state = QpState::kErr;
  referee_.forced_error({host(h).id(), qpn}, now_);
  CHECK(host(h).device.modify_qp(qpn, attr, kAttrState, now_).has_value());
}

bool World::drain(std::uint32_t h, Qpn qpn) {
  QpAttr attr;
  attr.state = QpState::kSqd;
  attr.sqd_notify = true;
  referee_.draining({host(h).id(), qpn}, true);
  if (recorder_ != nullptr) recorder_->note(now_, "host " + std::to_string(h) + " drains a queue pair");
  if (host(h).device.modify_qp(qpn, attr, kAttrState | kAttrSqdNotify, now_)) return true;
  referee_.draining({host(h).id(), qpn}, false);
  return false;
}

bool World::drained(std::uint32_t h, Qpn qpn) {
  poll_events(h);
  return drained_.contains({h, qpn});
}

void World::poll_events(std::uint32_t h) {
  const auto kept = kept_events_.find(h);
  for (DeviceEvent event; host(h).device.poll_event(event);) {
    if (kept != kept_events_.end()) kept->second.push_back(event);
    switch (event.kind) {
      case DeviceEventKind::kSqDrained:
        drained_.emplace(h, event.qpn);
        referee_.drained({host(h).id(), event.qpn}, now_);
        break;
      case DeviceEventKind::kSrqLimit:
        host(h).coverage.hit(Covered::shared_limits);
        limits_reached_.emplace(h, event.srq);
        referee_.limit_reached(host(h).id(), event.srq, now_);
        break;
      case DeviceEventKind::kLastWqeReached:
        host(h).coverage.hit(Covered::shared_last);
        break;
      default:
        break;
    }
  }
}

void World::resume(std::uint32_t h, Qpn qpn) {
  QpAttr attr;
  attr.state = QpState::kRts;
  referee_.draining({host(h).id(), qpn}, false);
  (void)host(h).device.modify_qp(qpn, attr, kAttrState, now_);  // fails if the queue pair is in error already
}

void World::forge(std::uint32_t to, const wire::Address& source, const wire::Header& h,
                  std::vector<std::uint8_t> payload) {
  if (recorder_ != nullptr) recorder_->packet(now_, source, host(to).address(), h, payload, "forged");
  auto f = std::make_unique<Flight>();
  f->at = now_;
  f->order = order_++;
  f->to = to;
  f->forged = true;
  f->corrupt = false;
  f->source = source;
  f->header = h;
  f->payload = std::move(payload);
  flights_.push(std::move(f));
}

// --- the network ---

void World::launch(std::uint32_t to, Passage frame, Time depart) {
  const impair::Fate v = network_.decide();
  if (recorder_ != nullptr) {
    char fate[80] = "";
    if (v.copies == 0) {
      std::snprintf(fate, sizeof fate, "packet %llu: lost",
                    static_cast<unsigned long long>(network_.packets() - 1));
    } else {
      std::snprintf(fate, sizeof fate, "packet %llu: %s%sarrives %lld.%03lldus",
                    static_cast<unsigned long long>(network_.packets() - 1), v.corrupt ? "spoilt, " : "",
                    v.copies == 2 ? "twice, " : "", static_cast<long long>((depart + v.delay).ps / 1'000'000),
                    static_cast<long long>((depart + v.delay).ps / 1'000 % 1'000));
    }
    recorder_->packet(now_, frame.source, frame.destination, frame.header, frame.payload, fate);
  }
  for (std::uint8_t copy = 0; copy < v.copies; ++copy) {
    auto f = std::make_unique<Flight>();
    f->at = depart.after(copy == 0 ? v.delay : v.duplicate_delay);
    f->order = order_++;
    f->to = to;
    f->forged = false;
    f->corrupt = v.corrupt && copy == 0;
    f->marked = v.mark || frame.tos == wire::kEcnCe;
    f->source = frame.source;
    f->destination = frame.destination;
    if (config_.serialise) {
      f->datagram = to_datagram(frame.source, frame.destination, frame.header, frame.payload);
      if (f->corrupt) {
        const std::size_t bit = v.corrupt_draw % (f->datagram.size() * 8);
        f->datagram[bit / 8] = static_cast<std::uint8_t>(f->datagram[bit / 8] ^ (1U << (bit % 8)));
      }
    } else {
      f->header = frame.header;
      f->payload = frame.payload;
    }
    flights_.push(std::move(f));
  }
}

std::uint32_t World::host_at(const wire::Address& address) const {
  std::uint32_t at = 0;
  while (at < host_count() && hosts_[at]->address() != address) ++at;
  CHECK_OP(at, <, host_count());
  return at;
}

void World::emit(std::uint32_t from, const wire::Burst& burst) {
  Host& source = host(from);
  const wire::Address peer = source.device.path(burst.path).peer;
  const std::uint32_t to = host_at(peer);
  const std::uint32_t next = crosses_line(from, to) ? host_count() + Line::site(from) : to;
  std::vector<std::uint8_t> payload;
  std::size_t gone = burst.packets.size();
  for (std::size_t i = 0; i < burst.packets.size(); ++i) {
    const wire::TxPacket& p = burst.packets[i];
    if (!source.gather(burst, p, payload)) {
      gone = i;
      break;
    }
    referee_.sent(source.id(), host(to).id(), p.header, p.payload, now_);
    const bool not_ready =
        p.header.opcode == wire::kAcknowledge && (p.header.syndrome & 0xE0U) == wire::kSyndromeRnr;
    if (not_ready && shares_.contains({from, burst.qpn})) source.coverage.hit(Covered::shared_dry);
    const Time depart = transmitters_[from].line.depart(now_, Bytes{frame_bytes(p.header, payload.size())});
    transmitters_[from].free_at = depart;
    launch(next, {p.header, source.address(), peer, payload}, depart);
  }
  if (gone < burst.packets.size()) source.device.gather_failed(burst, gone, now_);
}

void World::pump(std::uint32_t from) {
  Transmitter& t = transmitters_[from];
  Device& device = host(from).device;
  for (int turn = 0; t.free_at <= now_; ++turn) {
    if (turn == kTurnsPerInstant) {
      referee_.report().add(now_, "progress", "host %u never stops transmitting", from);
      t.free_at = now_ + microseconds(1);
      return;
    }
    wire::Burst burst = device.poll_control(now_);
    if (burst.empty() && config_.fetch.ps == 0) burst = device.poll_transmit(now_, config_.budget);
    if (burst.empty() && config_.fetch.ps != 0) {
      if (t.fetching == kNoQpn) {
        t.fetching = device.pick(now_);
        if (t.fetching == kNoQpn) return;
        t.fetched_at = now_ + config_.fetch;
        return;
      }
      if (t.fetched_at > now_) return;
      burst = device.transmit(std::exchange(t.fetching, kNoQpn), now_, config_.budget);
      t.fetched_at = kNever;
      if (burst.empty()) continue;
    }
    if (burst.empty()) return;
    emit(from, burst);
  }
}

// Undoes the serialisation; false when the packet arrived spoilt.
bool World::sound(Flight& f) {
  if (f.forged) return true;
  if (!config_.serialise) {
    corrupt_dropped_ += f.corrupt ? 1 : 0;
    return !f.corrupt;
  }
  const bool right = icrc_right(f.source, f.destination, f.datagram);
  if (f.corrupt) {
    ++corrupt_dropped_;
    // A flipped bit of BTH's masked byte is not covered, and harmless: decoding ignores it.
    if (!right) return false;
  } else if (!right) {
    referee_.report().add(now_, "ICRC", "a sound packet does not pass");
    return false;
  }
  wire::Decoded d;
  wire::DecodeError error{};
  if (!wire::decode(f.datagram, d, error)) {
    referee_.report().add(now_, "codec", "what was encoded does not decode, error %u",
                          static_cast<unsigned>(error));
    return false;
  }
  if (f.corrupt) return false;
  f.header = d.header;
  const auto begin = f.datagram.begin() + d.payload_offset;
  f.payload.assign(begin, begin + d.payload);
  return true;
}

void World::deliver(std::uint32_t to, std::vector<std::unique_ptr<Flight>>& batch) {
  std::vector<wire::RxPacket> packets;
  std::vector<std::vector<std::uint8_t>> payloads;
  for (auto& f : batch) {
    wire::RxPacket p;
    p.header = f->header;
    p.source = f->source;
    p.payload = static_cast<std::uint32_t>(f->payload.size());
    p.tos = f->marked ? wire::kEcnCe : std::uint8_t{0};
    packets.push_back(p);
    payloads.push_back(std::move(f->payload));
    if (!f->forged) referee_.arrived(host(to).id(), f->header, now_, f->marked);
  }
  batch.clear();
  if (packets.empty()) return;
  host(to).deliver(now_, packets, payloads);
  look_for_failures(to);
}

void World::look_for_failures(std::uint32_t h) {
  for (const auto& [at, qpn] : ends_) {
    if (at != h) continue;
    const auto attr = host(h).device.query_qp(qpn);
    if (attr && attr->state == QpState::kErr) referee_.failed({host(h).id(), qpn}, now_);
  }
}

void World::arrivals() {
  std::vector<std::unique_ptr<Flight>> batch;
  std::uint32_t to = 0;
  while (!flights_.empty() && flights_.top()->at <= now_) {
    // top() is const to protect the order of the queue; moving the element out right before pop() is safe.
    std::unique_ptr<Flight> f = std::move(const_cast<std::unique_ptr<Flight>&>(flights_.top()));
    flights_.pop();
    if (!f->at_door && !sound(*f)) continue;
    if (f->to >= host_count()) {
      const std::uint8_t tos = f->marked ? wire::kEcnCe : std::uint8_t{0};
      line_->arrive(now_, f->to - host_count(),
                    {f->header, f->source, f->destination, std::move(f->payload), tos});
      continue;
    }
    if (wire::carries_mad(f->header, static_cast<std::uint32_t>(f->payload.size()))) {
      std::copy(f->payload.begin(), f->payload.end(), heard_[f->to].emplace_back().begin());
      continue;
    }
    Door& door = doors_[f->to];
    if (config_.drain.bps != 0) {
      const Bytes size{f->payload.size()};
      if (!f->at_door) {
        f->at = door.line.depart(now_, Bytes{frame_bytes(f->header, f->payload.size())});
        f->order = order_++;
        f->at_door = true;
        door.waiting += size;
        door.deepest = std::max(door.deepest, door.waiting);
        flights_.push(std::move(f));
        continue;
      }
      door.waiting -= size;
    }
    if (!batch.empty() && (f->to != to || batch.size() == config_.batch)) deliver(to, batch);
    to = f->to;
    batch.push_back(std::move(f));
  }
  if (!batch.empty()) deliver(to, batch);
}

// --- time ---

Time World::next_wake(const Programs& programs) const {
  Time at = programs.next_wake();
  if (!flights_.empty()) at = std::min(at, flights_.top()->at);
  if (line_ != nullptr) at = std::min(at, line_->next_wake(now_));
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    at = std::min(at, hosts_[i]->device.next_deadline());
    const Transmitter& t = transmitters_[i];
    if (t.free_at > now_) at = std::min(at, t.free_at);
    // A queue pair whose context is fetched while the line is busy waits for the line.
    if (t.fetching != kNoQpn) at = std::min(at, std::max(t.fetched_at, t.free_at));
  }
  return at;
}

// Called twice, because a request may complete or fail during its turn to be sent, and no event may follow.
void World::act(Programs& programs) {
  for (int turn = 0; turn < 2; ++turn) {
    programs.act(*this, now_);
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) pump(i);
  }
}

bool World::step(Programs& programs) {
  const Time at = next_wake(programs);
  if (at == kNever) return false;
  now_ = std::max(now_, at);
  arrivals();
  if (line_ != nullptr) {
    line_->run(now_, [&](std::uint32_t, Passage frame) {
      const std::uint32_t to = host_at(frame.destination);
      launch(to, std::move(frame), now_);
    });
  }
  for (auto& h : hosts_) {
    if (h->device.next_deadline() > now_) continue;
    h->device.on_timer(now_);
    look_for_failures(h->id().v);
    if (h->device.next_deadline() <= now_) {
      referee_.report().add(now_, "progress", "host %u has a time-out that stays due", h->id().v);
      return false;
    }
  }
  act(programs);
  for (auto& h : hosts_) h->device.check_invariants();
  return true;
}

// A responder repeats answers for a while after its requester is gone.
Duration World::farewell_bound() const {
  Duration tries{};
  constexpr std::uint8_t kLongestTimeout = 11;  // plan.cc
  for (const DeviceConfig& d : config_.hosts)
    tries = std::max(tries, check::answers_kept(longest_rto(d, kLongestTimeout)));
  // A box remembers for so long that a half has failed.
  if (config_.line.there) tries = tries + config_.line.boxes[0].give_up;
  return referee_.progress().bound() + tries;
}

void World::run(Programs& programs) {
  act(programs);
  // After the last completion the packets that are still under way must end within a bound, too.
  const Duration farewell = farewell_bound();
  Time quiet_since = kNever;
  for (;;) {
    if (programs.waiting()) {
      quiet_since = kNever;
      if (!referee_.waiting(now_)) return;
    } else if (quiet_since == kNever) {
      quiet_since = now_;
    } else if (now_ - quiet_since > farewell) {
      referee_.report().add(now_, "progress", "nobody waits for anything, yet it does not fall silent");
      return;
    }
    if (referee_.report().total() > check::Report::kKept) return;
    if (!step(programs)) break;
  }
  if (programs.waiting()) referee_.report().add(now_, "progress", "somebody waits, but nothing is under way");
  finish();
}

bool World::anybody_failed() {
  for (const auto& [h, qpn] : ends_) {
    const auto attr = host(h).device.query_qp(qpn);
    if (!attr || attr->state == QpState::kErr) return true;
  }
  return false;
}

void World::finish() {
  referee_.finish(now_);
  if (line_ != nullptr && !line_->idle())
    referee_.report().add(now_, "boxes", "they still keep, or owe, something at the end");
  for (auto& h : hosts_) {
    const std::uint32_t blocks = h->device.loss_blocks_in_use();
    // If the other end failed or is gone, a gap is never filled, so its bitmap stays in use.
    if (blocks != 0 && !anybody_failed())
      referee_.report().add(now_, "pools", "host %u holds %u bitmap blocks at the end", h->id().v, blocks);
    for (auto& other : hosts_) {
      if (other == h) continue;
      const auto path = h->device.open_path({other->address()});
      if (!path) continue;
      const Bytes left = h->device.path_in_flight(*path);
      if (left.n != 0 && !anybody_failed()) {
        referee_.report().add(now_, "pools", "host %u counts %llu bytes in flight to host %u at the end",
                              h->id().v, static_cast<unsigned long long>(left.n), other->id().v);
      }
    }
    if (h->device.pick(now_) != kNoQpn)
      referee_.report().add(now_, "pools", "host %u still has work", h->id().v);
  }
}

}  // namespace weft::pair
