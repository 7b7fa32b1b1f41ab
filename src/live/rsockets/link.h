// The verbs objects of one stream: identifier, completion queue, queue pair, registered memory, and what is
// posted there. It knows no credits; what may be posted is the stream's to ask Inbox and Outbox.
//
//   ring     the peer writes data there                        (Inbox)
//   out      data on its way, then four messages of control     (Outbox)
//   shared   two targets, then the table of maps: the peer writes there
#pragma once
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>

#include "live/rsockets/outbox.h"
#include "live/rsockets/wire.h"

namespace weft::live::rsockets {

// What options choose (rsocket(7)); the defaults are its, too.
struct Sizes {
  std::uint32_t send_bytes = 1U << 17U;
  std::uint32_t receive_bytes = 1U << 17U;
  std::uint16_t sends = 384;
  std::uint16_t receives = 384;
  std::uint32_t inline_bytes = 64;
  std::uint32_t maps = 0;
};

// An event channel that never blocks, and its identifier.
class CmHandle {
 public:
  // Throws std::system_error.
  explicit CmHandle(rdma_port_space space);
  // Takes a request's identifier over, away from its listener's channel; the caller keeps it if this throws.
  explicit CmHandle(rdma_cm_id* request);
  ~CmHandle();
  CmHandle(const CmHandle&) = delete;
  CmHandle& operator=(const CmHandle&) = delete;

  rdma_cm_id* id() const { return id_; }
  int descriptor() const { return channel_->fd; }
  // nullptr: nothing has happened. rdma_ack_cm_event() follows.
  rdma_cm_event* next() const;

 private:
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
};

// A completion queue and its channel, which never blocks.
class Completions {
 public:
  Completions(ibv_context* verbs, int entries);
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  ibv_cq* queue() const { return queue_; }
  int descriptor() const { return channel_->fd; }
  // The next completion makes the descriptor readable, which is quiet until then.
  void arm() const;

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
};

struct Deregister {
  void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
};
using Region = std::unique_ptr<ibv_mr, Deregister>;
Region registered(ibv_pd* pd, void* at, std::size_t length, int access);

// Of a request's wr_id: who it is, and how much of the ring it has.
enum class Posted : std::uint8_t { kReceive, kData, kMap, kDirect, kControl, kShutdown, kDisconnect };
constexpr std::uint64_t posted(Posted what, std::uint32_t bytes) {
  return std::uint64_t{static_cast<std::uint8_t>(what)} << 32U | bytes;
}

class Link {
 public:
  // Receives are posted for the peer's credits and for its messages of control, so that the peer need not
  // repeat any. Throws std::system_error.
  Link(rdma_cm_id* id, const Sizes& sizes);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Offer offer() const;
  const Completions& completions() const { return completions_; }
  std::uint8_t* ring() const { return ring_.get(); }
  std::uint8_t* out() const { return out_.get(); }
  ibv_pd* domain() const { return id_->pd; }

  // What the peer has written there.
  Target take_target(std::uint32_t index);  // and forgets it; length 0: nothing was written
  Map map(std::uint32_t index) const;

  // Answers are error numbers, 0 for posted.
  int post_receives(std::uint32_t count) const;
  int post_data(const Outbox::Piece& piece) const;
  int post_direct(const Outbox::Piece& piece, std::uint64_t to, std::uint32_t key) const;
  int post_map(const Outbox::Piece& piece, std::uint32_t index, std::uint64_t to, std::uint32_t key) const;
  int post_control(std::uint32_t message, Posted as) const;
  // A message of credit, with a target if there is one to write.
  int post_credit(std::uint32_t message, std::uint32_t slot, const Target* target, std::uint64_t to,
                  std::uint32_t key) const;

 private:
  int post(ibv_send_wr& request) const;
  int post_piece(const Outbox::Piece& piece, ibv_send_wr& request) const;

  rdma_cm_id* id_;
  Sizes sizes_;
  std::unique_ptr<std::uint8_t[]> ring_;
  std::unique_ptr<std::uint8_t[]> out_;
  std::unique_ptr<std::uint8_t[]> shared_;
  Completions completions_;
  Region ring_region_;
  Region out_region_;
  Region shared_region_;
};

}  // namespace weft::live::rsockets
