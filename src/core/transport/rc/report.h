// What an acknowledgement says in any mode (reliable.md#acknowledgements, irn.md#acks-and-nacks,
// srnic.md#echoes).
//
//              BTH.PSN of an ACK        BTH.PSN of a sequence NAK     beside it
//   roce       last packet covered      first packet missing          -
//   irn        last packet covered      first packet missing          SACK: the trigger of the NAK
//   srnic      the trigger              the trigger                   ECX: first packet missing, echo, hole
//
// Receiver-not-ready and error NAKs have the plain layout everywhere.
#pragma once
#include "core/base/seq.h"
#include "core/transport/dialect.h"
#include "core/transport/loss/scheme.h"
#include "core/wire/header.h"

namespace weft {

struct Report {
  Seq to{};               // everything before this has arrived
  Seq trigger{};          // the packet that caused it, where the layout says so
  bool positive = false;  // an ACK
  bool kept = false;      // a sequence NAK whose trigger the receiver has
  Hole hole;              // srnic: what such a NAK names

  Nack nack(Seq una) const { return {trigger, kept && trigger != una, hole}; }
};

inline Report rc_report(const wire::Header& h, Seq una) {
  const Seq psn = expand(h.psn, una);
  const bool positive = h.syndrome < wire::kSyndromeRnr;
  const bool sequence = h.syndrome == wire::kSyndromeNakSequence;
  const AckForm form = dialect(h.mode).ack_form;
  if (form == AckForm::kEcho && (positive || sequence)) {
    return {expand(h.sack_psn(), una),
            psn,
            positive,
            (h.ext_flags & wire::kEcxOutOfOrder) != 0,
            {h.hole_missing(), h.hole_since()}};
  }
  if (positive) return {psn + 1, psn, true, false, {}};
  if (form == AckForm::kPlain || !sequence) return {psn, psn, false, false, {}};
  const Seq trigger = expand(h.sack_psn(), una);
  return {psn, trigger, false, (h.ext_flags & wire::kSackNotKept) == 0 && trigger != psn, {}};
}

}  // namespace weft
