// What a Device has, row by row: keys, queues, paths, queue pairs and their rings, and how each is found.
#pragma once
#include <memory>
#include <vector>

#include "core/base/prng.h"
#include "core/transport/completion_queue.h"
#include "core/transport/config.h"
#include "core/transport/counters.h"
#include "core/transport/key_table.h"
#include "core/transport/loss/pool.h"
#include "core/transport/loss/scheme.h"
#include "core/transport/queue_pair.h"
#include "core/transport/sched/paths.h"
#include "core/transport/shared_receive.h"
#include "core/transport/ud/address_handle.h"

namespace weft {

struct Tables {
  explicit Tables(const DeviceConfig& c);

  DeviceConfig config;
  Counters counters;
  Prng random;

  KeyTable keys;
  LossPool pool;
  const LossScheme* schemes[wire::kModeCount] = {};  // what each mode recovers losses with
  std::vector<std::unique_ptr<CompletionQueue>> cqs;
  std::vector<std::unique_ptr<SharedReceiveQueue>> srqs;
  std::vector<bool> pds;
  AddressHandles address_handles;
  std::vector<Path> paths;
  static constexpr std::uint32_t kChunk = 64;  // queue pairs are allocated in chunks
  std::vector<std::unique_ptr<QueuePair[]>> chunks;
  std::vector<std::unique_ptr<ColdQueuePair>> colds;
  std::vector<std::uint32_t> free_qps;
  std::uint32_t qpn_mask = 0;

  QueuePair& qp(std::uint32_t index) { return chunks[index / kChunk][index % kChunk]; }
  std::uint32_t index_of(const QueuePair& q) const { return q.qpn.v & qpn_mask; }
  ColdQueuePair& cold(const QueuePair& q) { return *colds[index_of(q)]; }
  const ColdQueuePair& cold(const QueuePair& q) const { return *colds[index_of(q)]; }
  QueuePair* find(Qpn qpn) {
    const std::uint32_t index = qpn.v & qpn_mask;
    if (index >= colds.size() || chunks[index / kChunk] == nullptr) return nullptr;
    QueuePair& q = qp(index);
    return q.has(kInUse) && q.qpn == qpn ? &q : nullptr;
  }
  // Where a queue pair would be, without touching it: for prefetching.
  QueuePair* peek(Qpn qpn) {
    const std::uint32_t index = qpn.v & qpn_mask;
    if (index >= colds.size() || chunks[index / kChunk] == nullptr) return nullptr;
    return &qp(index);
  }
  SharedReceiveQueue* find_srq(SrqId id) { return id.v < srqs.size() ? srqs[id.v].get() : nullptr; }
  const QueuePair* find(Qpn qpn) const { return const_cast<Tables*>(this)->find(qpn); }
  Path& path_of(const QueuePair& q) { return paths[q.path.v]; }
  const LossScheme& tx_scheme(const QueuePair& q) const { return *schemes[q.tx_mode]; }
  const LossScheme& rx_scheme(const QueuePair& q) const { return *schemes[q.rx_mode]; }
  SendWqe& send_wqe(ColdQueuePair& c, std::uint16_t slot) { return c.sq[slot & c.sq_mask]; }
  const Sge* send_sges(const ColdQueuePair& c, std::uint16_t slot) const {
    return &c.sq_sges[static_cast<std::size_t>(slot & c.sq_mask) * c.init.caps.max_send_sge];
  }
  RecvWqe& recv_wqe(ColdQueuePair& c, std::uint16_t slot) { return c.rq[slot & c.rq_mask]; }
  const Sge* recv_sges(const ColdQueuePair& c, std::uint16_t slot) const {
    return &c.rq_sges[static_cast<std::size_t>(slot & c.rq_mask) * c.init.caps.max_recv_sge];
  }
  static std::uint32_t packets_for(std::uint32_t length, std::uint32_t mtu) {
    return length == 0 ? 1U : (length + mtu - 1U) / mtu;
  }
  // Path bytes of the first k packets of a message of this length.
  std::uint64_t charge(std::uint32_t length, std::uint32_t mtu, std::uint64_t k) const {
    const std::uint64_t payload = k * mtu;
    return (payload < length ? payload : length) + k * config.path_overhead.n;
  }
  bool exhausted(const QueuePair& q) const {
    return q.retries >= cold(q).attr.retry_count && (!config.never_give_up || q.retries == UINT8_MAX);
  }
};

}  // namespace weft
