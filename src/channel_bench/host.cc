#include "channel_bench/host.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "channel_tools/session.h"

namespace weft::bench {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

// What proc(5) says of a core: a line of /proc/stat.
struct Ticks {
  std::uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};
std::optional<Ticks> ticks_of(const std::string& core) {
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    Ticks t{};
    if (words >> name && name == core &&
        words >> t.user >> t.nice >> t.system >> t.idle >> t.iowait >> t.irq >> t.softirq >> t.steal)
      return t;
  }
  return std::nullopt;
}
std::uint64_t stolen_ticks() { return ticks_of("cpu").value_or(Ticks{}).steal; }

// Nothing, where the kernel does not say.
std::optional<std::uint64_t> busy_ticks(const std::vector<int>& cores, bool interrupts) {
  std::uint64_t all = 0;
  for (const int core : cores) {
    const auto t = ticks_of("cpu" + std::to_string(core));
    if (!t || t->user + t->system + t->idle == 0) return std::nullopt;
    all += t->user + t->nice + t->system + (interrupts ? t->irq + t->softirq : 0);
  }
  return cores.empty() ? std::nullopt : std::optional(all);
}

// Whether the kernel takes the time of interrupts out of the program's in which they come
// (CONFIG_IRQ_TIME_ACCOUNTING). Then a socket's own datagrams, which an interrupt delivers, cost more time
// than the program is charged. The least of many short looks is one that nobody disturbed.
bool interrupts_apart() {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  double least = 1;
  if (bind(s, address, size) == 0 && getsockname(s, address, &size) == 0 && connect(s, address, size) == 0) {
    for (int look = 0; look < 50; ++look) {
      std::array<char, 64> text{};
      const std::uint64_t began = tools::now_ns();
      const std::uint64_t charged = processor_ns();
      for (int i = 0; i < 100; ++i) {
        (void)!send(s, text.data(), text.size(), 0);
        (void)!recv(s, text.data(), text.size(), 0);
      }
      const auto mine = static_cast<double>(processor_ns() - charged);
      least = std::min(least, 1 - mine / static_cast<double>(tools::now_ns() - began));
    }
  }
  close(s);
  return least < 1 && least > 0.08;
}

}  // namespace

void pin(int core) {
  if (core < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  (void)sched_setaffinity(0, sizeof set, &set);  // where it is refused it runs anywhere
}

int core_of(unsigned end) {
  static const std::vector<int> cores = allowed();  // before anybody was pinned
  return cores.size() < 2 ? -1 : cores[end];
}

namespace {
std::uint64_t ns_of(int who) {
  std::uint64_t all = 0;
  rusage used{};
  getrusage(who, &used);
  for (const timeval& t : {used.ru_utime, used.ru_stime})
    all +=
        static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_usec) * 1000;
  return all;
}
}  // namespace

std::uint64_t thread_ns() { return ns_of(RUSAGE_THREAD); }
std::uint64_t processor_ns() { return ns_of(RUSAGE_SELF) + ns_of(RUSAGE_CHILDREN); }

std::string Noise::sentence() const {
  std::array<char, 200> others{};
  std::snprintf(others.data(), others.size(), "other programs had %.1f %% of the ends' cores",
                waited_percent.value_or(0));
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%s: %s, other machines had %.1f %% of %u cores; load %.1f before",
                busy()    ? "the machine was busy, so figures say little"
                : known() ? "the machine was quiet"
                          : "how busy the machine was is unknown",
                known() ? others.data() : "/proc/stat does not say what other programs had", stolen_percent,
                cores, load);
  return text.data();
}

Listening::Listening(bool pinned, std::uint64_t far_ns)
    : cores_(pinned ? std::vector{core_of(0), core_of(1)} : allowed()),
      began_(tools::now_ns()),
      stolen_(stolen_ticks()),
      apart_(interrupts_apart()),
      busy_(busy_ticks(cores_, !apart_)),
      own_(far_ns + processor_ns()),
      load_(0) {
  std::ifstream in("/proc/loadavg");
  in >> load_;
}

Noise Listening::end(std::uint64_t far_ns) const {
  Noise n;
  n.cores = static_cast<unsigned>(std::max<std::size_t>(1, allowed().size()));
  n.cores = std::max(n.cores, static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
  n.load = load_;
  const auto ns = static_cast<double>(std::max<std::uint64_t>(1, tools::now_ns() - began_));
  const double tick_ns = 1e9 / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  const auto busy = busy_ticks(cores_, !apart_);
  if (busy && busy_) {
    const double all = static_cast<double>(*busy - *busy_) * tick_ns;
    const auto own = static_cast<double>(far_ns + processor_ns() - own_);
    n.waited_percent = 100 * std::max(0.0, all - own) / (ns * static_cast<double>(cores_.size()));
  }
  n.stolen_percent = 100 * static_cast<double>(stolen_ticks() - stolen_) * tick_ns / (ns * n.cores);
  return n;
}

}  // namespace weft::bench
