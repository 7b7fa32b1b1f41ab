// What an acknowledgement says, read straight from docs/protocol/packets.md#syndromes, irn.md#layouts and
// srnic.md#echoes. The observers have their own reading of it: the transport's may be wrong.
#pragma once
#include "core/base/seq.h"
#include "core/wire/header.h"

namespace weft::check {

struct Said {
  Seq upto{};           // everything below this has arrived
  Seq trigger{};        // irn's NACKs, everything in srnic: the packet that caused it
  bool echoes = false;  // `trigger` is set; in srnic the MSN and the offset as well
  bool keeps = false;   // a NACK whose trigger is kept
  bool again = false;   // srnic: its trigger is a duplicate
};

inline Said said_by(const wire::Header& h, Seq near) {
  Said said;
  const bool ack = (h.syndrome & 0x60U) == 0;
  const bool nack = h.syndrome == 0x60U;
  const Seq psn = expand(h.psn, near);
  switch (h.mode) {
    case wire::Mode::kSrnic:
      if (!ack && !nack) break;
      said.upto = expand(h.sack_psn(), near);
      said.trigger = psn;
      said.echoes = true;
      said.keeps = nack && (h.ext_flags & 0x40U) != 0;
      said.again = (h.ext_flags & 0x20U) != 0;
      return said;
    case wire::Mode::kIrn:
      if (!nack) break;
      said.upto = psn;
      said.trigger = expand(h.sack_psn(), psn);
      said.echoes = true;
      said.keeps = (h.ext_flags & 0x40U) == 0;
      return said;
    case wire::Mode::kRoce:
      break;
  }
  said.upto = ack ? psn + 1 : psn;
  return said;
}

}  // namespace weft::check
