// Small values that cross the connection manager's interface.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/base/seq.h"
#include "core/base/units.h"
#include "core/verbs/types.h"
#include "core/wire/mad.h"

namespace weft::cm {

// One end of a connection, or one SIDR exchange: its communication id, as on the wire.
using ConnId = Id<struct ConnTag, std::uint32_t>;
using ListenerId = Id<struct ListenerTag, std::uint32_t>;

struct ListenAttr {
  wire::PortSpace space = wire::PortSpace::kTcp;  // kUdp listens for SIDR, all others for connections
  std::uint16_t port = 0;
  wire::Address local;          // all zero: any
  std::uint32_t backlog = 128;  // requests that wait for their answer
};

// The most private data of a program in each message, less RDMA-CM's header if any; longer is an error.
inline constexpr std::size_t kConnectPrivate = 56;
inline constexpr std::size_t kAcceptPrivate = 196;
inline constexpr std::size_t kRejectPrivate = 148;
inline constexpr std::size_t kResolvePrivate = 180;
inline constexpr std::size_t kAnswerPrivate = 136;

struct ConnectAttr {
  wire::Address local;
  wire::Address peer;
  wire::PortSpace space = wire::PortSpace::kTcp;
  std::uint16_t local_port = 0;
  std::uint16_t port = 0;
  QpType type = QpType::kRc;  // or kUc
  Qpn qpn{};
  std::uint32_t mtu = 1024;              // one of the five of verbs
  std::uint8_t responder_resources = 1;  // READs and atomics accepted from the peer
  std::uint8_t initiator_depth = 1;      // and sent to it
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t ack_timeout = 0;  // code of the queue pairs' time-out; 0: from CmConfig
  std::uint8_t tos = 0;          // of the connection's packets
  bool flow_control = false;
  bool srq = false;
  std::span<const std::uint8_t> private_data;
};

struct AcceptAttr {
  Qpn qpn{};
  std::uint8_t responder_resources = 1;
  std::uint8_t initiator_depth = 1;
  std::uint8_t rnr_retry = 7;
  bool flow_control = false;
  bool srq = false;
  std::span<const std::uint8_t> private_data;
};

// SIDR: who serves this port of the UDP space, and under which Q_Key.
struct ResolveAttr {
  wire::Address local;
  wire::Address peer;
  std::uint16_t local_port = 0;
  std::uint16_t port = 0;
  std::span<const std::uint8_t> private_data;
};

struct AnswerAttr {
  std::uint8_t status = wire::kSidrSuccess;
  Qpn qpn{};
  std::uint32_t qkey = 0;
  std::span<const std::uint8_t> private_data;
};

// What became known about a connection. Depths are seen from here: what this side accepts and may issue.
struct ConnInfo {
  wire::PortSpace space = wire::PortSpace::kTcp;
  wire::Address local;
  wire::Address peer;
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
  QpType type = QpType::kRc;
  Qpn qpn{};
  Qpn peer_qpn{};
  std::uint32_t qkey = 0;  // SIDR: of peer_qpn
  WirePsn rq_psn{};
  WirePsn sq_psn{};
  std::uint32_t mtu = 1024;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;       // ours, as the peer asked
  std::uint8_t peer_rnr_retry = 0;  // as we asked; 7 is for ever
  std::uint8_t ack_timeout = 0;
  std::uint8_t tos = 0;
  bool flow_control = false;
  bool srq = false;  // the peer's queue pair draws from a shared receive queue
  wire::Mode mode = wire::Mode::kRoce;
  wire::EceOptions options;  // agreed
};

// In the order in which one connection can raise them. Its last event is kRejected, kUnreachable,
// kTimewaitExit, kResolved or kRefused; polling that one frees the ConnId.
enum class CmEventKind : std::uint8_t {
  kConnectRequest,   // passive: accept or reject
  kConnectResponse,  // active: take the queue pair to RTS, then establish, or reject
  kEstablished,
  kRejected,  // `reason` is the REJ's
  kUnreachable,
  kDisconnected,
  kTimewaitExit,    // the queue pair's number may be used again
  kResolveRequest,  // SIDR, passive: answer
  kResolved,        // SIDR, active: info.peer_qpn and info.qkey
  kRefused,         // SIDR, active: `reason` is the status
};
inline constexpr unsigned kEventKinds = 10;

struct CmEvent {
  CmEventKind kind = CmEventKind::kConnectRequest;
  ConnId conn{};
  ListenerId listener{};  // requests
  std::uint16_t reason = 0;
  ConnInfo info;
  std::uint32_t private_length = 0;  // the whole field, without RDMA-CM's header; 0 when the event has none
  std::array<std::uint8_t, kAcceptPrivate> private_data{};
};

// The next step of a queue pair of a connection, for modify_qp. The world fills in attr.path.
struct QpSetup {
  QpAttr attr;
  std::uint32_t mask = 0;
};

// The addresses of a MAD's packet.
struct MadFacts {
  wire::Address source;
  wire::Address destination;
};

struct MadOut {
  MadFacts facts;
  wire::Mad mad{};
};

struct CmCounters {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t repeated = 0;    // sent again after a time-out
  std::uint64_t duplicates = 0;  // received again
  std::uint64_t strays = 0;      // for no connection of ours, or not from the address of its peer
  std::uint64_t refused = 0;     // requests answered by the manager itself: nobody listens, table full, …
  std::uint64_t early = 0;       // dropped before CmConfig::refuse_from
  std::uint64_t overflow = 0;    // answers that found no room; the peer asks again
};

}  // namespace weft::cm
