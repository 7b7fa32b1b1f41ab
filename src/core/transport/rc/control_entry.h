// An ACK, NAK or CNP that waits to leave (rc/control.cc).
#pragma once
#include <cstdint>

#include "core/transport/loss/hole.h"

namespace weft {

struct ControlEntry {
  std::uint32_t qp = 0;  // index
  std::uint32_t psn = 0;
  std::uint32_t msn = 0;
  std::uint32_t sack = 0;  // irn: a NACK's trigger; srnic: the first packet missing
  std::uint32_t echo_msn = 0;
  std::uint32_t echo_offset = 0;
  std::uint8_t opcode = 0;
  std::uint8_t syndrome = 0;
  std::uint8_t ext_flags = 0;
  std::uint8_t mode = 0;
  Hole hole;               // srnic: what a NACK names
  bool coalesced = false;  // stamped when it leaves; void if the queue pair's mark was taken back
  bool congestion = false;
};

}  // namespace weft
