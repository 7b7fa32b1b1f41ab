// Memory that the peer writes directly (riomap), and writing into its memory (riowrite). The table of maps is
// the peer's idea of our memory; ours of its memory is `maps_`, entry by entry as it announced them. What it
// says there leads into its own memory only: what is wrong with it, its own NIC refuses.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "live/rsockets/stream.h"

namespace weft::live::rsockets {
namespace {

constexpr std::uint32_t kMostBytes = 256 * 1024;

void copy_out(const Outbox::Piece& piece, std::uint32_t size, std::uint8_t* ring, const void* from) {
  const std::uint32_t first = std::min(piece.length, size - piece.offset);
  std::memcpy(ring + piece.offset, from, first);
  std::memcpy(ring, static_cast<const std::uint8_t*>(from) + first, piece.length - first);
}

}  // namespace

off_t Stream::map(void* at, std::size_t length, int protection, off_t offset) {
  // Entries lie in the ring between the bytes of writes. Whoever writes just now tells the peer with the next
  // one.
  const std::unique_lock alone(sending_, std::try_to_lock);
  const std::lock_guard lock(mutex_);
  if ((protection & ~(PROT_WRITE | PROT_NONE)) != 0 || length == 0 || length > UINT32_MAX) return -EINVAL;
  if (state_ != State::kOpen && state_ != State::kAccepting) return -ENOTCONN;
  if (offset < -1) return -EINVAL;
  const bool theirs = (protection & PROT_WRITE) != 0;
  // Memory that nobody else writes has no entry; it is kept under numbers that no entry has.
  std::uint32_t index = theirs ? 0 : kMostMaps;
  while (mapped_.contains(index)) ++index;
  if (theirs && index >= peer_.maps) return -ENOMEM;
  const int access = IBV_ACCESS_LOCAL_WRITE | (theirs ? IBV_ACCESS_REMOTE_WRITE : 0);
  Mapped m{registered(link_->domain(), at, length, access), 0, !theirs};
  if (offset == -1) offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at));
  m.offset = static_cast<std::uint64_t>(offset);
  mapped_.emplace(index, std::move(m));
  if (alone) send_maps();
  return offset;
}

int Stream::unmap(void* at, std::size_t length) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(mapped_.begin(), mapped_.end(), [&](const auto& m) {
    return m.second.region->addr == at && m.second.region->length == length;
  });
  if (it == mapped_.end()) return -EINVAL;
  mapped_.erase(it);
  return 0;
}

// Those that the peer has not been told, as far as its credit reaches; the next write goes on.
void Stream::send_maps() {
  for (auto& [index, m] : mapped_) {
    if (m.told) continue;
    if (!can_send(sizeof(Map)) || write_shut_ || !outbox_->has_room(sizeof(Map))) return;
    const Outbox::Piece piece = outbox_->take_beside(sizeof(Map), true);
    Map entry{m.offset,
              {reinterpret_cast<std::uintptr_t>(m.region->addr), m.region->rkey,
               static_cast<std::uint32_t>(m.region->length)}};
    entry = ordered(entry, peer_.swapped);
    copy_out(piece, sizes_.send_bytes, link_->out(), &entry);
    const std::uint64_t to =
        peer_.targets_at + peer_.targets * sizeof(Target) + std::uint64_t{index} * sizeof(Map);
    m.told = true;
    if (const int failed = link_->post_map(piece, index, to, peer_.targets_key); failed != 0)
      return lose(failed);
  }
}

const Map* Stream::find_map(std::uint64_t offset) const {
  for (const Map& m : maps_) {
    if (offset >= m.offset && offset - m.offset < m.at.length) return &m;
  }
  return nullptr;
}

// Nothing announces such a write to the peer's program: it takes no credit.
ssize_t Stream::write_at(const void* from, std::size_t length, off_t offset, int flags) {
  const bool wait = waits(flags);
  const auto alone = turn(sending_, wait);
  if (!alone) return -EAGAIN;
  std::size_t sent = 0;
  while (sent < length) {
    std::unique_lock lock(mutex_);
    if (state_ < State::kConnecting) return -ENOTCONN;
    const auto want = static_cast<std::uint32_t>(std::min<std::size_t>(length - sent, kMostBytes));
    const auto has_room = [&] {
      return state_ == State::kOpen && outbox_->has_slot() && outbox_->has_room(want);
    };
    int failed = await(lock, wait, [&] { return !may_send() || has_room(); });
    if (failed == 0 && !may_send()) failed = why_not_sent();
    if (failed != 0) return sent != 0 ? static_cast<ssize_t>(sent) : -failed;
    send_maps();
    if (!has_room()) continue;
    const std::uint64_t at = static_cast<std::uint64_t>(offset) + sent;
    const Map* const m = find_map(at);
    if (m == nullptr) return sent != 0 ? static_cast<ssize_t>(sent) : -EFAULT;
    const std::uint64_t inside = at - m->offset;
    const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(want, m->at.length - inside));
    const std::uint64_t to = m->at.address + inside;
    const std::uint32_t key = m->at.key;
    const Outbox::Piece piece = outbox_->take_beside(now, false);
    lock.unlock();
    copy_out(piece, sizes_.send_bytes, link_->out(), static_cast<const std::uint8_t*>(from) + sent);
    failed = link_->post_direct(piece, to, key);
    if (failed != 0) {
      lock.lock();
      lose(failed);
      return sent != 0 ? static_cast<ssize_t>(sent) : -failed;
    }
    sent += piece.length;
  }
  return static_cast<ssize_t>(length);
}

}  // namespace weft::live::rsockets
