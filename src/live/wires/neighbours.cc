#include "live/wires/neighbours.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/wire/ip.h"
#include "live/wires/entropy.h"
#include "live/wires/local_sockets.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

constexpr std::size_t kLargestTrain = 65536;
constexpr std::size_t kMostAtOnce = 16;
constexpr int kBacklog = 64;
constexpr const char* kRegister = "/proc/net/unix";
// Reading the register takes long beside a frame, so strangers' frames cause it no more often than this.
constexpr Duration kToAllEvery = milliseconds(1);
constexpr Duration kKnownFor = milliseconds(100);  // who is there
constexpr Duration kBeginsFor = milliseconds(10);  // whether one of them has just begun
constexpr int kNobody = -1;                        // what reach() answers
constexpr int kNotNow = -2;
constexpr int kRoom =
    4 << 20;  // of what waits for a neighbour that is not looking; the system may grant less

// The names that begin with `prefix`, without it. Whose they are is not said here.
std::vector<std::string> names_behind(const std::string& prefix) {
  std::vector<std::string> out;
  std::FILE* const f = std::fopen(kRegister, "re");
  if (f == nullptr) return out;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), f) != nullptr) {
    const char* const at = std::strchr(line.data(), '@');
    if (at == nullptr || std::strncmp(at + 1, prefix.data(), prefix.size()) != 0) continue;
    std::string name(at + 1 + prefix.size());
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    out.push_back(std::move(name));
  }
  std::fclose(f);
  return out;
}

bool number(std::string_view text, std::uint8_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

// In front of the bytes of a train that is handed over. Both ends are of one build or refuse: `form`.
struct Neighbours::Message {
  static constexpr std::uint32_t kForm = 0x7765'6601;

  std::uint32_t form = kForm;
  std::uint32_t frame_size = 0;
  wire::Address source;
  std::uint16_t source_port = 0;
  std::uint8_t tos = 0;
  std::uint8_t ttl = 0;
};

bool Neighbours::users_differ() {
  const auto first_line = [](const char* file) {
    std::array<char, 64> line{};
    if (std::FILE* const f = std::fopen(file, "re"); f != nullptr) {
      if (std::fgets(line.data(), line.size(), f) == nullptr) line[0] = 0;
      std::fclose(f);
    }
    return std::string(line.data());
  };
  // Inside, outside, how many: this line maps every user there can be.
  unsigned long inside = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  const std::string map = first_line("/proc/self/uid_map");
  const int fields = std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count);
  if (fields == 3 && count == 4294967295UL) return true;
  const std::string unknown = first_line("/proc/sys/kernel/overflowuid");
  return geteuid() != (unknown.empty() ? 65534UL : std::strtoul(unknown.c_str(), nullptr, 10));
}

Neighbours::Neighbours() : door_(std::make_unique<Doorkeeper>()) {}

Result<std::unique_ptr<Neighbours>> Neighbours::join(const wire::Address& address, std::uint16_t port,
                                                     std::uint8_t wanted) {
  std::unique_ptr<Neighbours> n(new Neighbours);
  n->reached_.fill(-1);
  n->v4_ = wire::is_v4_mapped(address);
  n->prefix_ = names_of(to_text(address), port);
  n->waiting_ = epoll_create1(EPOLL_CLOEXEC);
  if (n->waiting_ < 0) return fail_system("cannot open an epoll", errno);
  // A process that begins anew should not get the queue pair numbers of the one before.
  constexpr unsigned kCount = kSlots - 1;
  const unsigned first = unpredictable<std::uint32_t>() % kCount;
  for (unsigned i = 0; i < (wanted != 0 ? 1U : kCount); ++i) {
    const std::uint8_t slot = wanted != 0 ? wanted : static_cast<std::uint8_t>(1U + (first + i) % kCount);
    n->mailbox_ = n->listen_at(n->prefix_ + "slot/" + std::to_string(slot));
    if (n->mailbox_ >= 0) {
      n->slot_ = slot;
      n->bytes_.resize(kMostAtOnce * (kLargestTrain + sizeof(Message)));
      n->trains_.reserve(kMostAtOnce);
      return n;
    }
    if (errno != EADDRINUSE) return fail_system("cannot open a Unix socket", errno);
  }
  if (wanted != 0)
    return fail("slot " + std::to_string(wanted) + " of " + to_text(address) + " is another process's");
  return fail("254 processes use " + to_text(address) + " already; give this one an address of its own");
}

Neighbours::~Neighbours() {
  for (int* const fd : {&mailbox_, &announced_, &waiting_, &beginning_}) close_and_forget(*fd);
  for (const auto& [number, service] : services_) close(service.fd);
  for (int& fd : reached_) close_and_forget(fd);
  for (const int fd : taken_from_) close(fd);
}

void Neighbours::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(waiting_, EPOLL_CTL_ADD, fd, &event);
}

void Neighbours::abandon(int nowhere) {
  abandoned_ = true;
  const auto lead = [nowhere](int fd) {
    if (fd >= 0) dup3(nowhere, fd, O_CLOEXEC);
  };
  for (const int fd : {mailbox_, announced_, waiting_, beginning_}) lead(fd);
  for (const auto& [number, service] : services_) lead(service.fd);
  for (const int fd : reached_) lead(fd);
  for (const int fd : taken_from_) lead(fd);
}

int Neighbours::listen_at(const std::string& text) {
  const int fd = open_local_socket();
  if (fd < 0) return -1;
  const LocalName name(text);
  if (bind(fd, name.generic(), name.size) != 0 || listen(fd, kBacklog) != 0) {
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
  }
  watch(fd);
  return fd;
}

// A connection, or kNobody, or kNotNow: whoever has the name has no room, or we have no descriptor.
int Neighbours::reach(const std::string& text) const {
  const int fd = open_local_socket();
  if (fd < 0) return kNotNow;
  const LocalName name(text);
  const bool there = connect(fd, name.generic(), name.size) == 0;
  const bool nobody = !there && (errno == ECONNREFUSED || errno == EPROTOTYPE);
  if (there && is_ours(fd)) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kRoom, sizeof kRoom);
    return fd;
  }
  close(fd);
  return there || nobody ? kNobody : kNotNow;
}

bool Neighbours::readable() const { return access(kRegister, R_OK) == 0; }

std::vector<Place> Neighbours::places() const {
  std::vector<Place> out;
  for (const std::string& name : names_behind(prefix_ + "at/")) {
    const std::size_t cut = name.find('/');
    Place p;
    if (cut == std::string::npos || !number({name.data(), cut}, p.slot) ||
        !number(std::string_view(name).substr(cut + 1), p.index))
      continue;
    const auto same = std::find_if(out.begin(), out.end(), [&](const Place& o) { return o.slot == p.slot; });
    if (same == out.end()) out.push_back(p);
  }
  return out;
}

std::vector<std::uint8_t> Neighbours::others() const {
  std::vector<std::uint8_t> out;
  for (const std::string& name : names_behind(prefix_ + "slot/")) {
    std::uint8_t slot = 0;
    // A mailbox has a line for its name and one for each connection to it.
    if (number(name, slot) && slot != slot_ && std::find(out.begin(), out.end(), slot) == out.end())
      out.push_back(slot);
  }
  return out;
}

void Neighbours::announce(std::uint8_t index) {
  close_and_forget(announced_);
  announced_ = open_local_socket();
  const LocalName name(prefix_ + "at/" + std::to_string(slot_) + "/" + std::to_string(index));
  if (announced_ >= 0 && bind(announced_, name.generic(), name.size) != 0) close_and_forget(announced_);
}

bool Neighbours::send(int fd, const RxTrain& train) {
  Message head;
  head.frame_size = train.frame_size;
  head.source = train.source;
  head.source_port = train.source_port;
  head.tos = train.tos;
  head.ttl = train.ttl;
  iovec parts[] = {{&head, sizeof head}, {train.data, train.bytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void Neighbours::pair_with(Neighbours& twin) {
  twin_ = &twin;
  twin.twin_ = this;
}

Neighbours& Neighbours::of_train(const RxTrain& train) {
  return twin_ != nullptr && wire::is_v4_mapped(train.source) != v4_ ? *twin_ : *this;
}

void Neighbours::hand_to_slot(std::uint8_t slot, const RxTrain& train) {
  if (Neighbours& n = of_train(train); &n != this) return n.hand_to_slot(slot, train);
  int& fd = reached_[slot];
  // A connection that broke is to a process that is gone; another may have its slot by now.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (fd < 0) fd = reach(prefix_ + "slot/" + std::to_string(slot));
    if (fd < 0) break;
    if (send(fd, train)) {
      ++counters_.handed;
      return;
    }
    if (errno == EAGAIN || errno == EMSGSIZE) break;
    close_and_forget(fd);
  }
  ++counters_.lost;
}

void Neighbours::hand_to_all(Time now, const RxTrain& train) {
  if (Neighbours& n = of_train(train); &n != this) return n.hand_to_all(now, train);
  if (now < next_to_all_) {
    ++counters_.lost;
    return;
  }
  next_to_all_ = now + kToAllEvery;
  if (now >= known_until_) {
    known_until_ = now + kKnownFor;
    known_ = others();
  }
  for (const std::uint8_t slot : known_) hand_to_slot(slot, train);
}

namespace {
std::string name_of(std::uint32_t service) {
  return "service/" + std::to_string(service >> 16U) + ":" + std::to_string(service & 0xFFFFU);
}
}  // namespace

bool Neighbours::hand_to_service(Time now, std::uint32_t service, const RxTrain& train) {
  if (Neighbours& n = of_train(train); &n != this) return n.hand_to_service(now, service, train);
  const int fd = reach(prefix_ + name_of(service));
  if (fd == kNobody && !one_begins(now)) return false;
  if (fd < 0) {
    ++counters_.lost;
    return true;
  }
  ++(send(fd, train) ? counters_.handed : counters_.lost);
  close(fd);
  return true;
}

void Neighbours::begins(Time until) {
  begins_here(until);
  if (twin_ != nullptr) twin_->begins_here(until);
}

void Neighbours::begins_here(Time until) {
  beginning_ = listen_at(prefix_ + "beginning/" + std::to_string(slot_));
  begins_until_ = until;
  next_due_ = std::min(next_due_, until);
}

// A name alone may be another user's.
bool Neighbours::one_begins(Time now) {
  if (now < one_begins_until_) return one_begins_;
  one_begins_until_ = now + kBeginsFor;
  one_begins_ = false;
  for (const std::string& slot : names_behind(prefix_ + "beginning/")) {
    const int fd = reach(prefix_ + "beginning/" + slot);
    if (fd >= 0) close(fd);
    one_begins_ = one_begins_ || fd != kNobody;
  }
  return one_begins_;
}

Outcome<void> Neighbours::claim(std::uint32_t service) {
  const auto here = claim_here(service);
  if (!here || twin_ == nullptr) return here;
  Outcome<void> there = fail(Errc::kNoMemory);
  try {
    there = twin_->claim_here(service);
  } catch (const std::bad_alloc&) {
  }
  if (!there) unclaim(service);
  return there;
}

Outcome<void> Neighbours::claim_here(std::uint32_t service) {
  if (abandoned_) return fail(Errc::kNoMemory);
  Service& s = services_[service];
  if (s.fd < 0) s.fd = listen_at(prefix_ + name_of(service));
  if (s.fd < 0) {
    const int why = errno;
    services_.erase(service);
    if (why == EMFILE || why == ENFILE) return fail(Errc::kNoDescriptor);
    return fail(why == EADDRINUSE ? Errc::kBusy : Errc::kNoMemory);
  }
  ++s.claims;
  return {};
}

void Neighbours::give_back(std::uint32_t service, Time until) {
  give_back_here(service, until);
  if (twin_ != nullptr) twin_->give_back_here(service, until);
}

// As if it had never been claimed.
void Neighbours::unclaim(std::uint32_t service) {
  const auto it = services_.find(service);
  if (it == services_.end() || --it->second.claims != 0) return;
  if (it->second.until != kNever) return;  // given back before, and kept for a while
  close(it->second.fd);
  services_.erase(it);
}

void Neighbours::give_back_here(std::uint32_t service, Time until) {
  const auto it = services_.find(service);
  if (it == services_.end() || --it->second.claims != 0) return;
  it->second.until = until;
  next_due_ = std::min(next_due_, until);
}

void Neighbours::forget_services(Time now) {
  if (now < next_due_) return;
  next_due_ = kNever;
  if (begins_until_ <= now) {
    close_and_forget(beginning_);
    begins_until_ = kNever;
  }
  next_due_ = begins_until_;
  for (auto it = services_.begin(); it != services_.end();) {
    const Service& s = it->second;
    if (s.claims == 0 && s.until <= now) {
      close(s.fd);
      it = services_.erase(it);
      continue;
    }
    if (s.claims == 0) next_due_ = std::min(next_due_, s.until);
    ++it;
  }
}

void Neighbours::accept_from(int listener) {
  for (int i = 0; i <= kBacklog; ++i) {
    const int fd = door_->next(listener);
    if (fd < 0) return;
    taken_from_.push_back(fd);
    watch(fd);
  }
}

std::span<const RxTrain> Neighbours::receive() {
  trains_.clear();
  std::array<epoll_event, kMostAtOnce> events;
  const int ready = epoll_wait(waiting_, events.data(), static_cast<int>(events.size()), 0);
  std::uint8_t* at = bytes_.data();
  for (int i = 0; i < ready; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    const bool listens =
        fd == mailbox_ || fd == beginning_ ||
        std::any_of(services_.begin(), services_.end(), [fd](const auto& s) { return s.second.fd == fd; });
    if (listens) {
      accept_from(fd);
      continue;
    }
    const auto from = std::find(taken_from_.begin(), taken_from_.end(), fd);
    if (from == taken_from_.end()) continue;
    while (trains_.size() < kMostAtOnce) {
      Message head;
      iovec parts[] = {{&head, sizeof head}, {at, kLargestTrain}};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = std::size(parts);
      const ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (n <= 0) {
        taken_from_.erase(from);
        close(fd);
        break;
      }
      const auto bytes = static_cast<std::uint32_t>(n) - static_cast<std::uint32_t>(sizeof head);
      if (static_cast<std::size_t>(n) <= sizeof head || head.form != Message::kForm || head.frame_size == 0)
        continue;
      RxTrain train{at,       bytes,   std::min(head.frame_size, bytes), head.source, head.source_port,
                    head.tos, head.ttl};
      train.handed = true;
      trains_.push_back(train);
      ++counters_.taken;
      at += bytes;
    }
  }
  return trains_;
}

}  // namespace weft::live
