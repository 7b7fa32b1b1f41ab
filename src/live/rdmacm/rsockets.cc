// rsockets, sockets over RDMA-CM: not there yet. rsocket() refuses, so no descriptor is one, and calls on
// other descriptors answer as they would over the kernel: EBADF. Waiting works for descriptors of any kind.
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

#include <cerrno>

#include "live/rdmacm/edge.h"

namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

}  // namespace

WEFT_EXPORT int rsocket(int, int, int) { return refuse(EOPNOTSUPP); }
WEFT_EXPORT int rbind(int, const sockaddr*, socklen_t) { return refuse(EBADF); }
WEFT_EXPORT int rlisten(int, int) { return refuse(EBADF); }
WEFT_EXPORT int raccept(int, sockaddr*, socklen_t*) { return refuse(EBADF); }
WEFT_EXPORT int rconnect(int, const sockaddr*, socklen_t) { return refuse(EBADF); }
WEFT_EXPORT int rshutdown(int, int) { return refuse(EBADF); }
WEFT_EXPORT int rclose(int) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rrecv(int, void*, std::size_t, int) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rrecvfrom(int, void*, std::size_t, int, sockaddr*, socklen_t*) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rrecvmsg(int, msghdr*, int) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rsend(int, const void*, std::size_t, int) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rsendto(int, const void*, std::size_t, int, const sockaddr*, socklen_t) {
  return refuse(EBADF);
}
WEFT_EXPORT ssize_t rsendmsg(int, const msghdr*, int) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rread(int, void*, std::size_t) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rreadv(int, const iovec*, int) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rwrite(int, const void*, std::size_t) { return refuse(EBADF); }
WEFT_EXPORT ssize_t rwritev(int, const iovec*, int) { return refuse(EBADF); }
WEFT_EXPORT int rpoll(pollfd* fds, nfds_t count, int timeout) { return poll(fds, count, timeout); }
WEFT_EXPORT int rselect(int count, fd_set* reads, fd_set* writes, fd_set* others, timeval* timeout) {
  return select(count, reads, writes, others, timeout);
}
WEFT_EXPORT int rgetpeername(int, sockaddr*, socklen_t*) { return refuse(EBADF); }
WEFT_EXPORT int rgetsockname(int, sockaddr*, socklen_t*) { return refuse(EBADF); }
WEFT_EXPORT int rsetsockopt(int, int, int, const void*, socklen_t) { return refuse(EBADF); }
WEFT_EXPORT int rgetsockopt(int, int, int, void*, socklen_t*) { return refuse(EBADF); }
WEFT_EXPORT int rfcntl(int, int, ...) { return refuse(EBADF); }
WEFT_EXPORT off_t riomap(int, void*, std::size_t, int, int, off_t) { return refuse(EBADF); }
WEFT_EXPORT int riounmap(int, void*, std::size_t) { return refuse(EBADF); }
WEFT_EXPORT std::size_t riowrite(int, const void*, std::size_t, off_t, int) {
  return static_cast<std::size_t>(refuse(EBADF));
}
