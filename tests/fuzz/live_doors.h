// The real ways into a host of the live target: a ShmWire on a loopback address, which outlives all inputs. A
// train goes to it through the kernel (UDP, cut or joined there, steered by slot between two sockets of the
// address, handed over where it came by the wrong one) or through a ring of shared memory, whose bytes and
// counts the input may also write at will. Opening all of this takes a hundred times as long as an input, and
// none of it knows queue pairs or memory.
//
// The NIC believes in addresses 10.0.0.N, so that an input means the same in every process; the real ones are
// 127.x.y.N, of this process alone. What still waits at the end of an input is thrown away.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "live/wires/shm.h"

namespace weft::fuzz {

inline wire::Address plain(std::uint8_t n) { return wire::Address::v4(10, 0, 0, n); }

class Doors {
 public:
  static constexpr std::uint8_t kSlot = 7;    // the host's
  static constexpr std::uint8_t kBeside = 8;  // of another process of its address, which forgets what it gets
  static constexpr std::uint8_t kSources = 4;  // 10.0.0.2 and 3 from port 4791, then both from other ports

  // Null: the system has no such sockets, and says why on standard error.
  static Doors* open();
  ~Doors();

  // One datagram for each frame, or all of them in one send that the kernel cuts. False: it could not be
  // sent.
  bool send_udp(std::uint8_t source, std::span<const std::uint8_t> train, std::uint32_t frame_size);
  // From 10.0.0.2. The ring is made with the first train of an input.
  bool send_shared(const live::TxTrain& train);
  // What a hostile owner of the ring writes into it: trains of one size, a last one that says anything of
  // itself, and how much he claims to have written.
  struct Lie {
    std::uint32_t trains = 0;
    std::uint32_t bytes = 0;
    std::uint32_t last_bytes = 0;
    std::uint32_t last_frame_size = 0;
    std::uint64_t more = 0;  // than the trains before the last
    std::uint64_t taken = 0;
  };
  void lie(const Lie& lie);

  std::span<const live::RxTrain> receive();
  live::Neighbours* neighbours() { return wire_->neighbours(); }
  void end_input();

 private:
  struct Sending;
  Doors();
  bool give_ring();

  std::unique_ptr<live::ShmWire> wire_;
  std::unique_ptr<live::UdpWire> beside_;
  std::unique_ptr<Sending> from_;
  std::optional<live::RingWriter> ring_;
  int looks_ = 0;  // until everything that was sent has surely been read
  Time now_{};
  std::vector<live::RxTrain> trains_;
};

}  // namespace weft::fuzz
