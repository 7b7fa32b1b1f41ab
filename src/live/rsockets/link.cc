#include "live/rsockets/link.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace weft::live::rsockets {
namespace {

// Messages of control come without credit: four at a time, and one more for each half of the ring and of the
// credits that we give back. The peer repeats what finds no receive.
constexpr std::uint32_t kReceivesBeside = 16;
constexpr std::uint32_t kReceiveBatch = 32;

[[noreturn]] void give_up() { throw std::system_error(errno != 0 ? errno : ENOMEM, std::generic_category()); }

void never_block(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

constexpr std::size_t shared_bytes(const Sizes& s) {
  return kTargets * sizeof(Target) + std::size_t{s.maps} * sizeof(Map);
}

}  // namespace

// --- identifiers and their events ---

CmHandle::CmHandle(rdma_port_space space) : channel_(rdma_create_event_channel()) {
  if (channel_ == nullptr) give_up();
  never_block(channel_->fd);
  if (rdma_create_id(channel_, &id_, nullptr, space) != 0) {
    const int failed = errno;
    rdma_destroy_event_channel(channel_);
    errno = failed;
    give_up();
  }
}

CmHandle::CmHandle(rdma_cm_id* request) : channel_(rdma_create_event_channel()), id_(request) {
  if (channel_ == nullptr) give_up();
  never_block(channel_->fd);
  if (rdma_migrate_id(request, channel_) != 0) {
    const int failed = errno;
    rdma_destroy_event_channel(channel_);
    errno = failed;
    give_up();
  }
}

CmHandle::~CmHandle() {
  rdma_destroy_id(id_);
  rdma_destroy_event_channel(channel_);
}

rdma_cm_event* CmHandle::next() const {
  rdma_cm_event* event = nullptr;
  return rdma_get_cm_event(channel_, &event) == 0 ? event : nullptr;
}

// --- completions ---

Completions::Completions(ibv_context* verbs, int entries) : channel_(ibv_create_comp_channel(verbs)) {
  if (channel_ == nullptr) give_up();
  never_block(channel_->fd);
  queue_ = ibv_create_cq(verbs, entries, nullptr, channel_, 0);
  if (queue_ == nullptr) {
    const int failed = errno;
    ibv_destroy_comp_channel(channel_);
    errno = failed;
    give_up();
  }
}

Completions::~Completions() {
  ibv_destroy_cq(queue_);
  ibv_destroy_comp_channel(channel_);
}

void Completions::arm() const {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  ibv_req_notify_cq(queue_, 0);
}

Region registered(ibv_pd* pd, void* at, std::size_t length, int access) {
  Region region(ibv_reg_mr(pd, at, length, access));
  if (region == nullptr) give_up();
  return region;
}

// --- a stream's queue pair ---

Link::Link(rdma_cm_id* id, const Sizes& sizes)
    : id_(id),
      sizes_(sizes),
      ring_(std::make_unique<std::uint8_t[]>(sizes.receive_bytes)),
      out_(std::make_unique<std::uint8_t[]>(sizes.send_bytes + kControlSlots * sizeof(Target))),
      shared_(std::make_unique<std::uint8_t[]>(shared_bytes(sizes))),
      completions_(id->verbs, static_cast<int>(sizes.sends + sizes.receives + kReceivesBeside)) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = completions_.queue();
  init.sq_sig_all = 1;
  init.cap = {sizes.sends, sizes.receives + kReceivesBeside, 2, 1, sizes.inline_bytes};
  if (rdma_create_qp(id, nullptr, &init) != 0) give_up();
  try {
    constexpr int kOurs = IBV_ACCESS_LOCAL_WRITE;
    constexpr int kPeers = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    ring_region_ = registered(id->pd, ring_.get(), sizes.receive_bytes, kPeers);
    out_region_ = registered(id->pd, out_.get(), sizes.send_bytes + kControlSlots * sizeof(Target), kOurs);
    shared_region_ = registered(id->pd, shared_.get(), shared_bytes(sizes), kPeers);
    if (post_receives(sizes.receives + kReceivesBeside) != 0) give_up();
  } catch (...) {
    rdma_destroy_qp(id);
    throw;
  }
}

Link::~Link() { rdma_destroy_qp(id_); }

Offer Link::offer() const {
  Offer o;
  o.credits = sizes_.receives;
  o.maps = sizes_.maps;
  o.targets = kTargets;
  o.targets_at = address_of(shared_.get());
  o.targets_key = shared_region_->rkey;
  o.first = {address_of(ring_.get()), ring_region_->rkey, sizes_.receive_bytes / 2};
  return o;
}

Target Link::take_target(std::uint32_t index) {
  return rsockets::take_target(shared_.get() + index * sizeof(Target));
}

Map Link::map(std::uint32_t index) const {
  return load<Map>(shared_.get(), kTargets * sizeof(Target) + index * sizeof(Map));
}

int Link::post_receives(std::uint32_t count) const {
  ibv_recv_wr list[kReceiveBatch] = {};
  for (std::uint32_t i = 0; i < kReceiveBatch; ++i) {
    list[i].wr_id = posted(Posted::kReceive, 0);
    list[i].next = i + 1 < kReceiveBatch ? &list[i + 1] : nullptr;
  }
  while (count != 0) {
    const std::uint32_t now = std::min(count, kReceiveBatch);
    list[now - 1].next = nullptr;
    ibv_recv_wr* bad = nullptr;
    if (const int failed = ibv_post_recv(id_->qp, list, &bad); failed != 0) return failed;
    count -= now;
  }
  return 0;
}

int Link::post(ibv_send_wr& request) const {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(id_->qp, &request, &bad);
}

int Link::post_piece(const Outbox::Piece& piece, ibv_send_wr& request) const {
  const std::uint32_t first = std::min(piece.length, sizes_.send_bytes - piece.offset);
  ibv_sge parts[2] = {{address_of(out_.get() + piece.offset), first, out_region_->lkey},
                      {address_of(out_.get()), piece.length - first, out_region_->lkey}};
  request.sg_list = parts;
  request.num_sge = first < piece.length ? 2 : 1;
  request.send_flags = piece.length <= sizes_.inline_bytes ? unsigned{IBV_SEND_INLINE} : 0U;
  return post(request);
}

int Link::post_data(const Outbox::Piece& piece) const {
  ibv_send_wr w{};
  w.wr_id = posted(Posted::kData, piece.length);
  w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  w.imm_data = htonl(message(Kind::kData, piece.length));
  w.wr.rdma = {piece.to.address, piece.to.key};
  return post_piece(piece, w);
}

int Link::post_direct(const Outbox::Piece& piece, std::uint64_t to, std::uint32_t key) const {
  ibv_send_wr w{};
  w.wr_id = posted(Posted::kDirect, piece.length);
  w.opcode = IBV_WR_RDMA_WRITE;
  w.wr.rdma = {to, key};
  return post_piece(piece, w);
}

int Link::post_map(const Outbox::Piece& piece, std::uint32_t index, std::uint64_t to,
                   std::uint32_t key) const {
  ibv_send_wr w{};
  w.wr_id = posted(Posted::kMap, piece.length);
  w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  w.imm_data = htonl(message(Kind::kMap, index));
  w.wr.rdma = {to, key};
  return post_piece(piece, w);
}

int Link::post_control(std::uint32_t said, Posted as) const {
  ibv_send_wr w{};
  w.wr_id = posted(as, 0);
  w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  w.imm_data = htonl(said);
  return post(w);
}

int Link::post_credit(std::uint32_t said, std::uint32_t slot, const Target* target, std::uint64_t to,
                      std::uint32_t key) const {
  if (target == nullptr) return post_control(said, Posted::kControl);
  std::uint8_t* const at = out_.get() + sizes_.send_bytes + slot * sizeof(Target);
  store(at, 0, *target);
  ibv_sge part{address_of(at), sizeof(Target), out_region_->lkey};
  ibv_send_wr w{};
  w.wr_id = posted(Posted::kControl, 0);
  w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  w.imm_data = htonl(said);
  w.sg_list = &part;
  w.num_sge = 1;
  w.wr.rdma = {to, key};
  return post(w);
}

}  // namespace weft::live::rsockets
