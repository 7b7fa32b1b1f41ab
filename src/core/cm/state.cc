// Tables, sending, events, and the life of a row: created, waiting, over, free.
#include "core/cm/state.h"

#include <algorithm>
#include <bit>

namespace weft::cm {

using wire::CmKind;
using wire::CmMessage;

Result<void> CmConfig::validate() const {
  if (max_connections == 0 || max_connections > (1U << 16U))
    return fail("max_connections must be between 1 and 65536");
  if (max_listeners == 0 || max_listeners > 65535) return fail("max_listeners must be between 1 and 65535");
  for (const std::uint8_t code : {packet_life, ack_delay, response_timeout, service_timeout}) {
    if (code > 31)
      return fail("packet_life, ack_delay, response_timeout and service_timeout are codes up to 31");
  }
  if (patient_rnr_timer > 31) return fail("patient_rnr_timer is a code up to 31");
  if (max_retries > 15) return fail("max_retries must be at most 15");
  if (modes == 0 || (modes & ~unsigned{wire::kAllModes}) != 0)
    return fail("modes must name some of roce, irn and srnic");
  if ((modes & mode_bit(preferred)) == 0) return fail("preferred must be one of modes");
  return {};
}

// Rows per index; a communication id is slot, generation and index in 8 + (24 - index bits) + index bits.
State::State(const CmConfig& c)
    : config(c),
      random(c.seed),
      index_mask(std::bit_ceil(c.max_connections) - 1U),
      listeners(c.max_listeners),
      by_peer_id(c.max_connections),
      by_peer_qpn(c.max_connections),
      deadlines(c.max_connections),
      outbox(index_mask + 1U),
      event_rows(index_mask + 1U),
      replies(kReplies) {
  CHECK(c.validate().has_value());
}

Connection* State::find(ConnId id) {
  const std::uint32_t index = id.v & index_mask;
  if (index >= rows.size()) return nullptr;
  Connection& c = *rows[index];
  return c.phase != Phase::kFree && c.id == id ? &c : nullptr;
}

Connection* State::find(PeerTable& table, const wire::Address& peer, std::uint32_t number) {
  const std::uint32_t row = table.find({peer, number});
  return row == PeerTable::kNoRow ? nullptr : rows[row].get();
}

Connection* State::find_mine(const CmMessage& m, const MadFacts& facts) {
  Connection* c = find(ConnId{m.remote_id});
  return c != nullptr && c->info.peer == facts.source ? c : nullptr;
}

Connection* State::create() {
  std::uint32_t index = 0;
  if (!free_rows.empty()) {
    index = free_rows.back();
    free_rows.pop_back();
  } else {
    if (rows.size() == config.max_connections) return create_from_answered();
    index = static_cast<std::uint32_t>(rows.size());
    // Memory may run out, and what is thrown then passes through here without cleaning up: the place first.
    if (rows.size() == rows.capacity()) rows.reserve(rows.size() * 2 + 8);
    rows.push_back(std::make_unique<Connection>());
    rows.back()->id = {(static_cast<std::uint32_t>(random.next()) & ~index_mask) | index};
  }
  ++live;
  Connection& c = *rows[index];
  // The next generation; zero is no communication id.
  std::uint32_t low = (c.id.v + index_mask + 1U) & 0xFF'FFFFU;
  if ((std::uint32_t{config.slot} << 24U | low) == 0) low += index_mask + 1U;
  const bool in_outbox = c.in_outbox, in_events = c.in_events;
  c = Connection{};
  c.id = {std::uint32_t{config.slot} << 24U | low};
  c.in_outbox = in_outbox;
  c.in_events = in_events;
  return &c;
}

// A full table drops a row that is kept only to repeat an answer: the one whose time ends first.
Connection* State::create_from_answered() {
  Connection* oldest = nullptr;
  for (const auto& row : rows) {
    if (row->phase == Phase::kAnswered && (oldest == nullptr || row->deadline < oldest->deadline))
      oldest = row.get();
  }
  if (oldest == nullptr) return nullptr;
  oldest->owes_last = false;
  over(*oldest);
  return create();
}

void State::free_if_over(Connection& c) {
  if (c.phase != Phase::kOver) return;
  if (c.abandoned) c.pending = 0;
  if (c.pending != 0 || c.owes_last) return;
  const std::uint32_t index = index_of(c);
  deadlines.remove(index);
  leave_backlog(c);
  by_peer_id.erase(index);
  by_peer_qpn.erase(index);
  c.phase = Phase::kFree;
  --live;
  free_rows.push_back(index);
}

std::uint64_t State::new_transaction() { return (std::uint64_t{config.slot} << 56U) | (random.next() >> 8U); }

void State::wait(Connection& c, Time now, Duration interval, std::uint8_t retries) {
  c.interval = interval;
  c.retries_left = retries;
  c.deadline = now.after(interval);
  deadlines.at_latest(index_of(c), c.deadline);
}

void State::over(Connection& c) {
  c.phase = Phase::kOver;
  stop_waiting(c);
  leave_backlog(c);
  free_if_over(c);
}

void State::over(Connection& c, CmEventKind kind, std::uint16_t reason) {
  // A program that never heard of a request does not hear of its end either. A pending response is dropped,
  // because it can no longer be used.
  const bool unheard =
      c.is_pending(CmEventKind::kConnectRequest) || c.is_pending(CmEventKind::kResolveRequest);
  c.pending = unheard ? std::uint16_t{0}
                      : static_cast<std::uint16_t>(
                            c.pending & ~(1U << static_cast<unsigned>(CmEventKind::kConnectResponse)));
  c.reason = reason;
  if (!unheard) raise(c, kind);
  over(c);
}

void State::enter_timewait(Connection& c, Time now) {
  c.phase = Phase::kTimewait;
  wait(c, now, believed(c.info.ack_timeout), 0);
}

// Keeps the answer for as long as the peer may ask again. The peer repeats after two packet lives, which are
// about the ACK time-out, plus our response time.
void State::linger(Connection& c, Time now) {
  c.phase = Phase::kAnswered;
  c.abandoned = true;
  c.pending = 0;
  leave_backlog(c);
  const Duration again = believed(c.info.ack_timeout) + believed(c.peer_response_timeout);
  wait(c, now, again * (c.max_retries + 2), 0);
}

void State::leave_backlog(Connection& c) {
  if (c.listener.v == kNone) return;
  Listener& l = listeners[c.listener.v];
  CHECK_OP(l.waiting, >, 0U);
  --l.waiting;
  c.listener = {kNone};
}

CmMessage State::message(const Connection& c, CmKind kind) const {
  CmMessage m;
  m.kind = kind;
  m.transaction = c.transaction;
  m.local_id = c.id.v;
  m.remote_id = c.peer_id;
  return m;
}

void State::send(Connection& c, const CmMessage& m) {
  encode(m, c.last);
  c.owes_last = true;
  to_outbox(c);
}

void State::send_again(Connection& c) {
  c.owes_last = true;
  to_outbox(c);
}

void State::to_outbox(Connection& c) {
  if (c.in_outbox) return;
  c.in_outbox = true;
  outbox[outbox_tail++ & index_mask] = index_of(c);
}

void State::owe_mra(Connection& c, std::uint8_t about) {
  c.owes_mra = true;
  c.mra_about = about;
  to_outbox(c);
}

void State::reply(const MadFacts& received, const CmMessage& m) {
  if (replies_tail - replies_head == kReplies) {
    ++counters.overflow;
    return;
  }
  MadOut& out = replies[replies_tail++ % kReplies];
  out.facts = {.source = received.destination, .destination = received.source};
  encode(m, out.mad);
}

void State::reply_rej(const MadFacts& received, const CmMessage& to, std::uint16_t reason,
                      std::uint8_t about) {
  CmMessage m;
  m.kind = CmKind::kRej;
  m.transaction = to.transaction;
  m.local_id = to.remote_id;
  m.remote_id = to.local_id;
  m.about = about;
  m.reason = reason;
  reply(received, m);
}

void State::reject_with(Connection& c, std::uint16_t reason, std::uint8_t about,
                        std::span<const std::uint8_t> private_data) {
  CmMessage m = message(c, CmKind::kRej);
  m.about = about;
  m.reason = reason;
  set_private(m, private_data);
  // The peer may know only its own id of this connection. The GUID tells it which node timed out.
  if (reason == wire::kRejTimeout) {
    m.info_length = 8;
    for (unsigned i = 0; i < 8; ++i) m.info[i] = static_cast<std::uint8_t>(config.ca_guid >> (56U - 8U * i));
  }
  send(c, m);
}

void State::raise(Connection& c, CmEventKind kind) {
  if (c.abandoned) return;
  c.pending = static_cast<std::uint16_t>(c.pending | 1U << static_cast<unsigned>(kind));
  if (c.in_events) return;
  c.in_events = true;
  event_rows[events_tail++ & index_mask] = index_of(c);
}

void State::keep_private(Connection& c, const CmMessage& m, std::size_t skip) {
  c.private_length = static_cast<std::uint32_t>(private_bytes(m.kind) - skip);
  CHECK_OP(c.private_length, <=, c.private_data.size());
  std::copy_n(m.private_data.begin() + static_cast<std::ptrdiff_t>(skip), c.private_length,
              c.private_data.begin());
}

void set_private(CmMessage& m, std::span<const std::uint8_t> bytes, std::size_t skip) {
  CHECK_OP(skip + bytes.size(), <=, private_bytes(m.kind));
  std::copy(bytes.begin(), bytes.end(), m.private_data.begin() + static_cast<std::ptrdiff_t>(skip));
}

std::uint8_t mtu_code(std::uint32_t bytes) {
  for (std::uint8_t code = 1; code <= 5; ++code) {
    if (mtu_bytes(code) == bytes) return code;
  }
  return 0;
}

std::uint32_t mtu_bytes(std::uint8_t code) { return code >= 1 && code <= 5 ? 128U << code : 0; }

// --- modes (docs/protocol/modes.md#negotiation) ----------------------------------------------------

void State::offer_modes(CmMessage& m) const {
  wire::EceOptions o = config.options;
  o.irn = (config.modes & mode_bit(wire::Mode::kIrn)) != 0;
  o.srnic = (config.modes & mode_bit(wire::Mode::kSrnic)) != 0;
  if (!o.irn && !o.srnic) return;  // plain RoCE needs no words
  m.vendor_id = wire::kEceVendor;
  m.modifier = encode_ece(o);
}

// Both sides call this with what the other sent. The passive side picks a mode; the active side then finds
// exactly that one.
void State::agree_on_modes(Connection& c, const CmMessage& m) {
  using wire::Mode;
  const wire::EceOptions theirs = wire::decode_ece(m.vendor_id, m.modifier);
  const unsigned spoken =
      (theirs.irn ? mode_bit(Mode::kIrn) : 0U) | (theirs.srnic ? mode_bit(Mode::kSrnic) : 0U);
  const unsigned both = spoken & config.modes;
  c.info.mode = (config.modes & mode_bit(Mode::kRoce)) != 0 ? Mode::kRoce : config.preferred;
  for (const Mode mode : {Mode::kIrn, Mode::kSrnic, config.preferred}) {  // the last that fits
    if ((both & mode_bit(mode)) != 0) c.info.mode = mode;
  }
  const wire::EceOptions& ours = config.options;
  const bool agreed = (both & mode_bit(c.info.mode)) != 0;  // false if the mode is used without agreement
  c.info.options = {.irn = agreed && c.info.mode == Mode::kIrn,
                    .srnic = agreed && c.info.mode == Mode::kSrnic,
                    .ecn_echo = ours.ecn_echo && theirs.ecn_echo,
                    .dctcp = ours.dctcp && theirs.dctcp,
                    .dcqcn = ours.dcqcn && theirs.dcqcn,
                    .window_log2 = std::min(ours.window_log2, theirs.window_log2)};
}

void State::accept_modes(const Connection& c, CmMessage& m) const {
  if (!c.info.options.irn && !c.info.options.srnic) return;
  m.vendor_id = wire::kEceVendor;
  m.modifier = encode_ece(c.info.options);
}

}  // namespace weft::cm
