// What the site's requesters are told, in the form of their half's dialect (rc/report.h draws the forms):
//
//   ACK        everything before `expected` is taken; those that follow each other become one
//   NACK       irn, srnic: of each packet that came ahead of a gap, kept or not
//   NAK        roce: the gap at `expected`, once; in every dialect: what was held back may come again
//   refusal    the half has failed
#include <algorithm>

#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

Out to_requester(const Taking& t, std::uint8_t syndrome, Seq psn, std::uint32_t msn, bool marked) {
  Out out;
  wire::Header& h = out.frame.header;
  h.opcode = wire::kAcknowledge;
  h.mode = t.mode;
  h.dest_qp = t.requester_qpn;
  h.psn = psn.wire();
  h.set_aeth(syndrome, msn);
  if (marked) h.bits |= wire::kBecn;
  out.frame.source = t.name.responder;
  out.frame.destination = t.name.requester;
  out.last = true;
  return out;
}

// srnic: the packet that caused it, and the first one missing.
void echo(wire::Header& h, const Echo& trigger, Seq expected, bool marked) {
  h.psn = {trigger.psn};
  h.set_sack(expected.wire());
  h.set_echo(trigger.msn, trigger.offset);
  if (marked) h.ext_flags |= wire::kCeEcho;
}

// Names a packet that is not before `expected`.
Out nack(const Taking& t, const Trigger& n) {
  Out out = to_requester(t, wire::kSyndromeNakSequence, t.expected, t.msn, n.marked);
  wire::Header& h = out.frame.header;
  switch (dialect(t.mode).ack_form) {
    case AckForm::kPlain:
      break;
    case AckForm::kSack:
      h.set_sack(n.seq.wire());
      if (!n.kept) h.ext_flags |= wire::kSackNotKept;
      if (n.marked) h.ext_flags |= wire::kCeEcho;
      break;
    case AckForm::kEcho:
      echo(h, n.echo, t.expected, n.marked);
      h.set_hole(n.hole.missing, n.hole.since);
      if (n.kept) h.ext_flags |= wire::kEcxOutOfOrder;
      break;
  }
  return out;
}

Out ack(Taking& t, Seq upto) {
  const bool all = upto == t.expected;
  const bool marked = t.marks != 0;
  if (marked) --t.marks;
  Out out = to_requester(t, wire::kSyndromeAck, upto - 1, all ? t.msn : t.stored_msn, marked);
  const bool copy = std::exchange(t.copy_due, false);
  if (dialect(t.mode).ack_form != AckForm::kEcho) return out;
  echo(out.frame.header, copy ? t.ahead.copy : all ? t.ahead.last : t.ahead.stored_last, upto, marked);
  if (copy) out.frame.header.ext_flags |= wire::kEcxDuplicate;
  return out;
}

// The next packet that its endpoint hears of by itself and that is still ahead.
bool next_trigger(Taking& t, Trigger& n) {
  while (t.trigger_count != 0) {
    n = t.ahead.triggers[0];
    std::copy(t.ahead.triggers.begin() + 1, t.ahead.triggers.begin() + t.trigger_count,
              t.ahead.triggers.begin());
    --t.trigger_count;
    if (n.seq > t.expected) return true;
    t.ack_due = true;  // what was missing has come since
    if (n.marked && t.marks < UINT16_MAX) ++t.marks;
  }
  return false;
}

}  // namespace

// Up to here the requester may be told that it is done.
Seq answerable(const BoxState& b, const Taking& t) {
  return b.config.acknowledge == Acknowledge::kEarly ? t.expected : t.sender.una;
}

bool next_answer(BoxState& b, Out& out) {
  for (std::uint32_t index = 0; b.answering.take(index);) {
    Taking& t = b.takings[index];
    t.answering = false;
    if (t.phase == Phase::kFree || !t.learned || t.over) {
      t.nak_due = t.ack_due = t.copy_due = false;
      t.trigger_count = 0;
      continue;
    }
    const bool failed = t.phase == Phase::kFailed;
    const bool owned = t.phase == Phase::kOwned || t.phase == Phase::kReleasing;
    const Seq upto = owned ? answerable(b, t) : t.expected;
    if (t.reading && t.phase == Phase::kOwned) continue;  // answered() comes back to it
    // A NAK acknowledges everything before it; on_report() asks again.
    const bool may_refuse = upto == t.expected;
    Trigger n;
    const bool nak = t.nak_due && may_refuse;
    const bool ahead = !nak && owned && may_refuse && next_trigger(t, n);
    if (nak) {
      t.nak_due = t.ack_due = false;
      if (failed) {
        const Seq at =
            t.ahead.refused_read != Seq{} ? std::exchange(t.ahead.refused_read, Seq{}) : t.expected;
        out = to_requester(t, t.syndrome, at, t.msn, false);
      } else {
        // It is named by the highest that was dropped: all before that may come again.
        n = t.ahead.dropped;
        if (n.seq < t.expected) n.seq = t.expected;
        out = nack(t, n);
      }
    } else if (ahead) {
      t.ack_due = t.copy_due = false;
      out = nack(t, n);
    } else {
      if (!std::exchange(t.ack_due, false) || t.nak_due || upto <= t.from || failed) continue;
      out = ack(t, upto);
    }
    if (upto > t.told && owned) {
      t.told = upto;
      t.told_msn = out.frame.header.aeth_msn();
    }
    const bool nacks = nak || ahead;
    b.counters.add(nacks ? BoxCounter::refused_gap : BoxCounter::acknowledged);
    if (!nacks && t.marks != 0) t.ack_due = true;  // each mark has an echo of its own
    if (t.nak_due || t.ack_due || t.trigger_count != 0) queue(b.answering, t.answering, index);
    return true;
  }
  return false;
}

}  // namespace weft::wan
