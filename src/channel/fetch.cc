// What is too long for a frame is fetched by READs (X-RDMA §4.3, §5.3): in fragments, a bounded number of
// them in flight over all channels, and channels take turns, fragment by fragment. So a large message neither
// blocks the NIC for long nor joins a hundred others in flooding this host.
//
// Fragments of a message are asked for in order, and READs complete in order: two offsets say all there is to
// know.
#include <algorithm>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

constexpr std::uint32_t kSpareForControls = 8;
constexpr Duration kHungry = microseconds(100);  // before memory is asked for again

// The announcement lies where its frame arrived.
Announcement announcement_of(Message& m) {
  const std::uint32_t ahead = m.has_head() ? Head::kBytes : 0;
  const std::uint8_t* const at = reinterpret_cast<std::uint8_t*>(&m) + kFrameAt + ahead;
  Announcement a;
  const auto count = static_cast<std::uint32_t>(at[8]) << 8U | at[9];
  CHECK(read_announcement({at, Announcement::kFixed + count * Announcement::kPiece}, UINT64_MAX, a));
  return a;
}

// The fragment that begins at `offset`: it ends with its piece.
struct Fragment {
  std::uint64_t remote = 0;
  Key rkey{};
  std::uint32_t length = 0;
};
Fragment fragment_at(const Announcement& a, std::uint32_t offset, std::uint32_t most) {
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    const Piece& p = a.pieces[i];
    if (offset - begin < p.length) {
      return {p.address + (offset - begin), p.rkey, std::min(most, p.length - (offset - begin))};
    }
    begin += p.length;
  }
  return {};
}

}  // namespace

std::uint32_t Context::count_unasked(const Channel& c) {
  std::uint32_t n = 0;
  for (std::uint64_t at = c.rx.handed; at != c.rx.wta; ++at) {
    const Message& m = *c.taken_at(at);
    n += !m.is(Message::kWhole) && m.asked != m.length ? 1U : 0U;
  }
  return n;
}

void Context::get_in_line(Channel& c) {
  if (c.in_line || c.hungry_at != kNever) return;
  c.in_line = true;
  c.fetching_before = fetching_end_;
  c.fetching_after = nullptr;
  (fetching_end_ != nullptr ? fetching_end_->fetching_after : fetching_) = &c;
  fetching_end_ = &c;
}

void Context::leave_line(Channel& c) {
  c.in_line = false;
  (c.fetching_before != nullptr ? c.fetching_before->fetching_after : fetching_) = c.fetching_after;
  (c.fetching_after != nullptr ? c.fetching_after->fetching_before : fetching_end_) = c.fetching_before;
}

void Context::leave_fetching(Channel& c) {
  c.hungry_at = kNever;
  if (c.in_line) leave_line(c);
}

// Turns go round until nothing more may leave.
void Context::fetch() {
  const Section timed(*this, Place::kFetch);
  while (fetching_ != nullptr && outstanding_ < config_.outstanding) {
    Channel& c = *fetching_;
    leave_line(c);
    if (fetch_one(c)) join_fetching(c);
  }
}

// Asks for one fragment. False: this channel has nothing to ask for until something comes back.
bool Context::fetch_one(Channel& c) {
  if (c.state != Channel::State::kOpen && c.state != Channel::State::kClosing) return false;
  if (c.reads_out >= config_.reads || c.sq_used() + kSpareForControls >= sq_) return false;
  c.fetching = std::max(c.fetching, c.rx.handed);
  while (c.fetching != c.rx.wta && (c.taken_at(c.fetching)->is(Message::kWhole) ||
                                    c.taken_at(c.fetching)->asked == c.taken_at(c.fetching)->length))
    ++c.fetching;
  if (c.fetching == c.rx.wta) return false;
  Message& m = *c.taken_at(c.fetching);
  if (m.body == nullptr) {
    m.body = own_.take(m.length);
    if (m.body == nullptr) {
      // It leaves the line: the others may have their memory already.
      ++counts_.starved;
      c.hungry_at = now_.after(kHungry);
      arm(c, c.hungry_at);
      return false;
    }
  }
  const Fragment f = fragment_at(announcement_of(m), m.asked, config_.fragment);
  const Sge sge{m.body->address + kPayloadAt + m.asked, f.length, m.body->lkey};
  SendWr wr;
  wr.opcode = WrOpcode::kRead;
  wr.sges = {&sge, 1};
  wr.remote_address = f.remote;
  wr.rkey = f.rkey;
  m.asked += f.length;
  if (m.asked == m.length) --c.unasked;
  ++c.reads_out;
  ++outstanding_;
  ++c.counted.fragments;
  if (!post(c, wr, Work::kRead, static_cast<std::uint32_t>(m.number), true)) {
    fail_channel(c, Reason::kLost);
    return false;
  }
  return true;
}

void Context::fetched(Channel& c, std::uint32_t wire_number) {
  --c.reads_out;
  --outstanding_;
  c.heard = now_;
  const std::uint64_t number = widen(wire_number, c.rx.handed);
  CHECK(number >= c.rx.handed && number < c.rx.wta);
  Message& m = *c.taken_at(number);
  m.fetched += fragment_at(announcement_of(m), m.fetched, config_.fragment).length;
  if (m.fetched == m.length) {
    m.data = m.body->data;
    m.set(Message::kWhole);
    if (c.rx.handed == number) hand_over(c);
  }
  join_fetching(c);
}

}  // namespace weft::channel
