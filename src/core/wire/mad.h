// Management datagrams (docs/protocol/connection-manager.md, modes.md#capability-discovery): the messages of
// the connection manager and of capability discovery. All are 256 bytes in a UD SEND Only to queue pair 1.
//
//   0          24                                   256
//   | header   | body of 232 bytes                  |
//
// Which field of a message lies where is said once, by the rows of mad.cc; encode and decode both walk them.
// Total functions: any 256 bytes give a message or a reason, nothing is read or written outside them. What a
// message has no field for is zero after decode and ignored by encode; alternate paths are not kept
// (migration is not supported).
//
// No length of private data is on the wire: the receiver sees the whole field, zeros behind what was sent.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/seq.h"
#include "core/wire/header.h"
#include "core/wire/packet.h"

namespace weft::wire {

inline constexpr std::size_t kMadBytes = 256;
inline constexpr std::size_t kMadHeaderBytes = 24;
using Mad = std::array<std::uint8_t, kMadBytes>;

inline constexpr Qpn kGeneralServices{1};                  // the queue pair of all of these
inline constexpr std::uint32_t kGeneralKey = 0x8001'0000;  // its Q_Key

// mad_packet: the header of a packet that carries a MAD. carries_mad: whether a received packet carries one.
Header mad_packet(WirePsn psn);
bool carries_mad(const Header& h, std::uint32_t payload);

enum class MadError : std::uint8_t {
  kLength,   // not 256 bytes
  kClass,    // another management class, or a version of it that weft does not speak
  kMethod,   // not a message of this class
  kMessage,  // an attribute that weft does not speak, such as LAP and APR
};

// --- the connection manager ----------------------------------------------------------------------

enum class CmKind : std::uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
};

// Reasons of a REJ (docs/protocol/connection-manager.md#reasons) that weft sends or acts upon.
enum : std::uint16_t {
  kRejNoResources = 3,
  kRejTimeout = 4,
  kRejUnsupported = 5,
  kRejInvalidCommId = 6,
  kRejInvalidServiceId = 8,
  kRejInvalidTransport = 9,
  kRejStaleConnection = 10,
  kRejInvalidMtu = 26,
  kRejConsumer = 28,
};

// SIDR_REP.
enum : std::uint8_t {
  kSidrSuccess = 0,
  kSidrUnsupported = 1,  // nobody listens
  kSidrRejected = 2,
  kSidrNoQp = 3,
};

// "Message MRAed" and "message rejected".
enum : std::uint8_t { kAboutReq = 0, kAboutRep = 1, kAboutOther = 2 };

// REQ.transport.
enum : std::uint8_t { kTransportRc = 0, kTransportUc = 1 };

struct CmMessage {
  CmKind kind = CmKind::kReq;
  std::uint64_t transaction = 0;
  std::uint32_t modifier = 0;  // ECE options, with vendor_id

  std::uint32_t local_id = 0;   // the sender's; SIDR: the request id
  std::uint32_t remote_id = 0;  // the receiver's
  std::uint32_t vendor_id = 0;  // ECE, 24 bits
  std::uint64_t service_id = 0;
  std::uint64_t ca_guid = 0;
  std::uint32_t qkey = 0;
  Qpn qpn{};                             // the sender's queue pair; DREQ: the receiver's
  WirePsn starting_psn{};                // what the receiver of this message will send with
  std::uint8_t responder_resources = 0;  // READs and atomics that the sender accepts
  std::uint8_t initiator_depth = 0;      // READs and atomics that the sender will issue
  std::uint8_t flow_control = 0;         // end-to-end credits
  std::uint8_t rnr_retry = 0;
  std::uint8_t srq = 0;

  // REQ alone. Time-outs are codes: 4.096 us x 2^code.
  std::uint8_t remote_response_timeout = 0;  // how long the receiver may take to answer
  std::uint8_t local_response_timeout = 0;   // how long the sender takes
  std::uint8_t transport = 0;
  std::uint8_t extended_transport = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t max_cm_retries = 0;
  std::uint8_t mtu = 0;  // 1 to 5: 256 to 4096
  std::uint16_t pkey = 0;
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  Address local_gid;
  Address remote_gid;
  std::uint32_t flow_label = 0;
  std::uint8_t packet_rate = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  std::uint8_t subnet_local = 0;
  std::uint8_t ack_timeout = 0;

  // REP alone.
  std::uint8_t target_ack_delay = 0;
  std::uint8_t failover = 0;

  // MRA and REJ: which message; MRA: how long it will take; REJ and SIDR_REP: why.
  std::uint8_t about = 0;
  std::uint8_t service_timeout = 0;
  std::uint16_t reason = 0;  // REJ reason or SIDR status
  std::uint8_t info_length = 0;
  std::array<std::uint8_t, 72> info{};

  std::array<std::uint8_t, kMadBytes - kMadHeaderBytes> private_data{};

  bool operator==(const CmMessage&) const = default;
};

// How many bytes of private_data a message carries.
std::size_t private_bytes(CmKind kind);
std::string_view cm_name(CmKind kind);

bool decode(std::span<const std::uint8_t> bytes, CmMessage& out, MadError& error);
void encode(const CmMessage& m, Mad& out);

// --- RDMA-CM: service ids, and the addresses in front of a REQ's or SIDR_REQ's private data ---------

enum class PortSpace : std::uint16_t { kIpoib = 0x0002, kTcp = 0x0106, kUdp = 0x0111, kIb = 0x013F };

constexpr std::uint64_t service_id(PortSpace space, std::uint16_t port) {
  return (static_cast<std::uint64_t>(space) << 16U) | port;
}

struct AddressHeader {
  std::uint16_t source_port = 0;
  Address source;
  Address destination;
  bool operator==(const AddressHeader&) const = default;
};
inline constexpr std::size_t kAddressHeaderBytes = 36;

// False when the bytes are too few or no version 0 header of IPv4 or IPv6.
bool read_address_header(std::span<const std::uint8_t> private_data, AddressHeader& out);
// IPv4 when both addresses are v4-mapped. `out` must hold kAddressHeaderBytes.
void write_address_header(const AddressHeader& h, std::span<std::uint8_t> out);

// --- modes, as REQ and REP negotiate them (docs/protocol/modes.md#negotiation) ---------------------

inline constexpr std::uint32_t kEceVendor = 0x02'5253;

struct EceOptions {
  bool irn = false;
  bool srnic = false;
  bool ecn_echo = false;
  bool dctcp = false;
  bool dcqcn = false;
  std::uint8_t window_log2 = 0;  // largest window in packets
  bool operator==(const EceOptions&) const = default;
};
std::uint32_t encode_ece(const EceOptions& o);
// Nothing offered when the vendor or the version is another.
EceOptions decode_ece(std::uint32_t vendor_id, std::uint32_t options);

// --- datagrams of weft's vendor class: discovery, and what boxes on the path say to each other -----

enum : std::uint8_t { kMethodGet = 0x01, kMethodSend = 0x03, kMethodGetResponse = 0x81 };

struct VendorHeader {
  std::uint8_t method = kMethodSend;
  std::uint16_t status = 0;
  std::uint64_t transaction = 0;
  std::uint16_t attribute = 0;
};
// False: of another class, or of another vendor.
bool decode(std::span<const std::uint8_t> bytes, VendorHeader& out, MadError& error);
void encode(const VendorHeader& h, Mad& out);  // zeros behind it

// --- CAP_QUERY and CAP_REPLY (docs/protocol/modes.md#capability-discovery) -------------------------

enum : std::uint8_t { kCapElideIcrc = 0x01 };  // Capability::flags
constexpr std::uint16_t mode_bit(Mode m) {
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(m));
}
inline constexpr std::uint16_t kAllModes = (1U << kModeCount) - 1U;

struct Capability {
  bool reply = false;
  std::uint16_t status = 0;       // replies: not zero means that the sender does not speak
  std::uint64_t transaction = 0;  // top byte: the asker's process slot
  std::uint8_t version = 1;
  std::uint8_t flags = 0;
  std::uint16_t modes = 0;  // mode_bit of each one spoken
  Qpn target{};             // the queue pair asked about
  std::uint64_t instance = 0;
  std::uint32_t buffer_share = 0;  // bytes of receive buffer for the path
  std::uint16_t bdp_cap = 0;       // packets; 0: compute
  std::uint16_t mtu = 0;           // bytes
  std::array<std::uint8_t, 16> host_id{};
  bool operator==(const Capability&) const = default;
};

// A reply with an error status decodes whatever else it holds: a host that does not know the class mirrors
// it.
bool decode(std::span<const std::uint8_t> bytes, Capability& out, MadError& error);
void encode(const Capability& c, Mad& out);

}  // namespace weft::wire
