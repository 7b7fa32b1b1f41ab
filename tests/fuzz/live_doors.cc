// See live_doors.h.
#include "tests/fuzz/live_doors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/base/check.h"
#include "live/wires/local_sockets.h"
#include "live/wires/sockets.h"

namespace weft::fuzz {
namespace {

constexpr std::uint16_t kPort = 4791;
constexpr int kLooks = 4;           // by the ring and by the socket in turns, and one that finds nothing
constexpr int kMostLooks = 10'000;  // a ring has no room for more trains

wire::Address real(std::uint8_t n) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return wire::Address::v4(127, static_cast<std::uint8_t>(1U + (pid >> 8U) % 254U),
                           static_cast<std::uint8_t>(pid), n);
}

// What a ring is given with (live/wires/shared_links.cc); the test of hostile rings has it, too.
struct Hello {
  std::uint32_t form = 0x7765'6602;
  wire::Address source = real(2);
  std::uint64_t bytes = live::ring::kBytes;
};

int socket_at(const wire::Address& address, std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const live::SocketAddress self = live::to_sockaddr(address, port);
  live::set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  if (bind(fd, self.generic(), self.size()) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

struct Doors::Sending {
  std::array<int, kSources> sockets{-1, -1, -1, -1};
  int memory = -1;                         // of the ring, used again
  std::optional<live::SharedMemory> ours;  // the same, where the input scribbles
  int link = -1;

  ~Sending() {
    for (int& fd : sockets) live::close_and_forget(fd);
    live::close_and_forget(memory);
    live::close_and_forget(link);
  }
};

Doors::Doors() : from_(std::make_unique<Sending>()) {}
Doors::~Doors() = default;

Doors* Doors::open() {
  static std::unique_ptr<Doors> doors;
  const auto none = [](const std::string& why) -> Doors* {
    std::fprintf(stderr, "live: trains come by memory alone: %s\n", why.c_str());
    return nullptr;
  };
  auto wire = live::ShmWire::open(real(1), kPort, {.receive_buffer = 1U << 20U, .slot = kSlot});
  if (!wire) return none(wire.error().message);
  auto beside = live::UdpWire::open(real(1), kPort, {.receive_buffer = 1U << 20U, .slot = kBeside});
  if (!beside) return none(beside.error().message);
  if ((*wire)->facts().slot != kSlot) return none("processes cannot share an address here");
  doors.reset(new Doors);
  doors->wire_ = std::move(*wire);
  doors->beside_ = std::move(*beside);
  doors->wire_->show_headers();
  Sending& from = *doors->from_;
  from.sockets = {socket_at(real(2), kPort), socket_at(real(3), kPort), socket_at(real(2), 0),
                  socket_at(real(3), 0)};
  from.memory = memfd_create("fuzz-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (from.memory < 0 || ftruncate(from.memory, static_cast<off_t>(live::ring::kBytes)) != 0 ||
      fcntl(from.memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return none("no memory can be shared");
  from.ours.emplace(from.memory, live::ring::kBytes);
  // A door that is shut would hide whatever could come by it.
  std::vector<std::uint8_t> frame(64, 0x0A);
  frame[live::kSlotOffset] = kSlot;
  for (const bool shared : {false, true}) {
    CHECK(shared ? doors->send_shared({.bytes = frame, .frame_size = 64, .destination = {}})
                 : doors->send_udp(0, frame, 64));
    std::size_t came = 0;
    for (int i = 0; i < kMostLooks && came == 0; ++i) {
      came = doors->receive().size();
      doors->looks_ = kLooks;
      if (came == 0) usleep(1000);  // on a crowded machine the kernel delivers later
    }
    CHECK_OP(came, ==, 1U);
  }
  doors->end_input();
  return doors.get();
}

bool Doors::send_udp(std::uint8_t source, std::span<const std::uint8_t> train, std::uint32_t frame_size) {
  looks_ = kLooks;
  const live::SocketAddress to = live::to_sockaddr(real(1), kPort);
  iovec iov{const_cast<std::uint8_t*>(train.data()), train.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  msghdr m{};
  m.msg_name = const_cast<sockaddr*>(to.generic());
  m.msg_namelen = to.size();
  m.msg_iov = &iov;
  m.msg_iovlen = 1;
  if (frame_size < train.size()) {
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto size = static_cast<std::uint16_t>(frame_size);
    std::memcpy(CMSG_DATA(c), &size, sizeof size);
  }
  return sendmsg(from_->sockets[source % kSources], &m, MSG_DONTWAIT) >= 0;
}

bool Doors::give_ring() {
  Sending& from = *from_;
  std::memset(from.ours->data(), 0, live::ring::kHead);
  from.link = live::open_local_socket();
  const live::LocalName name(live::names_of(live::to_text(real(1)), kPort) + "shared/" +
                             std::to_string(kSlot));
  if (connect(from.link, name.generic(), name.size) != 0) return false;
  Hello hello;
  iovec part{&hello, sizeof hello};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control.data();
  m.msg_controllen = control.size();
  cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &from.memory, sizeof(int));
  if (sendmsg(from.link, &m, MSG_NOSIGNAL) != sizeof hello) return false;
  ring_.emplace(live::SharedMemory(from.memory, live::ring::kBytes));
  return true;
}

bool Doors::send_shared(const live::TxTrain& train) {
  looks_ = kLooks;
  return (ring_ || give_ring()) && ring_->write(train);
}

void Doors::lie(const Lie& lie) {
  constexpr std::uint64_t kLine =
      64;  // a record has one, and a train begins a new one (live/wires/shared_ring.cc)
  constexpr std::size_t kTakenAt = 64;
  looks_ = kLooks;
  if (!ring_ && !give_ring()) return;
  std::uint8_t* const head = from_->ours->data();
  const auto put = [&](std::uint64_t place, std::uint32_t bytes, std::uint32_t frame_size) {
    const std::uint32_t record[] = {bytes, frame_size};
    std::memcpy(head + live::ring::kHead + place % live::ring::kRoom, record, sizeof record);
  };
  std::uint64_t written = 0;
  for (std::uint32_t n = 0; n < lie.trains; ++n) {
    put(written, lie.bytes, lie.bytes);
    written += (8 + lie.bytes + kLine) / kLine * kLine;
  }
  put(written, lie.last_bytes, lie.last_frame_size);
  written += lie.more;
  std::memcpy(head, &written, sizeof written);
  std::memcpy(head + kTakenAt, &lie.taken, sizeof lie.taken);
}

std::span<const live::RxTrain> Doors::receive() {
  trains_.clear();
  while (looks_ > 0 && trains_.empty()) {
    now_ = now_ + milliseconds(1);
    static_cast<void>(beside_->receive(now_));
    const auto got = wire_->receive(now_);
    trains_.assign(got.begin(), got.end());
    if (trains_.empty()) --looks_;
  }
  for (live::RxTrain& t : trains_) {
    for (const std::uint8_t n : {std::uint8_t{2}, std::uint8_t{3}}) {
      if (t.source == real(n)) t.source = plain(n);
    }
  }
  return trains_;
}

void Doors::end_input() {
  if (ring_) {
    ring_.reset();
    live::close_and_forget(from_->link);
    looks_ = kLooks;
  }
  for (int i = 0; i < kMostLooks && looks_ > 0; ++i) static_cast<void>(receive());
  CHECK_OP(looks_, ==, 0);
}

}  // namespace weft::fuzz
