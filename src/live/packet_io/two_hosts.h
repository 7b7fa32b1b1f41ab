// For tests: two network namespaces with a virtual Ethernet between, 10.77.0.1 and 10.77.0.2, made by this
// process and gone with it. Sockets stay in the namespace in which they were opened, so one thread may own
// both ends.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "core/wire/packet.h"

namespace weft::live {

class TwoHosts {
 public:
  TwoHosts() : home_(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (home_ < 0) return;
    for (int& host : hosts_) {
      if (unshare(CLONE_NEWNET) != 0) return;
      host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
      if (!run("ip link set lo up")) return;
    }
    // We are in the second.
    const std::string first = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(hosts_[0]);
    made_ = run("ip link add eth0 type veth peer name other") && run("ip link set other netns " + first) &&
            run("ip addr add 10.77.0.2/24 dev eth0 && ip link set eth0 up");
    enter(0);
    made_ = made_ &&
            run("ip link set other name eth0 && ip addr add 10.77.0.1/24 dev eth0 && ip link set eth0 up");
  }
  ~TwoHosts() {
    if (home_ >= 0) leave();
    for (const int fd : {home_, hosts_[0], hosts_[1]}) {
      if (fd >= 0) close(fd);
    }
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  // False: they may not be made here.
  bool made() const { return made_; }
  void enter(std::size_t host) const { made_or_abort(setns(hosts_.at(host), CLONE_NEWNET)); }
  void leave() const { made_or_abort(setns(home_, CLONE_NEWNET)); }
  bool run(const std::string& command) const {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  static wire::Address address(std::size_t host) {
    return wire::Address::v4(10, 77, 0, static_cast<std::uint8_t>(host + 1));
  }

 private:
  static void made_or_abort(int result) {
    if (result != 0) std::abort();
  }
  int home_ = -1;
  std::array<int, 2> hosts_{-1, -1};
  bool made_ = false;
};

}  // namespace weft::live
