#include "live/wires/shared_links.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "live/wires/local_sockets.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

constexpr Duration kAskAgain = milliseconds(100);
constexpr Duration kLongestPause = seconds(60);
constexpr int kMostBells = 16;  // taken at once
constexpr int kBacklog = 256;
constexpr int kMostAccepted = 32;  // at once
constexpr std::size_t kMostEvents = 64;
// Each is half a megabyte. As many as an address has processes; who is one too many goes by UDP.
constexpr std::size_t kMostRings = 256;
constexpr std::size_t kMostPeers = 4096;

// With the ring's descriptor beside it. Both ends are of one build or refuse.
struct Hello {
  static constexpr std::uint32_t kForm = 0x7765'6602;
  std::uint32_t form = kForm;
  wire::Address source;
  std::uint64_t bytes = ring::kBytes;
};

std::string name_of(const wire::Address& address, std::uint16_t port, std::uint8_t slot) {
  return names_of(to_text(address), port) + "shared/" + std::to_string(slot);
}

// A file of memory of a ring's size, which nobody can make smaller. -1: there is none. Its pages are asked
// for now, because later there is nobody to say no to. A limit on the size of files holds for it, too, and
// who passes it gets a signal.
int make_memory() {
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < ring::kBytes) return -1;
  int fd = memfd_create("weft-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 && (posix_fallocate(fd, 0, ring::kBytes) != 0 ||
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0))
    close_and_forget(fd);
  return fd;
}

bool send_hello(int to, const Hello& hello, int memory) {
  Hello copy = hello;
  iovec part{&copy, sizeof copy};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &memory, sizeof memory);
  return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof copy;
}

// What came with one message.
struct Received {
  ssize_t bytes = -1;
  int error = 0;
  Hello hello;
  int memory = -1;
};

Received receive_hello(int from) {
  Received got;
  iovec part{&got.hello, sizeof got.hello};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  got.bytes = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  got.error = errno;
  if (got.bytes < 0) return got;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      if (got.memory >= 0) close(got.memory);
      got.memory = fd;
    }
  }
  return got;
}

bool is_ring(int memory) {
  const int seals = fcntl(memory, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
         lseek(memory, 0, SEEK_END) >= static_cast<off_t>(ring::kBytes);
}

}  // namespace

SharedLinks::SharedLinks() : door_(std::make_unique<Doorkeeper>()) {}

Result<std::unique_ptr<SharedLinks>> SharedLinks::open(const wire::Address& address, std::uint16_t port,
                                                       std::uint8_t slot, IsLocal is_local,
                                                       const void* wire) {
  std::unique_ptr<SharedLinks> links(new SharedLinks);
  links->address_ = address;
  links->port_ = port;
  links->is_local_ = is_local;
  // All that are ever held, so that looking for them takes no memory.
  links->in_.reserve(kMostRings);
  links->strangers_.reserve(kMostRings);
  links->wire_ = wire;
  links->waiting_ = epoll_create1(EPOLL_CLOEXEC);
  if (links->waiting_ < 0) return fail_system("cannot open an epoll", errno);
  links->call_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (links->call_ < 0 || !links->watch(links->call_)) return fail_system("cannot open an eventfd", errno);
  links->listener_ = open_local_socket();
  const LocalName name(name_of(address, port, slot));
  if (links->listener_ < 0 || bind(links->listener_, name.generic(), name.size) != 0 ||
      listen(links->listener_, kBacklog) != 0)
    return fail_system("cannot take rings of this host's processes", errno);
  if (!links->watch(links->listener_)) return fail("cannot watch a Unix socket");
  return links;
}

SharedLinks::~SharedLinks() {
  for (int* const fd : {&listener_, &call_, &waiting_}) close_and_forget(*fd);
  for (const auto& [key, peer] : peers_) {
    if (peer.link != nullptr) close(peer.link->fd);
  }
  for (const LinkIn& link : in_) close(link.fd);
  for (const int fd : strangers_) close(fd);
}

void SharedLinks::abandon(int nowhere) {
  abandoned_ = true;
  const auto lead = [nowhere](int fd) {
    if (fd >= 0) dup3(nowhere, fd, O_CLOEXEC);
  };
  for (const int fd : {listener_, call_, waiting_}) lead(fd);
  for (const auto& [key, peer] : peers_) {
    if (peer.link != nullptr) lead(peer.link->fd);
  }
  for (const LinkIn& link : in_) lead(link.fd);
  for (const int fd : strangers_) lead(fd);
}

bool SharedLinks::watch(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  return epoll_ctl(waiting_, EPOLL_CTL_ADD, fd, &event) == 0;
}

std::size_t SharedLinks::Hash::operator()(const Key& k) const {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::memcpy(&a, k.address.bytes.data(), sizeof a);
  std::memcpy(&b, k.address.bytes.data() + sizeof a, sizeof b);
  return (a ^ (b + k.slot) * 0x9E37'79B9'7F4A'7C15ULL) * 0xC2B2'AE3D'27D4'EB4FULL;
}

// A program that has no memory left sends: whom there is no room to remember gets its trains by UDP. Nor does
// whoever answers strangers of the network remember each of them for ever.
bool SharedLinks::remember(const Key& key) {
  if (last_key_ != nullptr && *last_key_ == key) return true;
  if (peers_.size() >= kMostPeers) {
    last_key_ = nullptr;
    std::erase_if(peers_, [](const auto& peer) { return peer.second.link == nullptr; });
  }
  try {
    const auto at = peers_.try_emplace(key).first;
    last_key_ = &at->first;
    last_ = &at->second;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

LinkOut* SharedLinks::towards(Time now, const wire::Address& address, std::uint8_t slot) {
  const Key key{address, slot};
  if (abandoned_ || !remember(key)) return nullptr;
  Peer& peer = *last_;
  if (peer.link == nullptr && now >= peer.ask_again) {
    peer.ask_again = now + std::max(kAskAgain, peer.pause);
    if (is_local_(wire_, address)) peer.link = reach(key);
    if (peer.link != nullptr && !watch(peer.link->fd)) {
      close(peer.link->fd);
      peer.link.reset();
    }
  }
  return peer.link.get();
}

std::unique_ptr<LinkOut> SharedLinks::reach(const Key& key) const {
  int fd = open_local_socket();
  if (fd < 0) return nullptr;
  const LocalName name(name_of(key.address, port_, key.slot));
  std::unique_ptr<LinkOut> link;
  if (connect(fd, name.generic(), name.size) == 0 && is_ours(fd)) {
    int memory = make_memory();
    SharedMemory mapped = memory < 0 ? SharedMemory() : SharedMemory(memory, ring::kBytes);
    Hello hello;
    hello.source = address_;
    if (mapped && send_hello(fd, hello, memory))
      link.reset(new (std::nothrow) LinkOut{fd, RingWriter(std::move(mapped)), key.address});
    close_and_forget(memory);
  }
  if (link == nullptr) close_and_forget(fd);
  return link;
}

void SharedLinks::call() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(call_, &one, sizeof one);
}

void SharedLinks::hush() const {
  std::uint64_t all = 0;
  [[maybe_unused]] const ssize_t n = read(call_, &all, sizeof all);
}

// One message is as good as many: a bell that is full has been heard, or will be.
void SharedLinks::ring_bell(const LinkOut& link) const {
  const char one = 1;
  [[maybe_unused]] const ssize_t n = send(link.fd, &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// The epoll is told, for a file lives on, and reports, in a child that was just forked.
void SharedLinks::drop(int fd) {
  epoll_ctl(waiting_, EPOLL_CTL_DEL, fd, nullptr);
  for (auto& [key, peer] : peers_) {
    if (peer.link == nullptr || peer.link->fd != fd) continue;
    const bool refused = peer.link->ring.untouched();
    peer.pause = refused ? std::min(std::max(kAskAgain, peer.pause * 2), kLongestPause) : Duration{};
    if (refused) keep_refused(std::move(peer.link));
    peer.link.reset();
  }
  std::erase_if(in_, [fd](const LinkIn& link) { return link.fd == fd; });
  std::erase(strangers_, fd);
  close(fd);
}

// What was written to it is lost, as in a network, where there is no memory for it.
void SharedLinks::keep_refused(std::unique_ptr<LinkOut> link) {
  try {
    refused_.push_back(std::move(link));
  } catch (const std::bad_alloc&) {
  }
}

void SharedLinks::accept_some() {
  for (int i = 0; i < kMostAccepted; ++i) {
    const int fd = door_->next(listener_);
    if (fd < 0) return;
    if (in_.size() + strangers_.size() >= kMostRings) {
      close(fd);
      continue;
    }
    strangers_.push_back(fd);
    if (!watch(fd) || !take_ring(fd)) drop(fd);
  }
}

// False: the connection is no good. True: it has given its ring, or nothing yet.
bool SharedLinks::take_ring(int fd) {
  Received got = receive_hello(fd);
  if (got.bytes < 0 && (got.error == EAGAIN || got.error == EINTR)) return true;
  const Hello expected{.source = got.hello.source};
  const bool good = got.bytes == sizeof(Hello) && got.hello.form == expected.form &&
                    got.hello.bytes == expected.bytes && got.memory >= 0 && is_ring(got.memory) &&
                    is_local_(wire_, got.hello.source);
  SharedMemory mapped = good ? SharedMemory(got.memory, ring::kBytes) : SharedMemory();
  close_and_forget(got.memory);
  if (!mapped) return false;
  std::erase(strangers_, fd);
  in_.push_back({fd, RingReader(std::move(mapped)), got.hello.source});
  return true;
}

void SharedLinks::look() {
  std::array<epoll_event, kMostEvents> events;
  const int ready = epoll_wait(waiting_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener_) {
      accept_some();
      continue;
    }
    if (std::find(strangers_.begin(), strangers_.end(), fd) != strangers_.end()) {
      if (!take_ring(fd)) drop(fd);
      continue;
    }
    // A bell, or the end. What a process wrote before it ended is still read.
    const auto from =
        std::find_if(in_.begin(), in_.end(), [fd](const LinkIn& link) { return link.fd == fd; });
    const bool known = from != in_.end() || std::any_of(peers_.begin(), peers_.end(), [fd](const auto& p) {
                         return p.second.link != nullptr && p.second.link->fd == fd;
                       });
    if (!known) continue;
    std::array<char, 16> bells;
    ssize_t n = 1;
    for (int k = 0; k < kMostBells && n > 0; ++k) n = recv(fd, bells.data(), bells.size(), MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) continue;
    if (from != in_.end() && from->ring.waiting()) continue;
    drop(fd);
  }
}

}  // namespace weft::live
