// What libibverbs says in words, and its arithmetic with rates.
#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "live/abi/handles.h"

using weft::live::abi::raw;

namespace {

struct Rate {
  ibv_rate code;
  int mbps;
};
constexpr std::array kRates{
    Rate{IBV_RATE_2_5_GBPS, 2500},   Rate{IBV_RATE_5_GBPS, 5000},      Rate{IBV_RATE_10_GBPS, 10000},
    Rate{IBV_RATE_14_GBPS, 14062},   Rate{IBV_RATE_20_GBPS, 20000},    Rate{IBV_RATE_25_GBPS, 25781},
    Rate{IBV_RATE_28_GBPS, 28125},   Rate{IBV_RATE_30_GBPS, 30000},    Rate{IBV_RATE_40_GBPS, 40000},
    Rate{IBV_RATE_50_GBPS, 53125},   Rate{IBV_RATE_56_GBPS, 56250},    Rate{IBV_RATE_60_GBPS, 60000},
    Rate{IBV_RATE_80_GBPS, 80000},   Rate{IBV_RATE_100_GBPS, 103125},  Rate{IBV_RATE_112_GBPS, 112500},
    Rate{IBV_RATE_120_GBPS, 120000}, Rate{IBV_RATE_168_GBPS, 168750},  Rate{IBV_RATE_200_GBPS, 206250},
    Rate{IBV_RATE_300_GBPS, 309375}, Rate{IBV_RATE_400_GBPS, 425000},  Rate{IBV_RATE_600_GBPS, 637500},
    Rate{IBV_RATE_800_GBPS, 850000}, Rate{IBV_RATE_1200_GBPS, 1275000}};

template <std::size_t N>
const char* word(const std::array<const char*, N>& words, std::int64_t i) {
  const auto index = static_cast<std::size_t>(i);
  return i >= 0 && index < N && words[index] != nullptr ? words[index] : "unknown";
}

constexpr std::array<const char*, 24> kWcStatus{"success",
                                                "local length error",
                                                "local QP operation error",
                                                "local EE context operation error",
                                                "local protection error",
                                                "Work Request Flushed Error",
                                                "memory management operation error",
                                                "bad response error",
                                                "local access error",
                                                "remote invalid request error",
                                                "remote access error",
                                                "remote operation error",
                                                "transport retry counter exceeded",
                                                "RNR retry counter exceeded",
                                                "local RDD violation error",
                                                "remote invalid RD request",
                                                "aborted error",
                                                "invalid EE context number",
                                                "invalid EE context state",
                                                "fatal error",
                                                "response timeout error",
                                                "general error",
                                                "TM error",
                                                "TM software rendezvous"};
constexpr std::array<const char*, 20> kEvents{"CQ error",
                                              "local work queue catastrophic error",
                                              "invalid request local work queue error",
                                              "local access violation work queue error",
                                              "communication established",
                                              "send queue drained",
                                              "path migrated",
                                              "path migration request error",
                                              "local catastrophic error",
                                              "port active",
                                              "port error",
                                              "LID change",
                                              "P_Key change",
                                              "SM change",
                                              "SRQ catastrophic error",
                                              "SRQ limit reached",
                                              "last WQE reached",
                                              "client reregistration",
                                              "GID table change",
                                              "WQ fatal"};
constexpr std::array<const char*, 6> kPortStates{"no state change (NOP)", "down", "init", "armed", "active",
                                                 "active defer"};
constexpr std::array<const char*, 8> kNodeTypes{nullptr,
                                                "InfiniBand channel adapter",
                                                "InfiniBand switch",
                                                "InfiniBand router",
                                                "iWARP NIC",
                                                "usNIC",
                                                "usNIC UDP",
                                                "unspecified"};

}  // namespace

WEFT_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) { return word(kWcStatus, raw(status)); }
WEFT_EXPORT const char* ibv_event_type_str(ibv_event_type event) { return word(kEvents, raw(event)); }
WEFT_EXPORT const char* ibv_port_state_str(ibv_port_state state) { return word(kPortStates, raw(state)); }
WEFT_EXPORT const char* ibv_node_type_str(ibv_node_type type) { return word(kNodeTypes, raw(type)); }

WEFT_EXPORT int ibv_rate_to_mbps(ibv_rate rate) {
  const auto code = raw(rate);
  for (const Rate& r : kRates) {
    if (raw(r.code) == code) return r.mbps;
  }
  return -1;
}
WEFT_EXPORT ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& r : kRates) {
    if (r.mbps == mbps) return r.code;
  }
  return IBV_RATE_MAX;
}
// Multiples of 2.5 Gb/s exist for the older rates only.
WEFT_EXPORT int ibv_rate_to_mult(ibv_rate rate) {
  const int mbps = ibv_rate_to_mbps(rate);
  return mbps > 0 && mbps % 2500 == 0 ? mbps / 2500 : -1;
}
WEFT_EXPORT ibv_rate mult_to_ibv_rate(int mult) {
  return mult <= 1200 ? mbps_to_ibv_rate(mult * 2500) : IBV_RATE_MAX;
}
