// A datagram socket. The first datagrams to a peer go through a UDP socket of the kernel, with the number of
// a UD queue pair in front; the peer answers with the number of its own, and from then on datagrams go from
// queue pair to queue pair. Both headers name the sender, as programs see it: its UDP socket. A peer that has
// said nothing for a while gets the next ones by UDP again, because it may have begun anew with another queue
// pair, and nobody would tell.
//
//   by UDP           0x55555555 (4) | 4 | 0 data, 7 answer | 16 | 0 | queue pair number (4) | address (4)
//   by queue pair    4 | 8 | port (2) | address (4)                            all big endian
//
// There is one device, so there is one queue pair; "any address" means the device's. Whoever calls looks at
// both ways, so there is no thread. A peer that says something wrong loses that datagram.
#pragma once
#include <netinet/in.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "live/rsockets/link.h"
#include "live/rsockets/socket.h"

namespace weft::live::rsockets {

// As much as a datagram of the queue pair has room for in every implementation, its header included.
constexpr std::uint32_t kSlot = 2048;
constexpr std::uint32_t kGrh = 40;
constexpr std::size_t kUdpHeader = 16;
constexpr std::size_t kUdHeader = 8;
constexpr std::size_t kMostPeers = 1024;

struct Place {
  std::uint32_t address = 0;  // as the network has it
  std::uint16_t port = 0;     // likewise
  auto operator<=>(const Place&) const = default;
};

// Who sent a datagram that came by the queue pair, and where its bytes begin.
std::optional<Place> read_ud_header(const std::uint8_t* from, std::size_t length);
void write_ud_header(const Place& from, std::uint8_t* to);

enum class UdpKind : std::uint8_t { kData = 0, kAnswer = 7 };
struct UdpHeader {
  UdpKind kind = UdpKind::kData;
  std::uint32_t qpn = 0;
  std::uint32_t address = 0;
};
std::optional<UdpHeader> read_udp_header(const std::uint8_t* from, std::size_t length);
void write_udp_header(const UdpHeader& header, std::uint8_t* to);

class Datagrams final : public Socket {
 public:
  Datagrams();
  ~Datagrams() override;

  int descriptor() const override { return udp_; }
  int bind(const sockaddr* address, socklen_t length) override;
  int connect(const sockaddr* address, socklen_t length) override;
  int shutdown(int how) override;
  void close() override;
  ssize_t receive(const iovec* parts, std::size_t count, int flags, Where* from) override;
  ssize_t send(const iovec* parts, std::size_t count, int flags, const Where* to) override;
  int own_name(Where& out) override;
  int peer_name(Where& out) override;
  int set_option(int level, int name, const void* value, socklen_t length) override;
  int get_option(int level, int name, void* value, socklen_t& length) override;
  short ready(short events) override;
  bool enter(Wake& wake) override;
  void leave(const Wake& wake) override;

 private:
  struct Peer {
    ibv_ah* handle = nullptr;  // nullptr: its queue pair is not known
    std::uint32_t qpn = 0;
    Clock::time_point heard{};
  };
  struct Came {
    Place from;
    std::optional<std::uint32_t> slot;  // where it lies, if it came by the queue pair
    std::uint32_t length = 0;
    std::vector<std::uint8_t> bytes;  // if it came by UDP
  };

  template <class Done>
  int await(std::unique_lock<std::mutex>& lock, bool wait, const Done& done,
            const Clock::time_point* until = nullptr);
  // The same for a call that has a time-out, and EAGAIN when it is over.
  template <class Done>
  int await_within(std::unique_lock<std::mutex>& lock, bool wait, const Done& done,
                   const std::optional<Clock::duration>& within);
  void look(bool udp);
  void take_completions();
  void take_udp();
  void took(const std::uint8_t* bytes, std::size_t length, const Place& from);
  void arrived(const ibv_wc& completion);
  void learn(const Place& who, std::uint32_t qpn);
  Peer& peer(const Place& who);
  bool wanted(const Place& from) const { return !connected_ || *connected_ == from; }
  int open(const sockaddr_in& at);
  int open_queue_pair(const in_addr& own);
  void close_queue_pair();
  int post_receive(std::uint32_t slot) const;
  ssize_t send_udp(const Place& to, UdpKind kind, const iovec* parts, std::size_t count, std::size_t total);
  ssize_t send_first(std::unique_lock<std::mutex>& lock, const Place& to, bool wait, const iovec* parts,
                     std::size_t count, std::size_t total);
  ssize_t send_ud(const Peer& to, const iovec* parts, std::size_t count, std::size_t total);
  short what(short events) const;
  void fill(Wake& wake) const;

  int udp_;
  Sizes sizes_;
  bool closed_ = false;
  bool read_shut_ = false;
  bool write_shut_ = false;
  Place own_;
  std::optional<Place> connected_;
  std::optional<Clock::duration> receives_within_;  // SO_RCVTIMEO
  std::optional<Clock::duration> sends_within_;     // SO_SNDTIMEO
  std::uint32_t most_ = kSlot;                      // bytes of a datagram by the queue pair

  std::unique_ptr<CmHandle> handle_;
  std::unique_ptr<Completions> completions_;
  std::unique_ptr<std::uint8_t[]> in_;
  std::unique_ptr<std::uint8_t[]> out_;
  Region in_region_;
  Region out_region_;
  std::vector<std::uint32_t> free_;  // slots of `out_`
  std::deque<Came> came_;
  std::map<Place, Peer> peers_;
  unsigned looks_ = 0;
};

}  // namespace weft::live::rsockets
