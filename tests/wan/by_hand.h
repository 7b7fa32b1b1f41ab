// For tests: two boxes with frames carried by hand. What leaves towards a site is answered by endpoints of a
// few lines, or kept for the test to look at; the line between the boxes takes `delay` and can be cut. Bodies
// are counted: each comes back once.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/transport/rc/report.h"
#include "tests/wan/blocks.h"
#include "wan/code/group.h"
#include "wan/logic/box.h"
#include "wan/logic/halves.h"
#include "wan/logic/message.h"
#include "wan/logic/parity_frame.h"

namespace weft::wan {

inline constexpr Duration kDelay = milliseconds(1);

inline BoxConfig small_box(std::uint64_t n) {
  BoxConfig c;
  c.instance = 100 + n;
  c.seed = n;
  c.secret = {1, 2, 3};
  c.halves = 4;
  c.frames = 256;
  c.store = Bytes{1'000'000};
  c.queue = 256;
  c.window = 64;
  c.loss_blocks = 4;
  c.line_timeout = milliseconds(5);
  c.site_timeout = milliseconds(1);
  c.hello = milliseconds(4);
  c.patience = milliseconds(20);
  c.give_up = milliseconds(500);
  c.quiet = milliseconds(5);
  c.calm = 2;
  return c;
}

class ByHand {
 public:
  using Payload = std::vector<std::uint8_t>;
  struct Seen {
    Time at;
    Frame frame;
    std::optional<wire::Mad> mad;
    Payload parity;  // the payload of a parity frame
  };

  explicit ByHand(const std::function<void(std::uint32_t which, BoxConfig&)>& change = {}) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      BoxConfig c = small_box(i);
      if (change) change(i, c);
      boxes_[i] = std::make_unique<Box>(c);
    }
  }
  const Box& box(std::uint32_t which) const { return *boxes_[which]; }
  std::uint64_t count(std::uint32_t which, BoxCounter c) const { return boxes_[which]->counters().get(c); }
  Time now() const { return now_; }

  // A frame comes to box `which` from its site, or over the line.
  void from_site(std::uint32_t which, const Frame& f, const wire::Mad* mad = nullptr) {
    comes(which, Side::kSite, f, mad);
  }
  void from_line(std::uint32_t which, const Frame& f, const wire::Mad* mad = nullptr) {
    comes(which, Side::kLine, f, mad);
  }
  void parity_from_line(std::uint32_t which, const Frame& f, const Payload& payload) {
    coming_.push_back({which, Side::kLine, {now_, f, {}, payload}});
    if (!settling_) settle();
  }
  void run(Duration how_long) {
    const Time end = now_ + how_long;
    for (;;) {
      Time at = end;
      for (const Flight& f : line_) at = std::min(at, f.at);
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (!gone_[i]) at = std::min(at, boxes_[i]->next_deadline());
      }
      now_ = std::max(now_, at);
      const auto due =
          std::find_if(line_.begin(), line_.end(), [&](const Flight& f) { return f.at <= now_; });
      if (due != line_.end()) {
        const Flight f = *due;
        line_.erase(due);
        if (is_parity(f.frame.header)) {
          parity_from_line(f.to, f.frame, f.parity);
        } else {
          from_line(f.to, f.frame, f.mad.has_value() ? &*f.mad : nullptr);
        }
        continue;
      }
      settle();
      if (now_ >= end) return;
    }
  }

  void leave(std::uint32_t which) {
    boxes_[which]->leave(now_);
    settle();
  }
  // A wire stands where the box was.
  void remove(std::uint32_t which) { gone_[which] = true; }
  bool cut = false;
  bool busy[2] = {false, false};  // the line takes nothing from this box just now
  Duration delay = kDelay;        // of the line, each way
  // What boxes said to each other, as it lay on the line.
  std::vector<Seen> said[2];  // by the box that said it
  std::function<bool(std::uint32_t from, const Message&)> lose;
  // A data or parity frame, `n`-th of those that box `from` sent on the line.
  std::function<bool(std::uint32_t from, std::uint64_t n, const Frame&)> lose_frame;
  // Parity frames that lay on the line.
  std::vector<Payload> parity_seen[2];
  std::function<void(std::uint32_t site, const Seen&)> heard = [](std::uint32_t, const Seen&) {};
  std::uint64_t bodies() const { return out_; }

 private:
  struct Flight {
    Time at;
    std::uint32_t to;
    Frame frame;
    std::optional<wire::Mad> mad;
    Payload parity;
  };
  struct Coming {
    std::uint32_t which;
    Side from;
    Seen seen;
  };
  // Endpoints answer while a box is being asked what leaves: their answers wait.
  void comes(std::uint32_t which, Side from, const Frame& f, const wire::Mad* mad) {
    coming_.push_back({which, from, {now_, f, {}, {}}});
    if (mad != nullptr) coming_.back().seen.mad = *mad;
    if (!settling_) settle();
  }
  void feed(const Coming& c) {
    if (gone_[c.which]) return leaves(c.which, other(c.from), c.seen);
    Frame f = c.seen.frame;
    f.body = {++bodies_};
    ++out_;
    std::span<const std::uint8_t> mad;
    if (c.seen.mad.has_value()) {
      mads_[bodies_] = *c.seen.mad;
      mad = *c.seen.mad;
    }
    if (is_parity(f.header)) mad = coded_[bodies_] = c.seen.parity;
    if (boxes_[c.which]->config().parity.there()) blocks_[bodies_] = block_of(f);
    boxes_[c.which]->on_frame(now_, c.from, f, mad);
    restore(c.which);
  }
  void restore(std::uint32_t which) {
    for (Restore r; boxes_[which]->poll_restore(r);) {
      std::vector<Frame> found;
      (void)compute(
          r, decoder_, [&](BodyId b) { return std::span<const std::uint8_t>(blocks_.at(b.v)); },
          [&](const Restore::Row& row) {
            return std::span<const std::uint8_t>(coded_.at(row.body.v)).subspan(r.header_bytes);
          },
          [&](std::span<const std::uint8_t> block) {
            if (Frame f; frame_of(block, f)) found.push_back(f);
          });
      for (Frame& f : found) {
        f.body = {++bodies_};
        ++out_;
        blocks_[bodies_] = block_of(f);
        boxes_[which]->on_restored(now_, f);
      }
    }
  }
  void forget(BodyId body) {
    --out_;
    blocks_.erase(body.v);
    coded_.erase(body.v);
  }
  // What box `which` sends on the line: coded, and lost or not.
  bool is_lost(std::uint32_t which, const Out& out, Seen& s) {
    if (out.member == 0) encoder_[which].begin();
    if (out.member != Out::kNoMember) encoder_[which].add(out.member, block_of(out.frame));
    if (!out.parity.empty()) {
      const auto coded = encoder_[which].row(out.row);
      s.parity.assign(out.parity.begin(), out.parity.end());
      s.parity.insert(s.parity.end(), coded.begin(), coded.end());
      parity_seen[which].push_back(s.parity);
    }
    const bool counts = is_push(out.frame.header.opcode) || !out.parity.empty();
    return counts && lose_frame && lose_frame(which, line_frames_[which]++, out.frame);
  }
  void leaves(std::uint32_t which, Side to, const Seen& s) {
    if (to == Side::kSite) return heard(which, s);
    if (!cut) line_.push_back({now_ + delay, 1 - which, s.frame, s.mad, s.parity});
  }
  void settle() {
    settling_ = true;
    for (bool moved = true; moved;) {
      moved = !coming_.empty();
      const std::vector<Coming> batch = std::exchange(coming_, {});
      for (const Coming& c : batch) feed(c);
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (gone_[i]) continue;
        Box& b = *boxes_[i];
        if (b.next_deadline() <= now_) b.on_timer(now_);
        for (const Side to : {Side::kSite, Side::kLine}) {
          if (to == Side::kLine && busy[i]) continue;
          for (Out out; b.poll(now_, to, out); moved = true) {
            Seen s{now_, out.frame, {}, {}};
            if (out.mad != nullptr) s.mad = *out.mad;
            if (out.frame.body != kNoBody) {
              if (const auto it = mads_.find(out.frame.body.v); it != mads_.end()) s.mad = it->second;
              if (out.last) forget(out.frame.body);
            }
            const bool lost = to == Side::kLine && is_lost(i, out, s);
            s.frame.body = kNoBody;
            Message m;
            const bool message = out.mad != nullptr && decode(*out.mad, key_, m);
            if (message) said[i].push_back(s);
            if (message && lose && lose(i, m)) continue;
            if (!lost) leaves(i, to, s);
          }
        }
        for (BodyId body; b.poll_released(body);) forget(body);
        b.check_invariants();
      }
    }
    settling_ = false;
  }

  std::unique_ptr<Box> boxes_[2];
  Hmac key_{std::vector<std::uint8_t>{1, 2, 3}};
  bool gone_[2] = {false, false};
  bool settling_ = false;
  std::vector<Coming> coming_;
  Time now_{};
  std::vector<Flight> line_;
  std::uint32_t bodies_ = 0;
  std::uint64_t out_ = 0;  // bodies that the boxes have
  std::map<std::uint32_t, wire::Mad> mads_;
  // What is coded of a body, and the payload of a parity frame.
  std::map<std::uint32_t, Payload> blocks_;
  std::map<std::uint32_t, Payload> coded_;
  Encoder encoder_[2] = {{kMostRows, kLongestBlock}, {kMostRows, kLongestBlock}};
  Decoder decoder_{kLongestBlock};
  std::uint64_t line_frames_[2] = {0, 0};
};

// A requester at site 0 and a responder at site 1: WRITEs of one packet, each asks for an acknowledgement.
// The requester resends from what a sequence NAK names on; it has no time-out but resend(). The responder
// takes in order only: in irn and srnic it declines what is ahead.
class Connection {
 public:
  static constexpr wire::Address kA = wire::Address::v4(10, 0, 0, 1);
  static constexpr wire::Address kB = wire::Address::v4(10, 0, 1, 1);
  static constexpr std::uint32_t kMtu = 1024;

  Connection(ByHand& boxes, Qpn requester, Qpn responder, std::uint32_t first,
             wire::Mode mode = wire::Mode::kRoce)
      : boxes_(boxes),
        requester_(requester),
        responder_(responder),
        mode_(mode),
        first_(Seq::start({first})) {
    una_ = next_ = expected_ = first_;
  }
  void write(std::uint32_t n) {
    for (; n > 0; --n) {
      ++next_;
      emit(next_ - 1);
    }
  }
  void read(std::uint32_t bytes) {
    const Seq first = next_;
    reads_[first] = bytes;
    next_ += numbers(bytes);
    emit(first);
  }
  // The next WRITEs are lost on their way to the box.
  void lose(std::uint32_t n) { next_ += n; }
  // A WRITE of two packets.
  void learn_mtu() {
    for (const std::uint8_t op : {wire::kWriteFirst, wire::kWriteLast}) {
      opcode_ = op;
      write(1);
    }
    opcode_ = wire::kWriteOnly;
  }
  void resend() { go_back(una_); }
  void emit(Seq seq) {
    Frame f;
    const auto read = reads_.find(seq);
    f.header.mode = mode_;
    f.header.srx_msn = static_cast<std::uint32_t>(seq - first_) + 1;
    f.header.opcode = read == reads_.end() ? opcode_ : std::uint8_t{wire::kReadRequest};
    f.header.bits = wire::kAckReq;
    f.header.dest_qp = responder_;
    f.header.psn = seq.wire();
    f.header.dma_len = read == reads_.end() ? 64 : read->second;
    f.payload = read == reads_.end() ? 64 : 0;
    if (f.header.opcode == wire::kWriteFirst) f.payload = kMtu;
    f.source = kA;
    f.destination = kB;
    boxes_.from_site(0, f);
  }
  // Writes, a packet at a time, until the boxes have taken over once more; false: they never do.
  bool until_owned() {
    const std::uint64_t before = boxes_.count(0, BoxCounter::owned);
    for (int i = 0; i < 150 && boxes_.count(0, BoxCounter::owned) == before; ++i) {
      write(1);
      boxes_.run(milliseconds(2));
      if (i % 16 == 15) resend();
    }
    return boxes_.count(0, BoxCounter::owned) > before;
  }
  // Until nothing is on its way any more, or for so long.
  void settle(Duration how_long) {
    for (Duration d{}; d < how_long; d = d + milliseconds(10)) {
      boxes_.run(milliseconds(10));
      if (done() < sent()) resend();
    }
  }
  void hear(std::uint32_t site, const ByHand::Seen& s) {
    const wire::Header& h = s.frame.header;
    if (site == 1 && h.dest_qp == responder_ && (is_push(h.opcode) || is_fetch(h.opcode)) && answers)
      responds(h);
    const bool answer = h.opcode == wire::kAcknowledge || h.opcode == wire::kReadResponseLast;
    if (site == 0 && h.dest_qp == requester_ && answer) acknowledged(h);
  }
  std::uint64_t sent() const { return next_ - first_; }
  std::uint64_t done() const { return una_ - first_; }
  std::uint64_t taken() const { return expected_ - first_; }  // by the responder, in numbers
  Seq next() const { return next_; }
  bool failed() const { return failed_; }
  bool answers = true;
  bool refuses = false;

 private:
  void go_back(Seq from) {
    for (Seq s = from; s < next_ && !failed_;) {
      emit(s);
      const auto read = reads_.find(s);
      s += read == reads_.end() ? 1 : numbers(read->second);
    }
  }
  void responds(const wire::Header& h) {
    const Seq seq = expand(h.psn, expected_);
    const bool ahead = seq > expected_;
    if (ahead && std::exchange(refused_, true) && mode_ == wire::Mode::kRoce)
      return;  // once for a gap, or requester and responder never end
    refused_ = ahead;
    const bool read = is_fetch(h.opcode) && !ahead;
    const std::uint32_t taken = read ? numbers(h.dma_len) : 1;
    if (seq == expected_ && !refuses) {
      expected_ += taken;
      messages_ += read || ends_message(h.opcode) ? 1U : 0U;
    }
    Frame f;
    const bool answers_read = read && mode_ == wire::Mode::kRoce && !refuses;
    f.header.mode = mode_;
    f.header.opcode = answers_read ? wire::kReadResponseLast : wire::kAcknowledge;
    f.header.dest_qp = requester_;
    f.header.psn =
        ahead || refuses ? expected_.wire() : (answers_read ? seq + taken - 1 : expected_ - 1).wire();
    const std::uint8_t nak = refuses ? wire::kSyndromeNakAccess : wire::kSyndromeNakSequence;
    f.header.set_aeth(ahead || refuses ? nak : std::uint8_t{wire::kSyndromeAck}, messages_);
    if (mode_ == wire::Mode::kIrn && ahead) {
      f.header.set_sack(h.psn);
      f.header.ext_flags = wire::kSackNotKept;
    }
    if (mode_ == wire::Mode::kSrnic && !refuses) {
      f.header.psn = h.psn;
      f.header.set_sack(expected_.wire());
      f.header.set_echo(h.srx_msn, 0);
    }
    f.source = kB;
    f.destination = kA;
    boxes_.from_site(1, f);
  }
  // How many a READ takes.
  std::uint32_t numbers(std::uint32_t bytes) const { return mode_ == wire::Mode::kRoce ? bytes / kMtu : 1; }
  void acknowledged(const wire::Header& h) {
    if (h.mode != mode_) return;
    const Seq to = rc_report(h, una_).to;
    if (to < una_ || to > next_) return;
    una_ = to;
    if (h.syndrome > wire::kSyndromeNakSequence) failed_ = failed_ || to < next_;
    if (h.syndrome != wire::kSyndromeNakSequence || to >= next_) return;
    // Each packet that is declined is named: once for all that come at one time, or these two never end.
    if (mode_ != wire::Mode::kRoce && std::exchange(went_back_at_, boxes_.now()) == boxes_.now()) return;
    go_back(to);
  }

  ByHand& boxes_;
  Qpn requester_;
  Qpn responder_;
  wire::Mode mode_;
  Seq first_;
  std::map<Seq, std::uint32_t> reads_;  // bytes, by number
  Seq una_;
  Seq next_;
  Seq expected_;
  std::uint32_t messages_ = 0;
  std::uint8_t opcode_ = wire::kWriteOnly;
  bool failed_ = false;
  bool refused_ = false;  // a packet ahead of a gap
  Time went_back_at_ = kNever;
};

}  // namespace weft::wan
