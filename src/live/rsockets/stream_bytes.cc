// Bytes out and in. A message carries at most kMostBytes, so that the peer gets the first of a long write
// while the last is being copied.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "live/rsockets/stream.h"

namespace weft::live::rsockets {
namespace {

constexpr std::uint32_t kMostBytes = 256 * 1024;
// Other flags are hints, or have no meaning for streams, as the kernel has it.
constexpr int kRefusedOut = MSG_OOB | MSG_FASTOPEN;
constexpr int kRefusedIn = MSG_OOB | MSG_ERRQUEUE | MSG_TRUNC;

// A place in a list of parts.
class Cursor {
 public:
  explicit Cursor(const iovec* parts) : part_(parts) {}
  template <class Copy>
  void move(std::size_t length, const Copy& copy) {
    while (length != 0) {
      const std::size_t now = std::min(length, part_->iov_len - at_);
      if (now != 0) copy(static_cast<std::uint8_t*>(part_->iov_base) + at_, now);
      length -= now;
      at_ += now;
      if (at_ != part_->iov_len) return;
      ++part_;
      at_ = 0;
    }
  }

 private:
  const iovec* part_;
  std::size_t at_ = 0;
};

// Between the parts and a ring of `size` bytes, from `offset` on.
void to_ring(Cursor& from, std::uint8_t* ring, std::uint32_t size, std::uint32_t offset,
             std::uint32_t length) {
  const auto piece = [&](std::uint32_t at, std::uint32_t bytes) {
    std::uint8_t* to = ring + at;
    from.move(bytes, [&](const std::uint8_t* p, std::size_t n) {
      std::memcpy(to, p, n);
      to += n;
    });
  };
  const std::uint32_t first = std::min(length, size - offset);
  piece(offset, first);
  piece(0, length - first);
}

void from_ring(Cursor& to, const std::uint8_t* ring, std::uint32_t size, std::uint32_t offset,
               std::uint32_t length) {
  const auto piece = [&](std::uint32_t at, std::uint32_t bytes) {
    const std::uint8_t* from = ring + at;
    to.move(bytes, [&](std::uint8_t* p, std::size_t n) {
      std::memcpy(p, from, n);
      from += n;
    });
  };
  const std::uint32_t first = std::min(length, size - offset);
  piece(offset, first);
  piece(0, length - first);
}

}  // namespace

bool Stream::can_send(std::uint32_t bytes) const { return state_ == State::kOpen && outbox_->ready(bytes); }

int Stream::why_not_sent() {
  if (write_shut_) return EPIPE;
  return error_ != 0 ? std::exchange(error_, 0) : ECONNRESET;
}

ssize_t Stream::send(const iovec* parts, std::size_t count, int flags, const Where* to) {
  if (to != nullptr && to->length != 0) return -EISCONN;
  if ((flags & kRefusedOut) != 0) return -EOPNOTSUPP;
  const bool wait = waits(flags);
  const auto alone = turn(sending_, wait);
  if (!alone) return -EAGAIN;
  const std::size_t total = bytes_of(parts, count);
  std::size_t sent = 0;
  Cursor from(parts);
  while (sent < total) {
    const auto want = static_cast<std::uint32_t>(std::min<std::size_t>(total - sent, kMostBytes));
    std::unique_lock lock(mutex_);
    if (state_ < State::kConnecting) return -ENOTCONN;
    int failed = await(lock, wait, [&] { return !may_send() || can_send(want); });
    if (failed == 0 && !may_send()) failed = why_not_sent();
    if (failed != 0) return sent != 0 ? static_cast<ssize_t>(sent) : -failed;
    send_maps();
    if (!can_send(want)) continue;
    const Outbox::Piece piece = outbox_->take(want);
    lock.unlock();
    to_ring(from, link_->out(), sizes_.send_bytes, piece.offset, piece.length);
    failed = link_->post_data(piece);
    if (failed != 0) {
      lock.lock();
      lose(failed);
      return sent != 0 ? static_cast<ssize_t>(sent) : -failed;
    }
    sent += piece.length;
  }
  return static_cast<ssize_t>(total);
}

ssize_t Stream::receive(const iovec* parts, std::size_t count, int flags, Where* from) {
  if ((flags & kRefusedIn) != 0) return -EOPNOTSUPP;
  const bool wait = waits(flags);
  const auto alone = turn(receiving_, wait);
  if (!alone) return -EAGAIN;
  const std::size_t total = bytes_of(parts, count);
  std::size_t got = 0;
  Cursor to(parts);
  while (got < total) {
    std::unique_lock lock(mutex_);
    if (state_ < State::kConnecting) return -ENOTCONN;
    const auto has_come = [&] { return inbox_ && inbox_->unread() != 0; };
    const int failed = await(lock, wait, [&] { return has_come() || ended(); });
    if (failed != 0) return got != 0 ? static_cast<ssize_t>(got) : -failed;
    if (!has_come()) {
      if (got != 0 || error_ == 0 || read_shut_ || peer_done_) break;
      return -std::exchange(error_, 0);
    }
    const auto now = static_cast<std::uint32_t>(std::min<std::size_t>(inbox_->unread(), total - got));
    const std::uint32_t at = inbox_->offset();
    lock.unlock();
    from_ring(to, link_->ring(), inbox_->size(), at, now);
    got += now;
    if ((flags & MSG_PEEK) != 0) break;
    lock.lock();
    inbox_->read(now);
    give_back();
    if ((flags & MSG_WAITALL) == 0) break;
  }
  if (from != nullptr) peer_name(*from);
  return static_cast<ssize_t>(got);
}

}  // namespace weft::live::rsockets
