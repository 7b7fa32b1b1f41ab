#include "channel_bench/far.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <sstream>
#include <vector>

#include "channel_bench/host.h"
#include "channel_bench/plain_cm.h"
#include "channel_bench/raw.h"
#include "channel_tools/session.h"
#include "process/child.h"

namespace weft::bench {
namespace {

using tools::now_ns;
using tools::Session;

constexpr unsigned kLookEvery = 1024;  // turns between looks at the socket
constexpr std::size_t kMostLine = 4096;

class Far {
 public:
  explicit Far(int socket) : socket_(socket) {}

  int work() {
    std::string line;
    while (hear(line)) {
      if (line == "accept") {
        accept_plain(
            [this](Result<void> ready) { say(ready ? std::string("ok ") : "no " + ready.error().message); },
            [this] { return called(); });
        continue;
      }
      const Result<std::string> done = obey(line);
      say(done ? "ok " + *done : "no " + done.error().message);
      if (doing_) doing_();
      doing_ = {};
    }
    return 0;
  }

 private:
  bool hear(std::string& line) {
    std::array<char, kMostLine> text{};
    ssize_t n = 0;
    do {
      n = recv(socket_, text.data(), text.size(), 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    line.assign(text.data(), static_cast<std::size_t>(n));
    return true;
  }
  void say(const std::string& text) { (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Something to hear, or nobody there any more.
  bool called(bool at_once = false) {
    if (++looks_ % kLookEvery != 0 && !at_once) return false;
    pollfd look{socket_, POLLIN, 0};
    return ::poll(&look, 1, 0) != 0;
  }

  Result<std::string> obey(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    if (verb == "stop") return std::string();
    if (verb == "cost") return std::to_string(processor_ns());
    if (verb == "raw") return meet_raw(in);
    std::uint32_t hold_us = 0;
    if (verb == "echo") {
      std::uint32_t bytes = 0;
      if (!(in >> bytes >> hold_us) || raw_ == nullptr) return fail("there is no plain queue pair");
      doing_ = [this, bytes, hold_us] { echo(bytes, hold_us); };
      return std::string();
    }
    std::uint16_t id = 0;
    if (!(in >> id)) return fail("'" + line + "' is not understood");
    if (verb == "context") return open(id, in);
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return fail("there is no context " + std::to_string(id));
    if (verb == "end") {
      sessions_.erase(it);
      return std::string();
    }
    if (verb == "set") return set(*it->second, in);
    int sleeps = 0;
    if (verb == "serve" && (in >> hold_us >> sleeps)) {
      doing_ = [this, s = it->second.get(), hold_us, sleeps] { serve(*s, hold_us, sleeps != 0); };
      return std::string();
    }
    return fail("'" + line + "' is not understood");
  }

  Result<std::string> open(std::uint16_t id, std::istringstream& in) {
    std::vector<std::string> parameters;
    for (std::string p; in >> p;) parameters.push_back(p);
    auto session = Session::open("", parameters);
    if (!session) return tl::unexpected(session.error());
    const auto service = static_cast<std::uint16_t>(kServices + id);
    if (const int error = weft_listen((*session)->get(), service); error != 0)
      return fail("service " + std::to_string(service) + ": " + std::strerror(error));
    sessions_[id] = std::move(*session);
    return std::string();
  }

  static Result<std::string> set(const Session& session, std::istringstream& in) {
    std::string name;
    std::uint64_t value = 0;
    in >> name >> value;
    std::array<char, 256> why{};
    if (weft_set(session.get(), name.c_str(), value, why.data(), why.size()) != 0)
      return fail(std::string(why.data()));
    return std::string();
  }

  Result<std::string> meet_raw(std::istringstream& in) {
    RawEnd::Size size;
    std::string who;
    in >> size.bytes >> size.receives >> std::ws;
    std::getline(in, who);
    raw_.reset();
    auto end = RawEnd::open(size);
    if (!end) return tl::unexpected(end.error());
    if (const auto met = (*end)->meet(who); !met) return tl::unexpected(met.error());
    raw_ = std::move(*end);
    return raw_->introduce();
  }

  static void hold(std::uint32_t us) {
    if (us == 0) return;
    const std::uint64_t until = now_ns() + std::uint64_t{us} * 1000;
    while (now_ns() < until) {
    }
  }

  // What came is taken one by one, each when the one before it was held long enough.
  void echo(std::uint32_t bytes, std::uint32_t hold_us) {
    RawEnd::Came came;
    std::uint32_t waiting = 0;
    while (!called()) {
      came = {};
      if (!raw_->poll(came)) return;
      waiting += came.received;
      if (waiting == 0) continue;
      --waiting;
      hold(hold_us);
      if (!raw_->give_back(1)) return;
      if (bytes != 0 && !raw_->send(bytes)) return;
    }
  }

  void serve(const Session& session, std::uint32_t hold_us, bool sleeps) {
    std::deque<weft_message*> held;  // of a program that takes its time
    while (!called(sleeps)) {
      session.wait(sleeps ? 1 : 0, [&](const weft_notice& n) {
        if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
        if (n.kind == WEFT_MESSAGE && hold_us != 0) return held.push_back(n.message);
        if (n.kind == WEFT_MESSAGE) send_back(session, n);
        if (n.kind == WEFT_REQUEST) answer(session, n);
        if (n.message != nullptr) weft_release(session.get(), n.message);
      });
      if (held.empty()) continue;
      hold(hold_us);
      weft_release(session.get(), held.front());
      held.pop_front();
    }
    for (weft_message* const m : held) weft_release(session.get(), m);
  }
  static void send_back(const Session& session, const weft_notice& n) {
    weft_message* const back = weft_allocate(session.get(), weft_length(n.message));
    if (back != nullptr && weft_send(n.channel, back, 0, 0) != 0) weft_release(session.get(), back);
  }
  static void answer(const Session& session, const weft_notice& n) {
    weft_message* const back = weft_allocate(session.get(), weft_length(n.message));
    if (back != nullptr && weft_answer(n.message, back, 0, 0) != 0) weft_release(session.get(), back);
  }

  const int socket_;
  unsigned looks_ = 0;
  std::function<void()> doing_;  // until the next line
  std::map<std::uint16_t, std::unique_ptr<Session>> sessions_;
  std::unique_ptr<RawEnd> raw_;
};

}  // namespace

int be_far(int socket, int core) {
  pin(core);
  return Far(socket).work();
}

Result<std::unique_ptr<FarEnd>> FarEnd::start(const std::string& address, int core) {
  auto end = std::unique_ptr<FarEnd>(new FarEnd(address, core));
  if (auto begun = end->begin(); !begun) return tl::unexpected(begun.error());
  return end;
}

Result<void> FarEnd::begin() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(std::string("the far end: ") + std::strerror(errno));
  const pid_t child = process::spawn([&] {
    fcntl(ends[1], F_SETFD, 0);
    setenv("WEFT_ADDR", address_.c_str(), 1);
    const std::string socket = std::to_string(ends[1]);
    const std::string where = std::to_string(core_);
    execl("/proc/self/exe", "weft-channel-bench", "far-end", socket.c_str(), where.c_str(), nullptr);
  });
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return fail(std::string("the far end: ") + std::strerror(error));
  }
  close(ends[1]);
  child_ = child;
  socket_ = ends[0];
  return {};
}

void FarEnd::kill_it() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);  // its own child, by number
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

Result<void> FarEnd::replace() {
  kill_it();
  close(socket_);
  socket_ = -1;
  return begin();
}

FarEnd::~FarEnd() {
  if (socket_ >= 0) close(socket_);
  // It ends when it finds nobody there, and takes its pages in /dev/shm with it.
  for (const std::uint64_t until = now_ns() + 1'000'000'000; child_ > 0 && now_ns() < until; usleep(1000)) {
    if (waitpid(child_, nullptr, WNOHANG) != 0) return;
  }
  kill_it();
}

Result<std::string> FarEnd::ask(const std::string& line, int seconds) {
  const std::string what = "the far end at " + address_;
  if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) < 0)
    return fail(what + " is gone: " + std::strerror(errno));
  pollfd look{socket_, POLLIN, 0};
  if (::poll(&look, 1, seconds * 1000) <= 0) return fail(what + " does not answer '" + line + "'");
  std::array<char, kMostLine> text{};
  const ssize_t n = recv(socket_, text.data(), text.size(), 0);
  if (n < 3) return fail(what + " is gone");
  const std::string answer(text.data(), static_cast<std::size_t>(n));
  if (answer.starts_with("ok ")) return answer.substr(3);
  return fail(what + ": " + answer.substr(3));
}

}  // namespace weft::bench
