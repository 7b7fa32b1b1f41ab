// The other processes of this user on this address, and what is shared with them (docs/ARCHITECTURE.md,
// "Several processes on one address"): slots, services, and frames that reached the wrong one.
//
// The register is the kernel's own: names of Unix sockets in the abstract name space, of which each network
// namespace has one, as it has addresses. A name is taken by binding it, and free again when its process
// ends, however it ends. No file, no lock, no memory is shared.
//
//   weft/ADDRESS:PORT/slot/S         process S listens here for frames that are its own
//   weft/ADDRESS:PORT/service/SPACE:P  the same, by the process whose connection manager serves that port
//   weft/ADDRESS:PORT/beginning/S  S has just begun, and may be about to serve a port
//   weft/ADDRESS:PORT/at/S/I         says that its UDP socket is number I of the address (steering.h)
//
// A frame is handed over as a message of a sequential-packet connection. The kernel tells both ends whose
// process the other is, and a process of another user is neither given frames nor listened to.
//
// Not thread-safe: it belongs to its wire. Claiming a service is for whoever owns the wire, too.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "live/wires/steering.h"
#include "live/wires/wire.h"

namespace weft::live {

class Doorkeeper;

struct NeighbourCounters {
  std::uint64_t handed = 0;  // trains given to the process that they are for
  std::uint64_t taken = 0;   // trains taken from others
  std::uint64_t lost = 0;    // trains for a process that is gone, or that had no room
};

class Neighbours {
 public:
  static constexpr unsigned kSlots =
      255;  // 1 to 254 are used: 0 has the well-known queue pairs, 255 multicast

  // Whether the kernel tells users apart for this process. In a user namespace all that are not mapped look
  // alike, and a process of such a user would take each of them for itself.
  static bool users_differ();
  // Takes this slot, or, with 0, a free one at random.
  static Result<std::unique_ptr<Neighbours>> join(const wire::Address& address, std::uint16_t port,
                                                  std::uint8_t slot = 0);
  // The same process under its other address, with the same slot: what is claimed or begins here does so
  // there, too, and a train goes to the neighbours under the address that it came to. Both know each other;
  // each receives for itself.
  void pair_with(Neighbours& twin);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  std::uint8_t slot() const { return slot_; }
  // Whether the register can be read at all; if not, nobody seems to be there.
  bool readable() const;
  // Everybody's, as far as they have said so; ourselves, too.
  std::vector<Place> places() const;
  std::vector<std::uint8_t> others() const;  // slots that are taken by others
  void announce(std::uint8_t index);

  void hand_to_slot(std::uint8_t slot, const RxTrain& train);
  // To everybody, or, if it is the second within a millisecond, to nobody.
  void hand_to_all(Time now, const RxTrain& train);
  // False: no process serves it. If one does and has no room, or may be about to serve it, the train is lost.
  bool hand_to_service(Time now, std::uint32_t service, const RxTrain& train);
  // Until then this process may be about to listen, and nobody refuses what it would serve.
  void begins(Time until);
  // As often as this process listens there. kBusy: another process has it.
  Outcome<void> claim(std::uint32_t service);
  // Requests still come here until then: a program that closes a listener may be about to open another.
  void give_back(std::uint32_t service, Time until);
  void forget_services(Time now);  // those whose time is over
  Time next_due() const { return next_due_; }
  bool serves(std::uint32_t service) const { return services_.contains(service); }

  // What others handed over; the bytes stay until the next call.
  std::span<const RxTrain> receive();
  int descriptor() const { return waiting_; }  // readable when receive() may have something
  void abandon(int nowhere);                   // in a forked child: every descriptor becomes that one's
  const NeighbourCounters& counters() const { return counters_; }

 private:
  struct Message;
  Neighbours();
  void watch(int fd);
  bool send(int fd, const RxTrain& train);
  int listen_at(const std::string& name);
  int reach(const std::string& name) const;
  bool one_begins(Time now);
  Neighbours& of_train(const RxTrain& train);
  Outcome<void> claim_here(std::uint32_t service);
  void unclaim(std::uint32_t service);
  void give_back_here(std::uint32_t service, Time until);
  void begins_here(Time until);
  void accept_from(int listener);

  std::string prefix_;  // of all names, without the leading zero
  std::uint8_t slot_ = 0;
  bool v4_ = true;  // the address's family
  Neighbours* twin_ = nullptr;
  int waiting_ = -1;  // epoll
  int mailbox_ = -1;
  int announced_ = -1;
  int beginning_ = -1;
  Time begins_until_ = kNever;
  bool abandoned_ = false;
  std::unique_ptr<Doorkeeper> door_;
  struct Service {
    int fd = -1;
    std::uint32_t claims = 0;
    Time until = kNever;  // without claims: when it is forgotten
  };
  Time next_due_ = kNever;
  bool one_begins_ = false;          // of the others, as far as we have looked
  Time one_begins_until_{};          // look again then
  std::vector<std::uint8_t> known_;  // the others, likewise
  Time known_until_{};
  Time next_to_all_{};
  std::unordered_map<std::uint32_t, Service> services_;
  std::array<int, 256> reached_{};  // by slot: a connection to it, or -1
  std::vector<int> taken_from_;     // connections of others to us
  std::vector<std::uint8_t> bytes_;
  std::vector<RxTrain> trains_;
  NeighbourCounters counters_;
};

}  // namespace weft::live
