// The calls of <rdma/rsocket.h>: each finds its rsocket and hands on. A descriptor that is none is EBADF.
#include <rdma/rsocket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "live/rdmacm/edge.h"
#include "live/rsockets/datagrams.h"
#include "live/rsockets/stream.h"
#include "live/rsockets/table.h"

namespace weft::live::rsockets {
namespace {

// `call` takes the socket and answers with a count, or an error number below zero.
template <class Call>
ssize_t with(int fd, const Call& call) {
  ssize_t answer = 0;
  const int failed = rdmacm::at_edge([&] {
    const std::shared_ptr<Socket> s = Table::all().find(fd);
    answer = s == nullptr ? -EBADF : static_cast<ssize_t>(call(*s));
    return answer < 0 ? static_cast<int>(-answer) : 0;
  });
  return failed != 0 ? -1 : answer;
}

template <class Call>
int status(int fd, const Call& call) {
  return static_cast<int>(with(fd, call));
}

int enter_socket(std::shared_ptr<Socket> s) {
  const int fd = s->descriptor();
  Table::all().add(std::move(s));
  return fd;
}

int make(int domain, int type, int protocol) {
  const int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (kind != SOCK_STREAM && kind != SOCK_DGRAM) return -EOPNOTSUPP;
  if (protocol != 0 && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP)) return -EPROTONOSUPPORT;
  // The header of a datagram has room for an IPv4 address only (wire.h).
  if (domain != AF_INET && (domain != AF_INET6 || kind == SOCK_DGRAM)) return -EAFNOSUPPORT;
  std::shared_ptr<Socket> s;
  if (kind == SOCK_STREAM)
    s = std::make_shared<Stream>(static_cast<sa_family_t>(domain));
  else
    s = std::make_shared<Datagrams>();
  if ((flags & SOCK_NONBLOCK) != 0) s->set_flags(O_NONBLOCK);
  return enter_socket(std::move(s));
}

// As much of a name as the program has room for; the length is the whole.
void give_name(const Where& from, sockaddr* to, socklen_t* length) {
  if (to == nullptr || length == nullptr) return;
  std::memcpy(to, &from.address, std::min(*length, from.length));
  *length = from.length;
}

bool too_many(std::size_t parts) { return parts > IOV_MAX; }

ssize_t receive(int fd, const iovec* parts, std::size_t count, int flags, Where* from) {
  return with(fd, [&](Socket& s) { return s.receive(parts, count, flags, from); });
}

ssize_t send(int fd, const iovec* parts, std::size_t count, int flags, const Where* to) {
  return with(fd, [&](Socket& s) { return s.send(parts, count, flags, to); });
}

// False: there is no such address.
bool take_name(const sockaddr* from, socklen_t length, Where& to) {
  if (length > sizeof to.address || (from == nullptr && length != 0)) return false;
  if (length != 0) std::memcpy(&to.address, from, length);
  to.length = length;
  return true;
}

int refused(int error) {
  errno = error;
  return -1;
}

}  // namespace
}  // namespace weft::live::rsockets

using namespace weft::live::rsockets;

WEFT_EXPORT int rsocket(int domain, int type, int protocol) {
  int answer = 0;
  const int failed = weft::live::rdmacm::at_edge([&] {
    answer = make(domain, type, protocol);
    return answer < 0 ? -answer : 0;
  });
  return failed != 0 ? -1 : answer;
}

WEFT_EXPORT int rbind(int fd, const sockaddr* address, socklen_t length) {
  return status(fd, [&](Socket& s) { return s.bind(address, length); });
}
WEFT_EXPORT int rlisten(int fd, int backlog) {
  return status(fd, [&](Socket& s) { return s.listen(backlog); });
}
WEFT_EXPORT int raccept(int fd, sockaddr* address, socklen_t* length) {
  return status(fd, [&](Socket& s) {
    std::shared_ptr<Socket> fresh;
    Where from;
    if (const int failed = s.accept(fresh, from); failed != 0) return failed;
    give_name(from, address, length);
    return enter_socket(std::move(fresh));
  });
}
WEFT_EXPORT int rconnect(int fd, const sockaddr* address, socklen_t length) {
  return status(fd, [&](Socket& s) { return s.connect(address, length); });
}
WEFT_EXPORT int rshutdown(int fd, int how) {
  return status(fd, [&](Socket& s) { return s.shutdown(how); });
}

WEFT_EXPORT int rclose(int fd) {
  if (Table::all().forget_inherited(fd)) return close(fd);
  const std::shared_ptr<Socket> s = Table::all().take(fd);
  if (s == nullptr) return refused(EBADF);
  return weft::live::rdmacm::at_edge([&] {
    s->close();
    return 0;
  });
}

// --- bytes ---

WEFT_EXPORT ssize_t rrecvfrom(int fd, void* to, std::size_t length, int flags, sockaddr* address,
                              socklen_t* address_length) {
  const iovec part{to, length};
  Where from;
  const ssize_t n = receive(fd, &part, 1, flags, address != nullptr ? &from : nullptr);
  if (n >= 0) give_name(from, address, address_length);
  return n;
}
WEFT_EXPORT ssize_t rrecv(int fd, void* to, std::size_t length, int flags) {
  return rrecvfrom(fd, to, length, flags, nullptr, nullptr);
}
WEFT_EXPORT ssize_t rread(int fd, void* to, std::size_t length) { return rrecv(fd, to, length, 0); }
WEFT_EXPORT ssize_t rreadv(int fd, const iovec* parts, int count) {
  if (count < 0 || too_many(static_cast<std::size_t>(count))) return refused(EINVAL);
  return receive(fd, parts, static_cast<std::size_t>(count), 0, nullptr);
}
// There are no messages of control to receive: their room stays empty.
WEFT_EXPORT ssize_t rrecvmsg(int fd, msghdr* message, int flags) {
  if (message == nullptr || too_many(message->msg_iovlen)) return refused(EINVAL);
  Where from;
  const ssize_t n = receive(fd, message->msg_iov, message->msg_iovlen, flags, &from);
  if (n < 0) return n;
  if (message->msg_name != nullptr)
    give_name(from, static_cast<sockaddr*>(message->msg_name), &message->msg_namelen);
  message->msg_controllen = 0;
  message->msg_flags = from.cut ? MSG_TRUNC : 0;
  return n;
}

WEFT_EXPORT ssize_t rsendto(int fd, const void* from, std::size_t length, int flags, const sockaddr* address,
                            socklen_t address_length) {
  const iovec part{const_cast<void*>(from), length};
  Where to;
  if (!take_name(address, address_length, to)) return refused(EINVAL);
  return send(fd, &part, 1, flags, &to);
}
WEFT_EXPORT ssize_t rsend(int fd, const void* from, std::size_t length, int flags) {
  return rsendto(fd, from, length, flags, nullptr, 0);
}
WEFT_EXPORT ssize_t rwrite(int fd, const void* from, std::size_t length) {
  return rsend(fd, from, length, 0);
}
WEFT_EXPORT ssize_t rwritev(int fd, const iovec* parts, int count) {
  if (count < 0 || too_many(static_cast<std::size_t>(count))) return refused(EINVAL);
  return send(fd, parts, static_cast<std::size_t>(count), 0, nullptr);
}
WEFT_EXPORT ssize_t rsendmsg(int fd, const msghdr* message, int flags) {
  if (message == nullptr || too_many(message->msg_iovlen)) return refused(EINVAL);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return refused(EOPNOTSUPP);
  Where to;
  if (message->msg_name != nullptr &&
      !take_name(static_cast<const sockaddr*>(message->msg_name), message->msg_namelen, to))
    return refused(EINVAL);
  return send(fd, message->msg_iov, message->msg_iovlen, flags, &to);
}

// --- names, options, flags ---

WEFT_EXPORT int rgetpeername(int fd, sockaddr* address, socklen_t* length) {
  return status(fd, [&](Socket& s) {
    Where name;
    const int failed = s.peer_name(name);
    if (failed == 0) give_name(name, address, length);
    return failed;
  });
}
// librspreload asks for the length only.
WEFT_EXPORT int rgetsockname(int fd, sockaddr* address, socklen_t* length) {
  return status(fd, [&](Socket& s) {
    Where name;
    const int failed = s.own_name(name);
    if (failed == 0) give_name(name, address, length);
    if (failed == 0 && address == nullptr && length != nullptr) *length = name.length;
    return failed;
  });
}
WEFT_EXPORT int rsetsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  return status(fd, [&](Socket& s) { return s.set_option(level, name, value, length); });
}
WEFT_EXPORT int rgetsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  if (length == nullptr) return refused(EFAULT);
  return status(fd, [&](Socket& s) { return s.get_option(level, name, value, *length); });
}
WEFT_EXPORT int rfcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const int argument = command == F_SETFL || command == F_SETFD ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return status(fd, [&](Socket& s) {
    switch (command) {
      case F_GETFL:
        return s.flags() | O_RDWR;
      case F_SETFL:
        s.set_flags(argument);
        return 0;
      case F_GETFD:  // no rsocket survives exec()
        return FD_CLOEXEC;
      case F_SETFD:
        return (argument & FD_CLOEXEC) != 0 ? 0 : -EOPNOTSUPP;
      default:
        return -EOPNOTSUPP;
    }
  });
}

// --- memory that the peer writes directly ---

WEFT_EXPORT off_t riomap(int fd, void* at, std::size_t length, int protection, int flags, off_t offset) {
  if (flags != 0) return refused(EINVAL);
  return with(fd, [&](Socket& s) { return s.map(at, length, protection, offset); });
}
WEFT_EXPORT int riounmap(int fd, void* at, std::size_t length) {
  return status(fd, [&](Socket& s) { return s.unmap(at, length); });
}
WEFT_EXPORT std::size_t riowrite(int fd, const void* from, std::size_t length, off_t offset, int flags) {
  return static_cast<std::size_t>(
      with(fd, [&](Socket& s) { return s.write_at(from, length, offset, flags); }));
}
