// Which processes of this host share memory with us, and by which rings.
//
// A process that wants to send makes a ring, connects to the receiver's name and gives it the ring with its
// first message; from then on it writes, before the receiver has even looked. A connection serves four
// things: the kernel says whose process is at the other end, a message wakes a reader that sleeps, its end
// tells that the other process is gone, and a receiver that wants no ring closes it.
//
//   weft/ADDRESS:PORT/shared/S       process S takes rings here
//
// Rings are for processes of one user. Their memory is there when the ring is made, and cannot shrink (it is
// sealed). A process of the same user could still take pages out of it; it could end us by a signal as well.
//
// Not thread-safe: it belongs to its wire.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "live/wires/shared_ring.h"
#include "live/wires/wire.h"

namespace weft::live {

class Doorkeeper;

// A process and its ring: one to whom we write, or one whom we read.
struct LinkOut {
  int fd = -1;
  RingWriter ring;
  wire::Address to;
  bool full = false;  // the last train did not fit
  Time full_since{};
  Duration held_up{};  // so long it has held its writer up, since it was half empty
};
struct LinkIn {
  int fd = -1;
  RingReader ring;
  wire::Address source;
};

class SharedLinks {
 public:
  // `is_local` says whether an address is one of this host: whoever gives a ring names its own.
  using IsLocal = bool (*)(const void* wire, const wire::Address& address);
  static Result<std::unique_ptr<SharedLinks>> open(const wire::Address& address, std::uint16_t port,
                                                   std::uint8_t slot, IsLocal is_local, const void* wire);
  ~SharedLinks();
  SharedLinks(const SharedLinks&) = delete;
  SharedLinks& operator=(const SharedLinks&) = delete;

  // Null: that process takes no ring, as far as we have asked lately.
  LinkOut* towards(Time now, const wire::Address& address, std::uint8_t slot);
  std::size_t remembered() const { return peers_.size(); }
  void ring_bell(const LinkOut& link) const;
  void drop(int fd);  // whatever this descriptor is for is over
  // Links that ended before their reader had taken anything; what was written is still in them.
  std::vector<std::unique_ptr<LinkOut>> take_refused() { return std::exchange(refused_, {}); }

  // Who comes, goes and rings. What is read of a link that was ours stays where it was copied to.
  void look();
  std::span<LinkIn> in() { return abandoned_ ? std::span<LinkIn>{} : in_; }

  int descriptor() const {
    return waiting_;
  }                   // readable when look() has something to do, or somebody is called
  void call() const;  // whoever sleeps at the descriptor, until hush()
  void hush() const;
  void abandon(int nowhere);  // in a forked child: rings are the parent's

 private:
  struct Key {
    wire::Address address;
    std::uint8_t slot = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const;
  };
  struct Peer {
    std::unique_ptr<LinkOut> link;
    Time ask_again{};
    Duration pause{};  // before we ask again; longer with each refusal
  };
  SharedLinks();
  bool remember(const Key& key);
  std::unique_ptr<LinkOut> reach(const Key& key) const;
  void keep_refused(std::unique_ptr<LinkOut> link);
  bool watch(int fd) const;
  void accept_some();
  bool take_ring(int fd);

  wire::Address address_;
  std::uint16_t port_ = 0;
  IsLocal is_local_ = nullptr;
  const void* wire_ = nullptr;
  int waiting_ = -1;  // epoll
  int listener_ = -1;
  int call_ = -1;  // an eventfd
  std::unique_ptr<Doorkeeper> door_;
  bool abandoned_ = false;
  std::unordered_map<Key, Peer, Hash> peers_;
  const Key* last_key_ = nullptr;  // of peers_: whom the last train was for
  Peer* last_ = nullptr;
  std::vector<int> strangers_;  // connected, and have given no ring yet
  std::vector<LinkIn> in_;
  std::vector<std::unique_ptr<LinkOut>> refused_;
};

}  // namespace weft::live
