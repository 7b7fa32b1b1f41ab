// The rows: one per field, `row(member, byte, bit, width, shift)`. `byte` counts from the start of the part
// that holds the field (MAD header or body), `bit` from that byte's most significant bit; `shift` says which
// bits of the member these are, for the one number that lies in pieces (vendor_id). Fields up to 64 bits.
//
// The same function lists a message's rows for reading and for writing: Reader stores into the member what it
// finds, Writer does the reverse. Offsets are those of docs/protocol/connection-manager.md and modes.md.
#include "core/wire/mad.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/bytes.h"

namespace weft::wire {
namespace {

constexpr std::uint8_t kBaseVersion = 1;
constexpr std::uint8_t kClassCm = 0x07;
constexpr std::uint8_t kClassVendor = 0x30;  // a vendor class of the range that names its OUI
constexpr std::uint16_t kAttributeCapability = 0xFF10;
constexpr std::uint8_t kVersionCm = 2;
constexpr std::uint8_t kVersionVendor = 1;
constexpr std::size_t kVendorOui = 37;

constexpr std::uint64_t ones(unsigned width) { return width == 64 ? ~0ULL : (1ULL << width) - 1U; }
constexpr unsigned bytes_of(unsigned bit, unsigned width) { return (bit + width + 7U) / 8U; }

std::uint64_t number(std::uint64_t v) { return v; }
std::uint64_t number(Qpn v) { return v.v; }
std::uint64_t number(WirePsn v) { return v.v; }
std::uint64_t number(CmKind v) { return static_cast<std::uint64_t>(v); }
template <class T>
void assign(T& member, std::uint64_t v) {
  member = static_cast<T>(v);
}
void assign(Qpn& member, std::uint64_t v) { member = {static_cast<std::uint32_t>(v)}; }
void assign(WirePsn& member, std::uint64_t v) { member = {static_cast<std::uint32_t>(v)}; }

struct Reader {
  const std::uint8_t* at;
  template <class T>
  void operator()(T& member, unsigned byte, unsigned bit, unsigned width, unsigned shift = 0) const {
    const unsigned n = bytes_of(bit, width);
    std::uint64_t v = 0;
    for (unsigned i = 0; i < n; ++i) v = (v << 8U) | at[byte + i];
    v = (v >> (n * 8 - bit - width)) & ones(width);
    assign(member, (number(member) & ~(ones(width) << shift)) | (v << shift));
  }
  template <std::size_t N>
  void bytes(std::array<std::uint8_t, N>& member, unsigned byte, std::size_t size) const {
    std::copy_n(at + byte, size, member.begin());
  }
};

struct Writer {
  std::uint8_t* at;  // zeros before the first row
  template <class T>
  void operator()(const T& member, unsigned byte, unsigned bit, unsigned width, unsigned shift = 0) const {
    const unsigned n = bytes_of(bit, width);
    std::uint64_t v = ((number(member) >> shift) & ones(width)) << (n * 8 - bit - width);
    for (unsigned i = n; i-- > 0; v >>= 8U) at[byte + i] |= static_cast<std::uint8_t>(v);
  }
  template <std::size_t N>
  void bytes(const std::array<std::uint8_t, N>& member, unsigned byte, std::size_t size) const {
    std::copy_n(member.begin(), size, at + byte);
  }
};

struct MadHeader {
  std::uint8_t base_version = kBaseVersion;
  std::uint8_t management_class = 0;
  std::uint8_t class_version = 0;
  std::uint8_t method = 0;
  std::uint16_t status = 0;
  std::uint64_t transaction = 0;
  std::uint16_t attribute = 0;
  std::uint32_t modifier = 0;
};

template <class H, class Row>
void header_rows(H& h, const Row& row) {
  row(h.base_version, 0, 0, 8);
  row(h.management_class, 1, 0, 8);
  row(h.class_version, 2, 0, 8);
  row(h.method, 3, 0, 8);
  row(h.status, 4, 0, 16);
  row(h.transaction, 8, 0, 64);
  row(h.attribute, 16, 0, 16);
  row(h.modifier, 20, 0, 32);
}

template <class M, class Row>
void req_rows(M& m, const Row& row) {
  row(m.local_id, 0, 0, 32);
  row(m.vendor_id, 5, 0, 24);
  row(m.service_id, 8, 0, 64);
  row(m.ca_guid, 16, 0, 64);
  row(m.qkey, 28, 0, 32);
  row(m.qpn, 32, 0, 24);
  row(m.responder_resources, 35, 0, 8);
  row(m.initiator_depth, 39, 0, 8);
  row(m.remote_response_timeout, 43, 0, 5);
  row(m.transport, 43, 5, 2);
  row(m.flow_control, 43, 7, 1);
  row(m.starting_psn, 44, 0, 24);
  row(m.local_response_timeout, 47, 0, 5);
  row(m.retry_count, 47, 5, 3);
  row(m.pkey, 48, 0, 16);
  row(m.mtu, 50, 0, 4);
  row(m.rnr_retry, 50, 5, 3);
  row(m.max_cm_retries, 51, 0, 4);
  row(m.srq, 51, 4, 1);
  row(m.extended_transport, 51, 5, 3);
  row(m.local_lid, 52, 0, 16);
  row(m.remote_lid, 54, 0, 16);
  row.bytes(m.local_gid.bytes, 56, 16);
  row.bytes(m.remote_gid.bytes, 72, 16);
  row(m.flow_label, 88, 0, 20);
  row(m.packet_rate, 91, 2, 6);
  row(m.traffic_class, 92, 0, 8);
  row(m.hop_limit, 93, 0, 8);
  row(m.service_level, 94, 0, 4);
  row(m.subnet_local, 94, 4, 1);
  row(m.ack_timeout, 95, 0, 5);
}

template <class M, class Row>
void rep_rows(M& m, const Row& row) {
  row(m.qkey, 8, 0, 32);
  row(m.qpn, 12, 0, 24);
  row(m.vendor_id, 15, 0, 8, 16);
  row(m.vendor_id, 19, 0, 8, 8);
  row(m.starting_psn, 20, 0, 24);
  row(m.vendor_id, 23, 0, 8, 0);
  row(m.responder_resources, 24, 0, 8);
  row(m.initiator_depth, 25, 0, 8);
  row(m.target_ack_delay, 26, 0, 5);
  row(m.failover, 26, 5, 2);
  row(m.flow_control, 26, 7, 1);
  row(m.rnr_retry, 27, 0, 3);
  row(m.srq, 27, 3, 1);
  row(m.ca_guid, 28, 0, 64);
}

template <class M, class Row>
void mra_rows(M& m, const Row& row) {
  row(m.about, 8, 0, 2);
  row(m.service_timeout, 9, 0, 5);
}

template <class M, class Row>
void rej_rows(M& m, const Row& row) {
  row(m.about, 8, 0, 2);
  row(m.info_length, 9, 0, 7);
  row(m.reason, 10, 0, 16);
  row.bytes(m.info, 12, m.info.size());
}

template <class M, class Row>
void dreq_rows(M& m, const Row& row) {
  row(m.qpn, 8, 0, 24);
}

template <class M, class Row>
void sidr_req_rows(M& m, const Row& row) {
  row(m.local_id, 0, 0, 32);
  row(m.pkey, 4, 0, 16);
  row(m.service_id, 8, 0, 64);
}

template <class M, class Row>
void sidr_rep_rows(M& m, const Row& row) {
  row(m.local_id, 0, 0, 32);
  row(m.reason, 4, 0, 8);
  row(m.info_length, 5, 0, 8);
  row(m.vendor_id, 6, 0, 16, 8);
  row(m.qpn, 8, 0, 24);
  row(m.vendor_id, 11, 0, 8, 0);
  row(m.service_id, 12, 0, 64);
  row(m.qkey, 20, 0, 32);
  row.bytes(m.info, 24, m.info.size());
}

// Name and private data of every message: the field reaches from `at` to the end of the body.
struct Kind {
  CmKind kind;
  std::string_view name;
  unsigned at;
};
constexpr unsigned kBodyBytes = kMadBytes - kMadHeaderBytes;
constexpr Kind kKinds[] = {
    {CmKind::kReq, "REQ", 140}, {CmKind::kMra, "MRA", 10},          {CmKind::kRej, "REJ", 84},
    {CmKind::kRep, "REP", 36},  {CmKind::kRtu, "RTU", 8},           {CmKind::kDreq, "DREQ", 12},
    {CmKind::kDrep, "DREP", 8}, {CmKind::kSidrReq, "SIDR_REQ", 16}, {CmKind::kSidrRep, "SIDR_REP", 96},
};

const Kind* find(std::uint64_t attribute) {
  for (const Kind& k : kKinds) {
    if (number(k.kind) == attribute) return &k;
  }
  return nullptr;
}

template <class M, class Row>
void body_rows(M& m, const Row& row) {
  switch (m.kind) {
    case CmKind::kReq:
      req_rows(m, row);
      break;
    case CmKind::kSidrReq:
      sidr_req_rows(m, row);
      break;
    case CmKind::kSidrRep:
      sidr_rep_rows(m, row);
      break;
    default:  // the others begin with both ids
      row(m.local_id, 0, 0, 32);
      row(m.remote_id, 4, 0, 32);
      if (m.kind == CmKind::kRep) rep_rows(m, row);
      if (m.kind == CmKind::kMra) mra_rows(m, row);
      if (m.kind == CmKind::kRej) rej_rows(m, row);
      if (m.kind == CmKind::kDreq) dreq_rows(m, row);
  }
  row.bytes(m.private_data, find(number(m.kind))->at, private_bytes(m.kind));
}

// From the start of the MAD: the vendor header comes first.
template <class C, class Row>
void capability_rows(C& c, const Row& row) {
  row(c.version, 40, 0, 8);
  row(c.flags, 41, 0, 8);
  row(c.modes, 42, 0, 16);
  row(c.target, 45, 0, 24);
  row(c.instance, 48, 0, 64);
  row(c.buffer_share, 56, 0, 32);
  row(c.bdp_cap, 60, 0, 16);
  row(c.mtu, 62, 0, 16);
  row.bytes(c.host_id, 64, c.host_id.size());
}

bool refuse(MadError why, MadError& error) {
  error = why;
  return false;
}

void write_header(const MadHeader& h, Mad& out) {
  out.fill(0);
  header_rows(h, Writer{out.data()});
}

}  // namespace

Header mad_packet(WirePsn psn) {
  Header h;
  h.opcode = kUdSendOnly;
  h.dest_qp = kGeneralServices;
  h.psn = psn;
  h.set_deth(kGeneralKey, kGeneralServices);
  return h;
}

bool carries_mad(const Header& h, std::uint32_t payload) {
  return h.opcode == kUdSendOnly && h.mode == Mode::kRoce && h.dest_qp == kGeneralServices &&
         h.qkey() == kGeneralKey && payload == kMadBytes;
}

std::size_t private_bytes(CmKind kind) {
  const Kind* k = find(number(kind));
  return k == nullptr ? 0 : kBodyBytes - k->at;
}

std::string_view cm_name(CmKind kind) {
  const Kind* k = find(number(kind));
  return k == nullptr ? std::string_view{} : k->name;
}

bool decode(std::span<const std::uint8_t> bytes, CmMessage& out, MadError& error) {
  if (bytes.size() != kMadBytes) return refuse(MadError::kLength, error);
  MadHeader h;
  header_rows(h, Reader{bytes.data()});
  if (h.base_version != kBaseVersion || h.management_class != kClassCm)
    return refuse(MadError::kClass, error);
  if (h.class_version != kVersionCm) return refuse(MadError::kClass, error);
  if (h.method != kMethodSend) return refuse(MadError::kMethod, error);
  if (find(h.attribute) == nullptr) return refuse(MadError::kMessage, error);
  out = {};
  out.kind = static_cast<CmKind>(h.attribute);
  out.transaction = h.transaction;
  out.modifier = h.modifier;
  body_rows(out, Reader{bytes.data() + kMadHeaderBytes});
  return true;
}

void encode(const CmMessage& m, Mad& out) {
  CHECK(find(number(m.kind)) != nullptr);
  write_header({.management_class = kClassCm,
                .class_version = kVersionCm,
                .method = kMethodSend,
                .transaction = m.transaction,
                .attribute = static_cast<std::uint16_t>(m.kind),
                .modifier = m.modifier},
               out);
  body_rows(m, Writer{out.data() + kMadHeaderBytes});
}

bool decode(std::span<const std::uint8_t> bytes, VendorHeader& out, MadError& error) {
  if (bytes.size() != kMadBytes) return refuse(MadError::kLength, error);
  MadHeader h;
  header_rows(h, Reader{bytes.data()});
  if (h.base_version != kBaseVersion || h.management_class != kClassVendor)
    return refuse(MadError::kClass, error);
  if (h.class_version != kVersionVendor || load_be24(bytes.data() + kVendorOui) != kEceVendor)
    return refuse(MadError::kClass, error);
  out = {h.method, h.status, h.transaction, h.attribute};
  return true;
}

void encode(const VendorHeader& h, Mad& out) {
  write_header({.management_class = kClassVendor,
                .class_version = kVersionVendor,
                .method = h.method,
                .status = h.status,
                .transaction = h.transaction,
                .attribute = h.attribute},
               out);
  store_be24(out.data() + kVendorOui, kEceVendor);
}

bool decode(std::span<const std::uint8_t> bytes, Capability& out, MadError& error) {
  VendorHeader h;
  if (!decode(bytes, h, error)) return false;
  if (h.method != kMethodGet && h.method != kMethodGetResponse) return refuse(MadError::kMethod, error);
  if (h.attribute != kAttributeCapability) return refuse(MadError::kMessage, error);
  out = {};
  out.reply = h.method == kMethodGetResponse;
  out.status = h.status;
  out.transaction = h.transaction;
  capability_rows(out, Reader{bytes.data()});
  return true;
}

void encode(const Capability& c, Mad& out) {
  encode(
      VendorHeader{c.reply ? kMethodGetResponse : kMethodGet, c.status, c.transaction, kAttributeCapability},
      out);
  capability_rows(c, Writer{out.data()});
}

}  // namespace weft::wire
