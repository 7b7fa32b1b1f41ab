// Options of a stream that are taken and given back, and need nothing done: either a reliable connection has
// what they ask for anyway, or librdmacm does as little for them (rsocket(7)).
//
//   TCP_NODELAY     nothing is ever held back to be sent with what comes next
//   SO_KEEPALIVE    "supported, but ignored": a peer that died is noticed by the first send to it
//   TCP_KEEP…       the times of what is not sent
//   SO_OOBINLINE    there is nothing out of band (MSG_OOB is refused)
//
// Those that a listener takes begin with its answers.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>

namespace weft::live::rsockets {

class Remembered {
 public:
  // 0, or an error number; none: it is not of these.
  std::optional<int> set(int level, int name, int asked) {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      if (kRows[i].level != level || kRows[i].name != name) continue;
      if (!kRows[i].flag && asked <= 0) return EINVAL;
      values_[i] = kRows[i].flag ? static_cast<int>(asked != 0) : asked;
      return 0;
    }
    return std::nullopt;
  }
  std::optional<int> get(int level, int name) const {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      if (kRows[i].level == level && kRows[i].name == name) return values_[i];
    }
    return std::nullopt;
  }

 private:
  struct Row {
    int level;
    int name;
    bool flag;  // 0 or 1; others are numbers from 1
  };
  static constexpr std::array<Row, 6> kRows{{{SOL_SOCKET, SO_KEEPALIVE, true},
                                             {SOL_SOCKET, SO_OOBINLINE, true},
                                             {IPPROTO_TCP, TCP_NODELAY, true},
                                             {IPPROTO_TCP, TCP_KEEPIDLE, false},
                                             {IPPROTO_TCP, TCP_KEEPINTVL, false},
                                             {IPPROTO_TCP, TCP_KEEPCNT, false}}};
  std::array<int, kRows.size()> values_{0, 0, 0, 7200, 75, 9};  // Linux' own, tcp(7)
};

}  // namespace weft::live::rsockets
