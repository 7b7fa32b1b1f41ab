// A stream socket: bytes by RDMA WRITE into the peer's ring (wire.h says what travels).
//
//   fresh --bind--> bound --listen--> listening
//     |               |
//     +--- connect ---+--> connecting --answer--> open --both ends are done, or it failed--> over
//   a listener's request --> accepting --established--> open
//
// stream.cc has sleeping and waking, stream_connect.cc the way to an open connection, stream_bytes.cc sending
// and receiving, stream_messages.cc completions and what the peer says, stream_end.cc the way out, and
// stream_maps.cc memory that the peer writes directly.
//
// Two locks keep senders apart, and receivers; `mutex_` (socket.h) has everything else. Bytes are copied
// without it: those that were not yet sent, or not yet given back, are nobody else's.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "live/rsockets/inbox.h"
#include "live/rsockets/link.h"
#include "live/rsockets/outbox.h"
#include "live/rsockets/remembered.h"
#include "live/rsockets/socket.h"

namespace weft::live::rsockets {

enum class State : std::uint8_t { kFresh, kBound, kListening, kConnecting, kAccepting, kOpen, kOver };

class Stream final : public Socket {
 public:
  explicit Stream(sa_family_t family);
  ~Stream() override;

  int descriptor() const override { return handle_.descriptor(); }
  int bind(const sockaddr* address, socklen_t length) override;
  int listen(int backlog) override;
  int accept(std::shared_ptr<Socket>& out, Where& from) override;
  int connect(const sockaddr* address, socklen_t length) override;
  int shutdown(int how) override;
  void close() override;
  ssize_t receive(const iovec* parts, std::size_t count, int flags, Where* from) override;
  ssize_t send(const iovec* parts, std::size_t count, int flags, const Where* to) override;
  int own_name(Where& out) override;
  int peer_name(Where& out) override;
  int set_option(int level, int name, const void* value, socklen_t length) override;
  int get_option(int level, int name, void* value, socklen_t& length) override;
  off_t map(void* at, std::size_t length, int protection, off_t offset) override;
  int unmap(void* at, std::size_t length) override;
  ssize_t write_at(const void* from, std::size_t length, off_t offset, int flags) override;
  short ready(short events) override;
  bool enter(Wake& wake) override;
  void leave(const Wake& wake) override;

 private:
  // A request that a listener has taken.
  Stream(const Stream& listener, rdma_cm_id* request);

  // --- stream.cc: with the lock ---
  // 0 as soon as `done`; EAGAIN at once if the call does not wait, ETIMEDOUT at `until`, EINTR, EBADF.
  template <class Done>
  int await(std::unique_lock<std::mutex>& lock, bool wait, const Done& done,
            const Clock::time_point* until = nullptr);
  // Takes what has come; `events`: also what the connection manager tells, which costs a system call.
  void look(bool events);
  int sleep(std::unique_lock<std::mutex>& lock, const Clock::time_point* until, bool& events);
  void fill(Wake& wake) const;
  short what(short events);

  // --- stream_connect.cc ---
  void take_events();
  void happened(const rdma_cm_event& event);
  bool refuses(const sockaddr* peer) const;
  void go_on(int failed);
  int ask_peer();
  void begin(const std::optional<Offer>& peer);
  int admit(const Offer& peer);

  // --- stream_messages.cc ---
  void take_completions();
  void completed(const ibv_wc& completion);
  void heard(std::uint32_t message);
  bool heard_credit(std::uint32_t value);
  bool heard_map(std::uint32_t index);
  void heard_control(std::uint32_t value);
  void give_back();

  // --- stream_bytes.cc ---
  bool may_send() const { return !write_shut_ && state_ != State::kOver; }
  bool ended() const { return read_shut_ || peer_done_ || state_ == State::kOver; }
  bool can_send(std::uint32_t bytes) const;
  int why_not_sent();

  // --- stream_end.cc ---
  void lose(int error);
  void distrust();
  void finish();
  Clock::time_point patience() const;
  template <class Done>
  int outlast(std::unique_lock<std::mutex>& lock, const Done& done, Clock::time_point until);
  int say(std::unique_lock<std::mutex>& lock, Control what, Clock::time_point until);
  void drain(std::unique_lock<std::mutex>& lock, Clock::time_point until);

  // --- stream_maps.cc ---
  void send_maps();
  const Map* find_map(std::uint64_t offset) const;

  CmHandle handle_;
  sa_family_t family_;
  State state_ = State::kFresh;
  Sizes sizes_;
  bool closed_ = false;
  bool peer_done_ = false;  // it has said that it sends nothing more
  bool read_shut_ = false;
  bool write_shut_ = false;
  bool last_word_arrived_ = false;  // the peer has our kShutdown, and so everything before it
  int error_ = 0;                   // to be told once
  bool reuse_ = false;
  bool v6_only_ = false;  // of an IPv6 stream
  Remembered remembered_;
  std::optional<int> linger_;  // seconds

  std::unique_ptr<Link> link_;
  std::optional<Inbox> inbox_;
  std::optional<Outbox> outbox_;
  Offer peer_;
  std::uint32_t their_next_ = 1;  // target of the peer's that we write next
  std::uint32_t our_next_ = 1;    // target of ours that it writes next
  std::uint32_t spent_ = 0;       // receives to be posted anew

  struct Mapped {
    Region region;
    std::uint64_t offset = 0;
    bool told = false;
  };
  std::map<std::uint32_t, Mapped> mapped_;  // memory of ours, by its place in the peer's table
  std::vector<Map> maps_;                   // memory of the peer's

  std::mutex sending_;
  std::mutex receiving_;
};

// The lock of those that do the same; a call that does not wait does not wait for them either.
inline std::unique_lock<std::mutex> turn(std::mutex& m, bool wait) {
  if (wait) return std::unique_lock(m);
  return {m, std::try_to_lock};
}

template <class Done>
int Stream::await(std::unique_lock<std::mutex>& lock, bool wait, const Done& done,
                  const Clock::time_point* until) {
  // rsocket(7): as long as one looks before one sleeps.
  constexpr std::chrono::microseconds kLooks{10};
  Clock::time_point sleep_at{};  // not chosen
  bool events = state_ != State::kOpen;
  for (;;) {
    look(events);
    if (closed_) return EBADF;
    if (done()) return 0;
    if (!wait) {
      if (events) return EAGAIN;
      events = true;
      continue;
    }
    const auto now = Clock::now();
    if (until != nullptr && now >= *until) return ETIMEDOUT;
    if (sleep_at == Clock::time_point{}) sleep_at = now + kLooks;
    if (state_ == State::kOpen && now < sleep_at) {
      lock.unlock();
      lock.lock();
      continue;
    }
    if (link_ != nullptr) link_->completions().arm();
    look(true);
    if (closed_ || done()) continue;
    if (const int failed = sleep(lock, until, events); failed != 0) return failed;
    sleep_at = {};
  }
}

}  // namespace weft::live::rsockets
