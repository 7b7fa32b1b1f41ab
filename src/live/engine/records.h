// What the engine keeps about each resource beside the Device's own state: the handles that context.h
// shows, extended. Owned by the Nic's tables; `owner` is the context that created it and closes it.
#pragma once
#include <atomic>
#include <memory>

#include "live/engine/context.h"

namespace weft::live {

struct CqRecord : Cq {
  // Of several shards: those whose queue pairs report here, which one a poll begins with, and what the
  // program wants to be woken for (kWake...), until one shard has woken it.
  std::atomic<std::uint32_t> shards{0};
  std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint8_t> wanted{0};
  const Context* owner = nullptr;
  EventQueue* async = nullptr;    // the owner's
  std::uint32_t taken = 0;        // completion events not yet acknowledged (the channel's lock)
  std::uint32_t async_taken = 0;  // asynchronous events likewise (the owner's queue's lock)
};

struct QpRecord : Qp {
  Nic* nic = nullptr;  // its shard
  const Context* owner = nullptr;
  EventQueue* async = nullptr;
  std::uint32_t async_taken = 0;
  PathId path{};  // UD: of the last datagram posted
  bool has_path = false;
  wire::Mode mode = wire::Mode::kRoce;          // of its requests, as found out with its path
  std::unique_ptr<std::uint8_t[]> inline_area;  // max_send_wr slots of max_inline bytes
};

struct SrqRecord : Srq {
  Nic* nic = nullptr;  // its shard
  const Context* owner = nullptr;
  EventQueue* async = nullptr;
  std::uint32_t async_taken = 0;
};

struct MrRecord {
  Key lkey{};
  const Context* owner = nullptr;
  const void* memory = nullptr;
  std::uint64_t length = 0;
  std::uint8_t access = 0;
};

struct AhRecord {
  const Context* owner = nullptr;
  PathId path{};
};

inline constexpr std::uint8_t kWakeForAny = 1;
inline constexpr std::uint8_t kWakeForSolicited = 2;

inline SrqRecord& record(Srq* srq) { return *static_cast<SrqRecord*>(srq); }
inline CqRecord& record(Cq* cq) { return *static_cast<CqRecord*>(cq); }
inline QpRecord& record(Qp* qp) { return *static_cast<QpRecord*>(qp); }
inline const SrqRecord& record(const Srq* srq) { return *static_cast<const SrqRecord*>(srq); }
inline const QpRecord& record(const Qp* qp) { return *static_cast<const QpRecord*>(qp); }

// The count of taken events that this one adds to.
inline std::uint32_t& taken_of(const AsyncEvent& e) {
  if (e.kind == DeviceEventKind::kCompletion) return record(e.cq).taken;
  if (e.cq != nullptr) return record(e.cq).async_taken;
  return e.srq != nullptr ? record(e.srq).async_taken : record(e.qp).async_taken;
}

}  // namespace weft::live
