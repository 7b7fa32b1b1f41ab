// Faults on purpose (X-RDMA §6.3, Filter): a program that is to bear them meets them here, switched on and
// off while it runs. What was received is dropped before the program sees it, held up, or answered by a
// connection that fails. The sender's end knows nothing of it: a message that is dropped was taken, as by a
// program that forgot it, and a request then has no response.
#include "channel/context.h"

namespace weft::channel {

// Each message is judged once, when it is the next one. One that is held up holds up those behind it.
Context::Filtered Context::filter(Channel& c, std::uint64_t number) {
  if (c.slow_until != kNever && c.slow_until > now_) return Filtered::kLater;
  c.slow_until = kNever;
  if (number < c.judged) return Filtered::kPass;
  c.judged = number + 1;
  if (filter_random_.chance(config_.filter_fail)) return Filtered::kFail;
  if (filter_random_.chance(config_.filter_drop)) return Filtered::kDrop;
  if (config_.filter_delay.ps == 0) return Filtered::kPass;
  c.slow_until = now_.after(config_.filter_delay);
  arm(c, c.slow_until);
  return Filtered::kLater;
}

}  // namespace weft::channel
