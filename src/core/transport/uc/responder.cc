// Why a UC packet was dropped, and the one reason that its receiver hears of: a receive that cannot be
// written.
#include "core/transport/uc/responder.h"

namespace weft {

void uc_refuse(Engine& e, QueuePair& q, Verdict v) {
  switch (v) {
    case Verdict::kDone:
      return;
    case Verdict::kSilent:
      return e.counters.add(Counter::drop_message);
    case Verdict::kNoReceive:
      return e.counters.add(Counter::drop_no_receive);
    case Verdict::kLocalLength:
      return e.counters.add(Counter::drop_too_long);
    case Verdict::kWrongLength:
    case Verdict::kInvalid:
    case Verdict::kAccess:
    case Verdict::kOperation:
      return e.counters.add(Counter::drop_refused);
    case Verdict::kLocalFault:
      rc_fail_receive(e, q, WcStatus::kLocalProtection);
      return rc_enter_error(e, q);
  }
}

}  // namespace weft
