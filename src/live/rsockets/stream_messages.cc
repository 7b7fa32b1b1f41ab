// Completions: what has been sent, and what the peer says. Everything it says is checked before anything is
// done with it; what no end of this protocol would say ends the connection, and nothing else.
#include <arpa/inet.h>

#include <cerrno>

#include "live/rsockets/stream.h"

namespace weft::live::rsockets {
namespace {

constexpr int kBatch = 32;

int reason_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return ETIMEDOUT;
    default:
      return ECONNRESET;
  }
}

Posted posted_as(std::uint64_t wr_id) { return static_cast<Posted>(wr_id >> 32U); }

}  // namespace

void Stream::take_completions() {
  ibv_wc batch[kBatch];
  for (;;) {
    const int n = ibv_poll_cq(link_->completions().queue(), kBatch, batch);
    if (n < 0) return lose(EIO);
    if (n == 0) return;
    for (int i = 0; i < n; ++i) completed(batch[i]);
    if (spent_ != 0 && state_ != State::kOver) {
      if (const int failed = link_->post_receives(spent_); failed != 0) lose(failed);
    }
    spent_ = 0;
    bell_.ring();
    if (n < kBatch) return;
  }
}

void Stream::completed(const ibv_wc& completion) {
  const Posted was = posted_as(completion.wr_id);
  if (outbox_) {
    if (was == Posted::kControl || was == Posted::kShutdown || was == Posted::kDisconnect)
      outbox_->control_done();
    if (was == Posted::kData || was == Posted::kMap || was == Posted::kDirect)
      outbox_->done(static_cast<std::uint32_t>(completion.wr_id));
  }
  if (state_ == State::kOver) return;
  if (completion.status != IBV_WC_SUCCESS) return lose(reason_of(completion.status));
  if (was == Posted::kDisconnect) return finish();
  if (was == Posted::kShutdown) {
    last_word_arrived_ = true;
    if (peer_done_) finish();
  }
  if (was != Posted::kReceive) return;
  ++spent_;
  // Over RoCE every message is a WRITE with immediate data; iWARP's messages are not spoken.
  if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM) return distrust();
  if (state_ == State::kAccepting) {
    // It sends, so it has our answer, though it has not said so yet.
    state_ = State::kOpen;
    rdma_notify(handle_.id(), IBV_EVENT_COMM_EST);
  }
  // The end that asks is open when it has taken the answer up, and its queue pair receives no sooner.
  if (state_ != State::kOpen) return distrust();
  heard(ntohl(completion.imm_data));
}

void Stream::heard(std::uint32_t message) {
  const std::uint32_t value = value_of(message);
  switch (kind_of(message)) {
    case static_cast<unsigned>(Kind::kData):
      if (peer_done_ || !inbox_->arrived(value)) distrust();
      return;
    case static_cast<unsigned>(Kind::kCredit):
      if (!heard_credit(value)) distrust();
      return;
    case static_cast<unsigned>(Kind::kMap):
      if (!heard_map(value)) distrust();
      return;
    case static_cast<unsigned>(Kind::kControl):
      return heard_control(value);
    default:
      return distrust();
  }
}

// A message of credit may follow a target that was written. Each target is taken as soon as it is announced,
// and the peer writes that place again only after we have used what was there.
bool Stream::heard_credit(std::uint32_t value) {
  if (!outbox_->credit(value)) return false;
  while (outbox_->takes_target()) {
    const Target t = link_->take_target(our_next_);
    if (t.length == 0) break;
    outbox_->target(t);
    our_next_ = (our_next_ + 1) % kTargets;
  }
  return true;
}

bool Stream::heard_map(std::uint32_t index) {
  if (index >= maps_.size() || !inbox_->arrived_beside()) return false;
  maps_[index] = link_->map(index);
  return true;
}

void Stream::heard_control(std::uint32_t value) {
  switch (value) {
    case static_cast<std::uint32_t>(Control::kDisconnect):
      peer_done_ = true;
      return finish();
    case static_cast<std::uint32_t>(Control::kShutdown):
      // What we still have to say is on its way, or will be.
      peer_done_ = true;
      if (last_word_arrived_) finish();
      return;
    default:
      return;  // it is alive; later versions may say more
  }
}

void Stream::give_back() {
  while (state_ == State::kOpen && inbox_->owes() && outbox_->has_control()) {
    const std::uint32_t slot = outbox_->take_control();
    const Inbox::Grant g = inbox_->grant();
    Target t;
    std::uint64_t to = 0;
    if (g.has_half) {
      t = link_->offer().first;
      t.address += g.half_at;
      t.length = g.half_length;
      t = ordered(t, peer_.swapped);
      to = peer_.targets_at + std::uint64_t{their_next_} * sizeof(Target);
      their_next_ = (their_next_ + 1) % peer_.targets;
    }
    const int failed = link_->post_credit(message(Kind::kCredit, g.limit), slot, g.has_half ? &t : nullptr,
                                          to, peer_.targets_key);
    if (failed != 0) return lose(failed);
  }
}

}  // namespace weft::live::rsockets
