// Sleeping, waking, and what rpoll() is told.
#include "live/rsockets/stream.h"

#include <algorithm>
#include <cerrno>

namespace weft::live::rsockets {

Stream::Stream(sa_family_t family) : handle_(RDMA_PS_TCP), family_(family) {}

Stream::Stream(const Stream& listener, rdma_cm_id* request)
    : handle_(request), family_(listener.family_), state_(State::kAccepting), sizes_(listener.sizes_) {
  remembered_ = listener.remembered_;
  linger_ = listener.linger_;
}

Stream::~Stream() = default;

void Stream::look(bool events) {
  if (events && state_ != State::kListening) take_events();
  if (link_ != nullptr) {
    take_completions();
    give_back();
  }
}

void Stream::fill(Wake& wake) const {
  wake.fds[0].fd = handle_.descriptor();
  wake.fds[1].fd = link_ != nullptr ? link_->completions().descriptor() : -1;
  wake.fds[2].fd = bell_.descriptor();
}

// What was armed, or looked at, just before is not missed: nothing changes without the lock, and whoever
// changes something rings.
int Stream::sleep(std::unique_lock<std::mutex>& lock, const Clock::time_point* until, bool& events) {
  if (!bell_.try_enter()) {
    bell_.await_heard(lock);
    return 0;
  }
  Wake wake;
  fill(wake);
  int limit = -1;
  if (until != nullptr) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    limit = static_cast<int>(std::clamp<long>(left, 0, 60'000));
  }
  lock.unlock();
  const int n = ::poll(wake.fds, 3, limit);
  const int failed = n < 0 ? errno : 0;
  lock.lock();
  bell_.leave();
  events = wake.fds[0].revents != 0 || state_ != State::kOpen;
  return failed;
}

// --- rpoll ---

short Stream::what(short events) {
  unsigned now = 0;
  switch (state_) {
    case State::kFresh:
    case State::kBound:
      return POLLHUP;
    case State::kListening: {
      pollfd p{handle_.descriptor(), POLLIN, 0};
      if (::poll(&p, 1, 0) == 1) now = POLLIN;
      break;
    }
    case State::kConnecting:
    case State::kAccepting:
      break;
    case State::kOpen:
      if (inbox_->unread() != 0 || ended()) now |= POLLIN;
      if (write_shut_ || can_send(kLowWater)) now |= POLLOUT;
      break;
    case State::kOver:
      now |= POLLIN | POLLOUT;
      break;
  }
  now &= static_cast<unsigned>(events);
  // Who reads until it is told that nothing more comes gets what there is first.
  if (state_ == State::kOver && !(inbox_ && inbox_->unread() != 0)) now |= POLLHUP;
  if (error_ != 0) now |= POLLERR;
  return static_cast<short>(now);
}

short Stream::ready(short events) {
  const std::lock_guard lock(mutex_);
  if (closed_) return POLLNVAL;
  look(state_ != State::kOpen);
  if (const short now = what(events); now != 0) return now;
  look(true);
  return what(events);
}

bool Stream::enter(Wake& wake) {
  const std::lock_guard lock(mutex_);
  if (link_ != nullptr) link_->completions().arm();
  if (!bell_.try_enter()) return false;
  fill(wake);
  return true;
}

void Stream::leave(const Wake&) {
  const std::lock_guard lock(mutex_);
  bell_.leave();
}

}  // namespace weft::live::rsockets
