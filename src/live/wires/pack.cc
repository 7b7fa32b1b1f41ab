// One frame, as append() writes it (the UDP payload of docs/protocol/packets.md#frame):
//
//   BTH 12 | extension headers | payload | pad 0-3 | ICRC 4
//   '------------- encode ----' '- copy -'          '- over pseudo header and all before, LSB first
#include "live/wires/pack.h"

#include <cstring>

#include "core/base/check.h"
#include "core/wire/codec.h"
#include "live/wires/program_memory.h"

namespace weft::live {
namespace {

constexpr std::uint32_t kUdpHeaderBytes = 8;
constexpr std::size_t kPage = 4096;
constexpr unsigned kSlotShift = 16;  // of a queue pair number: its process's slot is above

std::uint32_t frame_bytes(const wire::Header& header, std::uint32_t payload) {
  return static_cast<std::uint32_t>(wire::header_bytes(header) + payload + wire::pad_bytes(payload) +
                                    wire::kIcrcBytes);
}

// Most programs' buffers begin where a page does. A copy to an address with the same low twelve bits, or
// slightly larger ones, waits for its own stores and takes up to 1.4 times as long; so trains begin half a
// page away from that.
std::uint8_t* in_mid_page(std::uint8_t* memory) {
  const std::size_t in_page = reinterpret_cast<std::uintptr_t>(memory) % kPage;
  return memory + (kPage + kPage / 2 - in_page) % kPage;
}

void store_le(std::uint8_t* out, std::uint32_t v) {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(v >> (8U * i));
}

}  // namespace

Packer::Packer(const WireFacts& facts, bool icrc)
    : facts_(facts),
      icrc_(icrc),
      memory_(new std::uint8_t[facts.max_bytes + kPage]),
      buffer_(in_mid_page(memory_.get())) {}

bool Packer::fits(const wire::Address& destination, const wire::Header& header, std::uint32_t payload,
                  IpChoice ip) const {
  const std::uint32_t size = frame_bytes(header, payload);
  if (frames_ == 0) return size <= facts_.max_bytes;
  return last_size_ == frame_size_ && size <= frame_size_ && frames_ < facts_.max_frames &&
         bytes_ + size <= facts_.max_bytes && header.dest_qp.v >> kSlotShift == slot_ &&
         destination == destination_ && ip == ip_;
}

bool Packer::append(const wire::Address& destination, const wire::Header& header,
                    std::span<const Piece> pieces, std::uint32_t payload, IpChoice ip) {
  DCHECK(fits(destination, header, payload, ip));
  std::uint8_t* const frame = buffer_ + bytes_;
  const std::uint32_t size = frame_bytes(header, payload);
  std::uint8_t* at = frame + wire::encode(header, payload, {frame, facts_.max_bytes - bytes_});
  for (const Piece& p : pieces) {
    if (!reach(p.data, p.length, [&] { std::memcpy(at, p.data, p.length); })) return false;
    at += p.length;
  }
  for (std::uint32_t pad = wire::pad_bytes(payload); pad != 0; --pad) *at++ = 0;
  DCHECK(at + wire::kIcrcBytes == frame + size);
  if (frames_ == 0) {
    destination_ = destination;
    slot_ = header.dest_qp.v >> kSlotShift;
    ip_ = ip;
    frame_size_ = size;
  }
  last_size_ = size;
  bytes_ += size;
  ++frames_;
  seal(frames_ - 1);
  return true;
}

// Writes the ICRC of frame `index`, which is complete but for it.
void Packer::seal(std::uint32_t index) {
  std::uint8_t* const frame = buffer_ + std::size_t{index} * frame_size_;
  const std::uint32_t size = index + 1 == frames_ ? last_size_ : frame_size_;
  std::uint8_t* const end = frame + size - wire::kIcrcBytes;
  std::uint32_t crc = 0;
  if (icrc_) {
    wire::Icrc icrc =
        seeds_.get({.source = facts_.own.towards(destination_),
                    .destination = destination_,
                    .source_port = facts_.port,
                    .udp_length = static_cast<std::uint16_t>(kUdpHeaderBytes + size),
                    .identification = static_cast<std::uint16_t>(facts_.identification_counts ? index : 0U)});
    icrc.packet({frame, end});
    crc = icrc.value();
  }
  store_le(end, crc);
}

void Packer::reseal() {
  for (std::uint32_t i = 0; i < frames_; ++i) seal(i);
}

}  // namespace weft::live
