#include "live/packet_io/xdp_receiver.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "live/packet_io/ethtool.h"

namespace weft::live {
namespace {

constexpr std::uint32_t kChunks = 8192;  // 32 MB
constexpr std::uint32_t kFewestChunks = 512;
constexpr std::uint32_t kOneChunkMtu = XdpSocket::kChunk - XdpSocket::kHeadroom - kEthernetBytes;

tl::unexpected<Error> of_interface(const EthernetInterface& interface, const Error& e) {
  return tl::unexpected(Error{"interface " + interface.name + ": " + e.message, e.number});
}

}  // namespace

Result<std::unique_ptr<XdpReceiver>> XdpReceiver::open(const EthernetInterface& interface,
                                                       const std::optional<Wanted>& wanted) {
  std::unique_ptr<XdpReceiver> r(new XdpReceiver);
  const std::uint32_t queues = receive_queues(interface.name);
  r->chunks_each_ = std::max(kFewestChunks, std::bit_floor(kChunks / queues));
  std::vector<XdpQueue> targets;
  for (std::uint32_t q = 0; q < queues; ++q) {
    auto socket = XdpSocket::open(interface.index, q, {.chunks = r->chunks_each_});
    if (!socket) return of_interface(interface, socket.error());
    if (!(*socket)->long_frames() && interface.mtu > kOneChunkMtu) {
      return fail("interface " + interface.name + " has an MTU of " + std::to_string(interface.mtu) +
                  ", and this kernel's AF_XDP takes at most " + std::to_string(kOneChunkMtu) + "; lower it");
    }
    targets.push_back({q, (*socket)->descriptor()});
    r->sockets_.push_back(std::move(*socket));
  }
  if (queues > 1) {
    r->epoll_ = epoll_create1(EPOLL_CLOEXEC);
    for (const XdpQueue& t : targets) {
      epoll_event readable{};
      readable.events = EPOLLIN;
      if (r->epoll_ < 0 || epoll_ctl(r->epoll_, EPOLL_CTL_ADD, t.socket, &readable) != 0)
        return fail_system("cannot wait for several AF_XDP sockets", errno);
    }
  }
  auto program = XdpProgram::attach(interface.index, targets, wanted, interface.address);
  if (!program) return of_interface(interface, program.error());
  r->program_ = std::move(*program);
  return r;
}

XdpReceiver::~XdpReceiver() {
  if (epoll_ >= 0) close(epoll_);
}

std::span<const RawFrame> XdpReceiver::receive() {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    XdpSocket& socket = *sockets_[turn_];
    turn_ = turn_ + 1 == sockets_.size() ? 0 : turn_ + 1;
    if (const auto frames = socket.receive(); !frames.empty()) return frames;
  }
  return {};
}

std::uint32_t XdpReceiver::chunks() const {
  return chunks_each_ * static_cast<std::uint32_t>(sockets_.size());
}

std::uint64_t XdpReceiver::lost() const {
  std::uint64_t sum = 0;
  for (const auto& s : sockets_) sum += s->lost();
  return sum;
}

void XdpReceiver::abandon(int nowhere) {
  program_->abandon(nowhere);
  for (const auto& s : sockets_) s->abandon(nowhere);
  if (epoll_ >= 0) dup3(nowhere, epoll_, O_CLOEXEC);
}

}  // namespace weft::live
