// Packets into trains: header, gathered payload, pad and ICRC, one frame behind the other in a buffer
// that one segmented send can carry.
//
// One rule decides whether a frame may join the train under construction: same destination (host, and the
// process of that host, which the top byte of a queue pair number names) and IP header, not larger than the
// train's frame size, and no shorter frame before it. So a burst becomes one system call, bursts of several
// queue pairs to one peer share it, and the ACK that a ping-pong owes rides behind the reply as the short
// last segment.
//
// Payload is copied, not referenced: the ICRC must match the bytes that leave, and a program may
// write to its memory while it is being sent. Copy and CRC go frame by frame, so the CRC reads what
// the copy just left in the first-level cache.
#pragma once
#include <memory>
#include <span>

#include "core/wire/header.h"
#include "live/wires/icrc_seeds.h"
#include "live/wires/wire.h"

namespace weft::live {

// Payload bytes in local memory.
struct Piece {
  const std::uint8_t* data = nullptr;
  std::uint32_t length = 0;
};

class Packer {
 public:
  // `icrc` false leaves the field zero, for peers that agreed not to look at it.
  Packer(const WireFacts& facts, bool icrc);

  // Whether a frame of this header and payload length may join.
  bool fits(const wire::Address& destination, const wire::Header& header, std::uint32_t payload,
            IpChoice ip = {}) const;
  // Appends it. Requires fits(); the pieces add up to `payload`. False: a piece is not there to read any more
  // (program_memory.h), and nothing was appended.
  bool append(const wire::Address& destination, const wire::Header& header, std::span<const Piece> pieces,
              std::uint32_t payload, IpChoice ip = {});

  // The wire's facts have changed: computes every ICRC anew.
  void reseal();

  bool empty() const { return frames_ == 0; }
  bool mostly_full() const { return frames_ * 2 > facts_.max_frames || bytes_ * 2 > facts_.max_bytes; }
  std::uint32_t frames() const { return frames_; }
  // As it leaves; it stays there until the packer takes others after clear().
  std::span<const std::uint8_t> last_frame() const { return {buffer_ + bytes_ - last_size_, last_size_}; }
  TxTrain train() const { return {{buffer_, bytes_}, frame_size_, destination_, ip_}; }
  void clear() { frames_ = bytes_ = frame_size_ = 0; }

 private:
  void seal(std::uint32_t index);

  const WireFacts& facts_;
  bool icrc_;
  IcrcSeeds seeds_;
  wire::Address destination_;
  std::uint32_t slot_ = 0;
  IpChoice ip_;
  std::uint32_t frames_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t frame_size_ = 0;  // of the first
  std::uint32_t last_size_ = 0;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::uint8_t* buffer_;  // in memory_, away from where pages begin
};

}  // namespace weft::live
