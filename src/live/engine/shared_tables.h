// What all shards of a process share: the records of protection domains, keys and completion queues, and
// whose turn it is when a shard is chosen. Each of these objects is in the Device of every shard, under the
// same number (docs/ARCHITECTURE.md#shards).
//
// The records are read under the ownership of any shard, so a packet or a posting takes no other lock than
// its own shard's. They change under the ownership of all (OwnedEverywhere); the channels under the first's.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/transport/config.h"
#include "live/engine/event_queue.h"
#include "live/engine/records.h"

namespace weft::live {

// A set of shards is a mask, and each has its own slot of the address.
inline constexpr std::uint32_t kMostShards = 16;

struct SharedTables {
  explicit SharedTables(const DeviceConfig& config)
      : cqs(config.max_cq), mrs(config.max_mr), window_owners(config.max_mr), pd_owners(config.max_pd) {}

  std::vector<std::unique_ptr<CqRecord>> cqs;  // by CqId
  std::vector<MrRecord> mrs;                   // by region
  std::vector<const Context*> window_owners;   // by index, as regions
  std::vector<const Context*> pd_owners;
  std::vector<std::unique_ptr<CompletionChannel>> channels;

  // Who is next, of queue pairs that nobody has a wish for, and of thread domains.
  std::atomic<std::uint32_t> next_object{0};
  std::atomic<std::uint32_t> next_thread_domain{0};
};

}  // namespace weft::live
