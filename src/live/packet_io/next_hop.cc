// Two questions of rtnetlink(7), each one message and one answer, which is there when the question returns.
#include "live/packet_io/next_hop.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weft::live {
namespace {

constexpr std::uint16_t kSure = NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP;
constexpr std::uint16_t kDoubted = NUD_STALE | NUD_DELAY | NUD_PROBE;

std::uint32_t ipv4_of(const wire::Address& a) {
  std::uint32_t v = 0;
  std::memcpy(&v, &a.bytes[12], sizeof v);
  return v;
}

template <class Header>
struct Question {
  nlmsghdr message{};
  Header header{};
  std::array<char, 64> attributes{};
  std::size_t used = 0;

  void add(std::uint16_t type, std::uint32_t value) {
    rtattr a{};
    a.rta_type = type;
    a.rta_len = RTA_LENGTH(sizeof value);
    std::memcpy(attributes.data() + used, &a, sizeof a);
    std::memcpy(attributes.data() + used + RTA_LENGTH(0), &value, sizeof value);
    used += RTA_SPACE(sizeof value);
  }
  std::size_t bytes() const { return NLMSG_LENGTH(sizeof(Header)) + used; }
};

// Calls `see` for each attribute behind a header of this size.
template <class See>
void for_attributes(const nlmsghdr* m, std::size_t header, See&& see) {
  auto left = static_cast<int>(m->nlmsg_len) - static_cast<int>(NLMSG_SPACE(header));
  const auto* a = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(m) + NLMSG_SPACE(header));
  for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) see(*a);
}

std::uint32_t word_of(const rtattr& a) {
  std::uint32_t v = 0;
  if (RTA_PAYLOAD(&a) >= sizeof v) std::memcpy(&v, RTA_DATA(&a), sizeof v);
  return v;
}

bool ask_device(const std::string& name, unsigned long what, ifreq& request) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  request = {};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  const bool told = ioctl(fd, what, &request) == 0;
  close(fd);
  return told;
}

std::string interface_with(const wire::Address& address) {
  std::string name;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return name;
  for (const ifaddrs* i = list; i != nullptr && name.empty(); i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    std::memcpy(&own, i->ifa_addr, sizeof own);
    if (own.sin_addr.s_addr == ipv4_of(address)) name = i->ifa_name;
  }
  freeifaddrs(list);
  return name.substr(0, name.find(':'));  // an address with a label of its own
}

}  // namespace

Result<EthernetInterface> find_ethernet(const wire::Address& address) {
  constexpr const char* kOtherwise =
      "; name the address of an Ethernet interface (--addr), or take --wire udp";
  if (address.bytes[12] == 127) return fail(std::string("no frames leave a loopback address") + kOtherwise);
  EthernetInterface found;
  found.name = interface_with(address);
  ifreq request{};
  if (found.name.empty() || !ask_device(found.name, SIOCGIFHWADDR, request))
    return fail(std::string("no interface of this machine has that address") + kOtherwise);
  if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
    return fail("interface " + found.name + " is no Ethernet" + kOtherwise);
  std::memcpy(found.address.data(), request.ifr_hwaddr.sa_data, found.address.size());
  found.index = if_nametoindex(found.name.c_str());
  found.mtu =
      ask_device(found.name, SIOCGIFMTU, request) ? static_cast<std::uint32_t>(request.ifr_mtu) : 1500;
  return found;
}

Result<std::unique_ptr<NextHops>> NextHops::open(const EthernetInterface& interface,
                                                 const wire::Address& own) {
  std::unique_ptr<NextHops> hops(new NextHops);
  hops->interface_ = interface;
  hops->own_ = ipv4_of(own);
  hops->fd_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (hops->fd_ < 0) return fail_system("cannot ask the kernel for routes", errno);
  hops->entries_.reserve(kMost);
  return hops;
}

NextHops::~NextHops() {
  if (fd_ >= 0) close(fd_);
}

void NextHops::abandon(int nowhere) { dup3(nowhere, fd_, O_CLOEXEC); }

// False: no answer, or a refusal.
template <class Take>
bool NextHops::ask(const void* request, std::size_t bytes, Take&& take) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd_, request, bytes, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
    return false;
  alignas(nlmsghdr) std::array<char, 4096> answer;
  for (;;) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t n =
        recvfrom(fd_, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    if (from.nl_pid != 0) continue;  // not the kernel's
    auto left = static_cast<unsigned>(n);
    for (const auto* m = reinterpret_cast<const nlmsghdr*>(answer.data()); NLMSG_OK(m, left);
         m = NLMSG_NEXT(m, left)) {
      if (m->nlmsg_seq != sequence_) continue;  // to an earlier question
      if (m->nlmsg_type == NLMSG_ERROR) return false;
      return take(*m);
    }
  }
}

// Whether the host is reached by our interface; then `next` is who gets its frames.
bool NextHops::route(std::uint32_t host, std::uint32_t& next) {
  Question<rtmsg> q;
  q.header.rtm_family = AF_INET;
  q.header.rtm_dst_len = 32;
  q.header.rtm_src_len = 32;
  q.add(RTA_DST, host);
  q.add(RTA_SRC, own_);
  q.message.nlmsg_len = static_cast<std::uint32_t>(q.bytes());
  q.message.nlmsg_type = RTM_GETROUTE;
  q.message.nlmsg_flags = NLM_F_REQUEST;
  q.message.nlmsg_seq = ++sequence_;
  return ask(&q, q.bytes(), [&](const nlmsghdr& m) {
    if (m.nlmsg_type != RTM_NEWROUTE || m.nlmsg_len < NLMSG_SPACE(sizeof(rtmsg))) return false;
    rtmsg header{};
    std::memcpy(&header, NLMSG_DATA(&m), sizeof header);
    if (header.rtm_type != RTN_UNICAST) return false;
    next = host;
    bool ours = false;
    for_attributes(&m, sizeof(rtmsg), [&](const rtattr& a) {
      if (a.rta_type == RTA_OIF) ours = word_of(a) == interface_.index;
      if (a.rta_type == RTA_GATEWAY) next = word_of(a);
      if (a.rta_type == RTA_VIA) next = 0;  // a gateway of another family
    });
    return ours && next != 0;
  });
}

NextHops::State NextHops::neighbour(std::uint32_t host, MacAddress& address) {
  Question<ndmsg> q;
  q.header.ndm_family = AF_INET;
  q.header.ndm_ifindex = static_cast<int>(interface_.index);
  q.add(NDA_DST, host);
  q.message.nlmsg_len = static_cast<std::uint32_t>(q.bytes());
  q.message.nlmsg_type = RTM_GETNEIGH;
  q.message.nlmsg_flags = NLM_F_REQUEST;
  q.message.nlmsg_seq = ++sequence_;
  State state = State::kNone;
  ask(&q, q.bytes(), [&](const nlmsghdr& m) {
    if (m.nlmsg_type != RTM_NEWNEIGH || m.nlmsg_len < NLMSG_SPACE(sizeof(ndmsg))) return false;
    ndmsg header{};
    std::memcpy(&header, NLMSG_DATA(&m), sizeof header);
    bool has_address = false;
    for_attributes(&m, sizeof(ndmsg), [&](const rtattr& a) {
      if (a.rta_type != NDA_LLADDR || RTA_PAYLOAD(&a) != address.size()) return;
      std::memcpy(address.data(), RTA_DATA(&a), address.size());
      has_address = true;
    });
    if (!has_address) return false;
    if ((header.ndm_state & kSure) != 0) state = State::kSure;
    if ((header.ndm_state & kDoubted) != 0) state = State::kDoubted;
    return true;
  });
  return state;
}

// It may change while we run.
MacAddress NextHops::own_address() const {
  ifreq request{};
  MacAddress a = interface_.address;
  if (ask_device(interface_.name, SIOCGIFHWADDR, request))
    std::memcpy(a.data(), request.ifr_hwaddr.sa_data, a.size());
  return a;
}

void NextHops::look(Time now, std::uint32_t host, Entry& entry) {
  entry = {};
  entry.until = now + kBelieved;
  std::uint32_t next = 0;
  if (!route(host, next)) return;
  const State state = neighbour(next, entry.hop.to);
  if (state == State::kNone) {
    entry.until = now + kUnknown;
    return;
  }
  entry.hop.way = Way::kFrame;
  entry.hop.from = own_address();
  entry.doubted = state == State::kDoubted;
}

const NextHops::Hop& NextHops::towards(Time now, const wire::Address& host) {
  const std::uint32_t key = ipv4_of(host);
  auto at = entries_.find(key);
  if (at == entries_.end()) {
    if (entries_.size() >= kMost) entries_.clear();
    at = entries_.try_emplace(key).first;
  }
  Entry& entry = at->second;
  // Time that goes back, as in tests, is a reason to look again.
  if (now >= entry.until || entry.until - now > kBelieved) look(now, key, entry);
  if (!entry.doubted) return entry.hop;
  entry.doubted = false;
  return by_kernel_;
}

}  // namespace weft::live
