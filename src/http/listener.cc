#include "http/listener.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <mutex>
#include <semaphore>
#include <set>
#include <string>
#include <utility>

namespace weft::http {
namespace {

using Moment = std::chrono::steady_clock::time_point;

// A connection of which a question comes and to which an answer goes.
class Line : public httplib::Stream {
 public:
  explicit Line(socket_t socket)
      : socket_(socket),
        question_by_(std::chrono::steady_clock::now() + std::chrono::seconds(kQuestionPatience)) {}

  bool is_readable() const override { return at_ < filled_ || wait(POLLIN, question_by_); }
  bool is_writable() const override { return wait(POLLOUT, answer_by()); }
  ssize_t read(char* to, size_t size) override {
    if (at_ == filled_ && !fill()) return -1;
    const std::size_t n = std::min(size, filled_ - at_);
    std::copy_n(buffer_.data() + at_, n, to);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  // All of it, or nothing more goes.
  ssize_t write(const char* from, size_t size) override {
    const Moment by = answer_by();
    for (std::size_t gone = 0; gone < size;) {
      if (!wait(POLLOUT, by)) return -1;
      const ssize_t n = send(socket_, from + gone, size - gone, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
      gone += n < 0 ? 0 : static_cast<std::size_t>(n);
    }
    return static_cast<ssize_t>(size);
  }
  using Stream::write;
  // Nothing here asks who it is.
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return socket_; }

 private:
  Moment answer_by() const {
    if (answer_by_ == Moment{})
      answer_by_ = std::chrono::steady_clock::now() + std::chrono::seconds(kAnswerPatience);
    return answer_by_;
  }
  bool wait(short what, Moment by) const {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(by - std::chrono::steady_clock::now()).count();
      if (left <= 0) return false;
      pollfd p{socket_, what, 0};
      const int n = poll(&p, 1, static_cast<int>(left));
      if (n > 0) return true;
      if (n < 0 && errno != EINTR) return false;
    }
  }
  bool fill() {
    while (taken_ < kMostQuestion && wait(POLLIN, question_by_)) {
      const ssize_t n =
          recv(socket_, buffer_.data(), std::min(buffer_.size(), kMostQuestion - taken_), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return false;
      at_ = 0;
      filled_ = static_cast<std::size_t>(n);
      taken_ += filled_;
      return true;
    }
    return false;
  }

  const socket_t socket_;
  const Moment question_by_;
  mutable Moment answer_by_{};  // from its first byte
  std::array<char, 4096> buffer_{};
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::size_t taken_ = 0;
};

// The library's threads, and no more that waits for them than kWaiting: connections are file descriptors.
class Queue : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    room_.acquire();
    pool_.enqueue([this, task = std::move(task)] {
      task();
      room_.release();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  std::counting_semaphore<> room_{kWaiting};
  httplib::ThreadPool pool_{kThreads};
};

}  // namespace

class Listener::Bounded : public httplib::Server {
 public:
  Bounded();
  void end();

 private:
  bool process_and_close_socket(socket_t socket) override;

  std::mutex lock_;
  bool ended_ = false;
  std::set<socket_t> open_;
};

Listener::Bounded::Bounded() {
  new_task_queue = [] { return new Queue(); };
  set_payload_max_length(kMostQuestion);
  // Before a body is read, and before an answer is made. A range is refused because the library repeats what
  // is asked for as often as a header names it; its refusal has no body, or that would be repeated.
  set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (request.method != "GET") {
      response.status = 405;
    } else if (request.has_header("Range") || request.has_header("Transfer-Encoding")) {
      response.status = 400;
    } else {
      return HandlerResponse::Unhandled;
    }
    return HandlerResponse::Handled;
  });
}

bool Listener::Bounded::process_and_close_socket(socket_t socket) {
  bool answered = false;
  {
    const std::lock_guard held(lock_);
    if (!ended_) open_.insert(socket);
    answered = !ended_;
  }
  if (answered) {
    Line line(socket);
    bool closed = false;
    answered = process_request(line, true, closed, nullptr);
    const std::lock_guard held(lock_);
    open_.erase(socket);
  }
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return answered;
}

void Listener::Bounded::end() {
  {
    const std::lock_guard held(lock_);
    ended_ = true;
    for (const socket_t s : open_) shutdown(s, SHUT_RDWR);
  }
  stop();
}

Listener::Listener() : bounded_(std::make_unique<Bounded>()) {}
Listener::~Listener() = default;
httplib::Server& Listener::server() { return *bounded_; }
void Listener::end() { bounded_->end(); }

}  // namespace weft::http
