// The way out. An end that says it is done waits until the peer's NIC has what was sent, because the process
// may end next and there is no kernel that would go on sending.
#include <cerrno>

#include "live/rsockets/stream.h"

namespace weft::live::rsockets {
namespace {

// A peer that takes nothing for so long gets nothing more; SO_LINGER chooses another time.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

// The connection failed: with what has come the program may go on, and then it is told.
void Stream::lose(int error) {
  if (state_ == State::kOver) return;
  error_ = error;
  finish();
  if (link_ != nullptr) rdma_disconnect(handle_.id());  // if there is something to end
}

// The peer says what no end of this protocol says.
void Stream::distrust() { lose(EPROTO); }

void Stream::finish() {
  state_ = State::kOver;
  bell_.ring();
}

// When an end that waits for its peer gives up.
Clock::time_point Stream::patience() const {
  return Clock::now() + (linger_ ? std::chrono::seconds(*linger_) : kPatience);
}

// Signals do not end this wait, nor make it longer: nobody whom rclose() told EINTR could go on.
template <class Done>
int Stream::outlast(std::unique_lock<std::mutex>& lock, const Done& done, Clock::time_point until) {
  int failed = EINTR;
  while (failed == EINTR) failed = await(lock, true, done, &until);
  return failed;
}

int Stream::say(std::unique_lock<std::mutex>& lock, Control what, Clock::time_point until) {
  const auto may = [&] { return state_ == State::kOver || outbox_->has_control(); };
  if (const int failed = outlast(lock, may, until); failed != 0) return failed;
  if (state_ == State::kOver) return 0;
  outbox_->take_control();
  return link_->post_control(message(Kind::kControl, static_cast<std::uint32_t>(what)),
                             what == Control::kDisconnect ? Posted::kDisconnect : Posted::kShutdown);
}

// As long as the peer takes something; with SO_LINGER as long as that says.
void Stream::drain(std::unique_lock<std::mutex>& lock, Clock::time_point until) {
  const auto done = [&] { return state_ == State::kOver || outbox_->all_done(); };
  for (std::uint64_t before = outbox_->completed();; before = outbox_->completed()) {
    if (outlast(lock, done, until) != ETIMEDOUT) return;
    if (linger_ || outbox_->completed() == before) return;
    until = patience();
  }
}

int Stream::shutdown(int how) {
  std::unique_lock lock(mutex_);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  if (state_ == State::kListening && how != SHUT_WR) {
    finish();  // who waits for a request is told; those that come are refused when the rsocket is closed
    return 0;
  }
  const auto until = patience();
  if (state_ == State::kAccepting) {
    const int failed = outlast(
        lock, [&] { return state_ != State::kAccepting; }, until);
    if (failed != 0) return -failed;
  }
  if (state_ < State::kAccepting) return -ENOTCONN;
  look(true);  // what the peer has said decides which word is our last
  const bool was_done = write_shut_ && (read_shut_ || peer_done_);
  if (how != SHUT_WR) read_shut_ = true;
  const bool wrote = !write_shut_ && how != SHUT_RD;
  if (wrote) write_shut_ = true;
  bell_.ring();
  if (wrote) {
    // A write that is being copied leaves before the word that it was the last.
    lock.unlock();
    const std::lock_guard last(sending_);
    lock.lock();
  }
  if (state_ == State::kOver) return 0;
  int failed = 0;
  if (was_done) {
    // It has been said, and may still be on its way.
  } else if (write_shut_ && (read_shut_ || peer_done_)) {
    failed = say(lock, Control::kDisconnect, until);
  } else if (wrote) {
    failed = say(lock, Control::kShutdown, until);
  } else {
    return 0;
  }
  if (failed != 0) {
    lose(failed);
    return -failed;
  }
  drain(lock, until);
  return 0;
}

void Stream::close() {
  // Without a word before it, the end of the connection is a failure to the peer.
  const bool abandons = linger_ && *linger_ == 0;
  if (!abandons) shutdown(SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  closed_ = true;
  bell_.ring();
}

}  // namespace weft::live::rsockets
