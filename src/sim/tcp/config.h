// How a TCP behaves. IRN §4.6 compares against a "full-blown TCP stack" whose flavour and parameters it does
// not give, so everything that shows in results is a setting.
//
// What it always does: slow start and congestion avoidance (RFC 5681), limited transmit (RFC 3042), fast
// retransmit and fast recovery, time-outs (RFC 6298). What it leaves out: handshakes (the comparison is of
// established connections), timestamps, ECN, F-RTO and other detection of needless repairs.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/units.h"

namespace weft::sim::tcp {

enum class Flavour : std::uint8_t { kSack, kNewReno, kReno };

struct FlavourRow {
  const char* name;
  Flavour flavour;
  const char* text;
};
std::span<const FlavourRow> flavours();

struct Config {
  Flavour flavour = Flavour::kSack;
  std::uint32_t mss = 1024;           // bytes of data in a full segment
  std::uint32_t initial_window = 10;  // segments (RFC 6928, without its bound for large ones)
  std::uint32_t duplicate_acks = 3;   // that mean a loss: DupThresh
  Bytes receive_window{0};            // what a receiver lets be under way; 0: no bound
  Duration delayed_ack{};             // RFC 1122: an ACK for two segments, or after so long; 0: one for each
  Duration rto_min = seconds(1);      // RFC 6298 §2.4
  Duration rto_initial = seconds(1);  // before the first measurement, §2.1
  Duration rto_max = seconds(60);     // §2.5
};

}  // namespace weft::sim::tcp
