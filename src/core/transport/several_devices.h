// What a world asks of each Device where one program has several (docs/ARCHITECTURE.md#shards): its domains
// and completion queues are then in every one of them under the same number, and change in all or in none.
// So whatever could refuse the change in one of them is asked before the first is changed.
#pragma once
#include "core/base/ids.h"
#include "core/transport/device.h"

namespace weft {

// Whether dealloc_pd would be refused: a key, a queue pair, a shared queue or an address handle is in it.
bool is_used(const Engine& engine, PdId pd);
// Whether destroy_cq would be refused: a queue pair reports to it.
bool is_used(const Engine& engine, CqId cq);
// Arms the queue as if it had not been armed before: the event of an earlier arming came from another Device.
Outcome<void> arm_anew(Device& device, CqId cq, bool solicited_only);

}  // namespace weft
