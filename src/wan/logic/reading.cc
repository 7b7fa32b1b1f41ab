// READs and atomics inside an ownership. They are never answered early, so they pass in order: the first one
// waits until everything before it is delivered, further ones may follow it, and what comes behind them is
// dropped, and asked for again, until the last answer has passed.
//
//      delivered                                   read_end
//   ------|---- READ -------|-------- READ ----------|------>  sequence numbers
//         | expected: numbers that answers will take | not taken yet
//
// An acknowledgement that overtakes an answer says that the answer is lost (docs/protocol/reliable.md). So
// while one is awaited the box says nothing to the requester, also where a READ is repeated long after it
// passed. Answers that the line loses are repaired apart from all this (answers.h): they come here in order,
// as they are handed on.
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

// Everything up to read_end is with the endpoints. The partner learns of it by a new ownership.
void answered(BoxState& b, Taking& t, Time now) {
  t.reading = false;
  const bool asked_again = std::exchange(t.held_back, false);
  if (t.read_end > t.expected) {
    CHECK_OP(t.delivered.v, ==, t.expected.v);  // or frames would be kept that nobody finds any more
    t.expected = t.delivered = t.told = t.wanted = t.read_end;
    t.msn = t.told_msn = t.stored_msn = t.delivered_msn = (t.msn + t.reads) & kPsnMask;
    t.reads = 0;
    renew(b, t, now);
  }
  t.nak_due = t.nak_due || asked_again;
  if (t.nak_due || t.ack_due) queue(b.answering, t.answering, b.index_of(t));
}

}  // namespace

// True: the frame was dealt with; false: its half goes back to the wire first.
bool take_read(BoxState& b, Taking& t, const Frame& f, Seq seq, Time now) {
  const std::uint32_t numbers = numbers_of(f.header, t.mtu);
  if (numbers == 0 || t.draining) return false;
  const Seq next = t.reading ? std::max(t.expected, t.read_end) : t.expected;
  const bool again = seq < next;
  if (again && seq + numbers > next) {  // its requester is another one than that of what was acknowledged
    t.forget = true;
    drain(b, t, now);
    let_go(b, f);
    return true;
  }
  if (!again && (seq > next || t.delivered != t.expected || (t.reading && t.held_back))) {
    hold_back(t, f, seq);  // until everything before it is delivered, or answered
    b.counters.add(BoxCounter::drop_waiting);
    let_go(b, f);
    return true;
  }
  if (!again) {
    ++t.reads;
    b.counters.add(BoxCounter::reads);
  }
  t.read_end = t.reading ? std::max(t.read_end, seq + numbers) : seq + numbers;
  t.reading = true;
  pass(b, Side::kLine, f);
  return true;
}

void on_line_answer(BoxState& b, const Frame& f, Time now) {
  if (!is_answer(f.header.opcode)) return;
  const auto it = b.acked_taking_of.find(HalfName{f.destination, f.source, f.header.dest_qp});
  if (it == b.acked_taking_of.end()) return;
  Taking& t = b.takings[it->second];
  if (t.phase != Phase::kOwned || !t.reading) return;
  t.heard = now;
  if (ends_answer(f.header.opcode) && expand(f.header.psn, t.read_end) + 1 >= t.read_end) answered(b, t, now);
  arm(b, t, now);
}

}  // namespace weft::wan
