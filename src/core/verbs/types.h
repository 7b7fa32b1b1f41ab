// The nouns that both worlds share: work requests, completions, attributes. Values of the
// enumerations are those of <infiniband/verbs.h> (docs/protocol/verbs.md), so that the drop-in library
// casts instead of translating; live/abi asserts it.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/base/seq.h"
#include "core/base/units.h"
#include "core/wire/header.h"

namespace weft {

enum class WrOpcode : std::uint8_t {
  kWrite = 0,
  kWriteImm = 1,
  kSend = 2,
  kSendImm = 3,
  kRead = 4,
  kCompareSwap = 5,
  kFetchAdd = 6,
  kLocalInvalidate = 7,
  kBindWindow = 8,
  kSendInvalidate = 9,
};

enum : std::uint8_t {  // SendWr::flags
  kSendFence = 1,
  kSendSignaled = 2,
  kSendSolicited = 4,
  kSendInline = 8,
  kSendAtomicWrite = 16,  // of a WRITE of eight bytes: it leaves when all before it is answered
};

enum : std::uint8_t {  // access rights of a region or a queue pair
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8,
  kMwBind = 16,     // memory windows may be bound to the region
  kZeroBased = 32,  // addresses in it count from its first byte
};

enum : std::uint8_t {  // what ibv_rereg_mr is to change: bits of its mask
  kChangeRange = 1,
  kChangePd = 2,
  kChangeAccess = 4,
};

enum class WcStatus : std::uint8_t {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalQpOperation = 2,
  kLocalProtection = 4,
  kFlushed = 5,
  kBindError = 6,
  kBadResponse = 7,
  kLocalAccess = 8,
  kRemoteInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
};

enum class WcOpcode : std::uint8_t {
  kSend = 0,
  kWrite = 1,
  kRead = 2,
  kCompareSwap = 3,
  kFetchAdd = 4,
  kBindWindow = 5,
  kLocalInvalidate = 6,
  kAtomicWrite = 9,
  kReceive = 128,
  kReceiveWriteImm = 129,
};

enum : std::uint8_t {
  kWcGrh = 1,
  kWcWithImm = 2,
  kWcWithInvalidate = 8,
  kWcOverIpv6 = 128
};  // Completion::flags

struct Sge {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  Key lkey{};
};

enum class WindowType : std::uint8_t { k1 = 1, k2 = 2 };

// Opens part of a region to remote use under the window's key. The poster chooses the key's low eight bits.
struct WindowBind {
  Key window{};
  Key region{};
  std::uint64_t address = 0;
  std::uint64_t length = 0;  // 0: a type 1 window gives its rights up
  std::uint8_t access = 0;
};

struct SendWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sges;  // with kSendInline: lengths count, keys do not
  WrOpcode opcode = WrOpcode::kSend;
  std::uint8_t flags = 0;
  std::uint32_t imm = 0;  // immediate, as on the wire; or the key to invalidate
  std::uint64_t remote_address = 0;
  Key rkey{};
  std::uint64_t compare_or_add = 0;
  std::uint64_t swap = 0;
  WindowBind bind;  // kBindWindow
  // UD: the destination and its Q_Key. A Q_Key whose top bit is set stands for the sending queue pair's own.
  AhId ah{};
  Qpn remote_qpn{};
  std::uint32_t remote_qkey = 0;
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sges;
};

struct Completion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  std::uint8_t flags = 0;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;
  Qpn qpn{};
  Qpn src_qp{};
};

enum class QpType : std::uint8_t { kRc = 2, kUc = 3, kUd = 4 };
enum class QpState : std::uint8_t { kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kSqd = 4, kSqe = 5, kErr = 6 };

struct QpCaps {
  std::uint32_t max_send_wr = 16;
  std::uint32_t max_recv_wr = 16;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t max_inline = 0;
};

struct QpInit {
  QpType type = QpType::kRc;
  PdId pd{};
  CqId send_cq{};
  CqId recv_cq{};
  QpCaps caps;
  bool signal_all = false;
  SrqId srq = kNoSrq;  // then the queue pair has no receive queue of its own
};

struct SrqCaps {
  std::uint32_t max_wr = 16;
  std::uint32_t max_sge = 1;
  std::uint32_t limit = 0;  // raise kSrqLimit once when fewer are left; 0 never
};

enum : std::uint32_t {  // attribute bits, docs/protocol/verbs.md#attributes
  kAttrState = 1U << 0U,
  kAttrCurrentState = 1U << 1U,
  kAttrSqdNotify = 1U << 2U,
  kAttrAccess = 1U << 3U,
  kAttrPkeyIndex = 1U << 4U,
  kAttrPort = 1U << 5U,
  kAttrQkey = 1U << 6U,
  kAttrPath = 1U << 7U,
  kAttrMtu = 1U << 8U,
  kAttrTimeout = 1U << 9U,
  kAttrRetryCount = 1U << 10U,
  kAttrRnrRetry = 1U << 11U,
  kAttrRqPsn = 1U << 12U,
  kAttrMaxRdAtomic = 1U << 13U,
  kAttrAltPath = 1U << 14U,
  kAttrMinRnrTimer = 1U << 15U,
  kAttrSqPsn = 1U << 16U,
  kAttrMaxDestRdAtomic = 1U << 17U,
  kAttrPathMigState = 1U << 18U,
  kAttrCap = 1U << 19U,
  kAttrDestQpn = 1U << 20U,
};

inline constexpr std::uint8_t kDefaultController = 0xFF;  // the device's

struct QpAttr {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  wire::Mode mode = wire::Mode::kRoce;           // our own: the requester's half-connection; fixed at RTS
  std::uint8_t controller = kDefaultController;  // row of controllers(); taken at RTR and RTS, like the mode
  std::uint32_t mtu = 1024;                      // bytes, any multiple of 4 from 256 to 4096
  std::uint32_t qkey = 0;
  WirePsn rq_psn{};
  WirePsn sq_psn{};
  Qpn dest_qpn{};
  PathId path{};
  std::uint8_t service_level = 0;  // 0 to 15, part of the path's vector: weight or priority of its turns
  std::uint8_t access = 0;
  std::uint8_t max_rd_atomic = 1;
  std::uint8_t max_dest_rd_atomic = 1;
  std::uint8_t min_rnr_timer = 12;  // code, docs/protocol/constants.md#receiver-not-ready-delays
  std::uint8_t timeout = 14;        // 4.096 us x 2^timeout; 0 never
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;  // 7: no limit
  bool sqd_notify = false;     // kAttrSqdNotify: raise kSqDrained
  bool sq_draining = false;    // query only
};

enum class DeviceEventKind : std::uint8_t {
  kCompletion,  // an armed completion queue has an entry
  kCqError,
  kQpFatal,
  kQpRequestError,
  kQpAccessError,
  kCommEstablished,
  kSqDrained,
  kSrqLimit,        // a shared receive queue fell below its limit
  kLastWqeReached,  // a failed queue pair holds no more receives of its shared queue
};

struct DeviceEvent {
  DeviceEventKind kind = DeviceEventKind::kCompletion;
  CqId cq{};
  Qpn qpn = kNoQpn;
  SrqId srq = kNoSrq;
};

}  // namespace weft
