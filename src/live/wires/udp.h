// RoCEv2 over an ordinary UDP socket: no root, no raw frames, any kernel from 4.18 on.
//
// The socket is bound and never connected, with IP_MTU_DISCOVER = DO: only then does the kernel write
// predictable IPv4 identifications (0, or the segment index under UDP_SEGMENT), which the ICRC covers
// (docs/protocol/icrc.md#the-ipv4-identification). Trains leave through UDP_SEGMENT and arrive through
// UDP_GRO, whose control message gives the segment size; where the kernel or the device lacks UDP_SEGMENT,
// frames leave one by one through sendmmsg. How many segments one call takes (64, or 128 on newer kernels) is
// probed on a scratch socket, because no option tells.
//
// Source port. A socket's source port is its bound port, and RoCEv2 fixes the destination port. So with one
// socket per process the source port is 4791 for all peers. More source ports would spread flows over more
// ways of a network. They need more sockets, bound to other ports and used for sending only; the receiver
// sees them in `source_port`, and its ICRC already takes the port from the packet.
//
// A packet from an address of this host comes from another soft NIC there, whose port is ours, or from a
// program that has bound that address with another port: such a train is called a stray. Other hosts may
// number their ports as they like.
//
// The address is of IPv4 or of IPv6, and so is the socket. IPv6 has no identification to be predicted, and a
// UDP checksum, which the kernel or the device computes; received ones may be 0, as hardware sends them
// (UDP_NO_CHECK6_RX). The flow label that leaves is 0, and one that arrives is not seen. A link-local address
// (fe80::/10) means our own interface, which is found by the address: so only one interface may have it.
//
// Several processes of one user share an address (SO_REUSEPORT; another user's are refused by bind()). The
// kernel steers each train to the process whose slot its queue pair number has (steering.h); one that comes
// to the wrong process all the same is handed over (neighbours.h). place_finder.h keeps the kernel informed.
#pragma once
#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "live/wires/groups.h"
#include "live/wires/neighbours.h"
#include "live/wires/place_finder.h"
#include "live/wires/wire.h"

namespace weft::live {

struct UdpOptions {
  std::uint32_t receive_buffer = 32U << 20U;  // asked for; the system may grant less
  std::uint32_t send_buffer = 4U << 20U;
  bool segmentation = true;  // false: as on a kernel without UDP_SEGMENT
  bool shared = true;        // other processes may have the same address
  std::uint8_t slot = 0;     // ours among them; 0: any that is free
};

struct FamilyOptions;  // sockets.h

class UdpWire final : public Wire {
 public:
  // `port` is ours and every peer's: 4791, except in tests.
  static Result<std::unique_ptr<UdpWire>> open(const wire::Address& address, std::uint16_t port,
                                               const UdpOptions& options = {});
  ~UdpWire() override;

  const WireFacts& facts() const override { return facts_; }
  std::span<const RxTrain> receive(Time now) override;
  SendStatus send(const TxTrain& train) override;
  void show_headers() override;
  Outcome<void> join(const wire::Address& group) override;
  void leave(const wire::Address& group) override;
  int groups() const override { return groups_ != nullptr ? groups_->descriptor() : -1; }
  int descriptor() const override { return fd_; }
  int mailbox() const override { return neighbours_ != nullptr ? neighbours_->descriptor() : -1; }
  Neighbours* neighbours() override { return neighbours_.get(); }
  void abandon(int nowhere) override;
  Time next_due() const override {
    return neighbours_ != nullptr ? std::min(place_->next_due(), neighbours_->next_due()) : kNever;
  }
  void visit_counters(const SeeCounter& see) const override;

  // --- for a wire of raw frames that leaves the rest to this one (packet.h) ---
  // Datagrams that this program gives nothing of are not ours: another socket takes them.
  Result<void> leave_alone(std::span<const sock_filter> program);
  // Of trains that came by another door: those that are ours; the others are handed over. Valid until the
  // next receive.
  std::span<const RxTrain> keep_own(std::span<const RxTrain> trains);
  bool of_this_host(const wire::Address& source) const;

 private:
  struct Buffers;  // receive slots and their message headers
  UdpWire();
  SendStatus send_singly(const TxTrain& train, msghdr message);
  bool is_stray(const RxTrain& train) const;
  void join_others();
  std::span<const RxTrain> receive_own(Time now);
  std::span<const RxTrain> read_groups();
  std::span<const RxTrain> read_socket();
  std::span<const RxTrain> read_mail(Time now);
  std::span<const RxTrain> sort_out(std::span<const RxTrain> trains);
  void keep_or_hand(const RxTrain& train);

  int fd_ = -1;
  std::uint32_t batch_ = 1;   // messages per call, adapted to their size
  std::uint32_t streak_ = 0;  // calls since one found nothing
  WireFacts facts_;
  const FamilyOptions* options_ = nullptr;  // of the address's family
  IpChoice usual_;                          // the socket's own; other trains bring theirs along
  bool usual_known_ = false;                // it is that of the first train
  std::vector<wire::Address> own_hosts_;    // addresses of this host, when the wire was opened
  std::unique_ptr<Buffers> buffers_;

  std::unique_ptr<Groups> groups_;    // since the first was joined
  std::vector<RxTrain> from_groups_;  // of the last receive
  bool groups_first_ = false;
  bool headers_ = false;

  // With other processes on the address.
  std::unique_ptr<Neighbours> neighbours_;
  std::unique_ptr<PlaceFinder> place_;
  int probe_fd_ = -1;            // another port, from which probes leave
  std::vector<RxTrain> sorted_;  // what is ours of one receive
  Time mail_at_{};               // when to look for what others handed over
  bool socket_first_ = false;    // they did the last time
};

// The address in text, for sentences and names.
std::string to_text(const wire::Address& address);

}  // namespace weft::live
