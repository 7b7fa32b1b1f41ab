// Why a UC packet was dropped, and the one reason that its receiver hears of: a receive that cannot be
// written.
#include "core/transport/uc/responder.h"

#include "core/transport/rc/failure.h"

namespace weft {

void uc_refuse(Engine& e, QueuePair& q, Placed v) {
  switch (v) {
    case Placed::kDone:
      return;
    case Placed::kSilent:
      return e.counters.add(Counter::drop_message);
    case Placed::kNoReceive:
      return e.counters.add(Counter::drop_no_receive);
    case Placed::kLocalLength:
      return e.counters.add(Counter::drop_too_long);
    case Placed::kWrongLength:
    case Placed::kInvalid:
    case Placed::kAccess:
    case Placed::kOperation:
      return e.counters.add(Counter::drop_refused);
    case Placed::kLocalFault:
      rc_fail_receive(e, q, WcStatus::kLocalProtection);
      return rc_enter_error(e, q);
  }
}

}  // namespace weft
