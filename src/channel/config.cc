#include "channel/config.h"

#include <string>

#include "channel/window.h"
#include "channel/wire.h"

namespace weft::channel {
namespace {

Result<void> within(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return fail(std::string(name) + " = " + std::to_string(value) + ": it must lie between " +
              std::to_string(least) + " and " + std::to_string(most));
}
Result<void> not_negative(const char* name, Duration value, bool zero) {
  if (value.ps > 0 || (zero && value.ps == 0)) return {};
  return fail(std::string(name) + " = " + std::to_string(value.us()) + " us: it must be " +
              (zero ? "zero or more" : "more than zero"));
}

}  // namespace

Result<void> Config::validate() const {
  constexpr std::uint64_t kMost32 = UINT32_MAX;
  for (const auto& checked : {within("channels", channels, 1, 1U << 20U),
                              within("calls", calls, 1, 1U << 16U),
                              within("depth", depth, 1, kMostDepth),
                              within("queue", queue, 0, 1U << 20U),
                              within("small_msg_size", small, kLeastFrame, 1U << 20U),
                              within("largest", largest, small, kMost32 / 2),
                              within("fragment", fragment, 1024, 1U << 30U),
                              within("outstanding", outstanding, 1, 1U << 20U),
                              within("reads", reads, 1, 16),
                              within("pieces", pieces, 1, kMostPieces),
                              within("use_srq", use_srq ? 1 : 0, 0, 1),
                              within("srq_size", srq_size, depth + kControls, 1U << 20U),
                              within("region", region.n, 1U << 16U, 1U << 30U),
                              within("memory", memory.n, region.n, UINT64_MAX),
                              not_negative("ack_delay_us", ack_delay, false),
                              not_negative("nop_us", patience, false),
                              not_negative("keepalive_intv_ms", keepalive, true),
                              not_negative("connect_ms", connecting, false),
                              not_negative("linger_ms", linger, true),
                              not_negative("reconnect_ms", reconnect, true),
                              not_negative("redial_ms", redial, false),
                              not_negative("look_us", look, true),
                              not_negative("spin_us", spin, true),
                              not_negative("clock_intv_ms", clock_interval, false),
                              not_negative("slow_threshold", slow, true),
                              not_negative("polling_warn_cycle", poll_warn, true),
                              not_negative("idle_memory_ms", idle_memory, false),
                              within("mock", mock, 0, 1),
                              not_negative("mock_slow_us", mock_slow, true),
                              not_negative("mock_slow_ms", mock_slow_for, true),
                              within("mock_redials", mock_redials, 0, 1'000),
                              not_negative("mock_cool_ms", mock_cool, true),
                              within("filter_drop_ppm", filter_drop, 0, 1'000'000),
                              within("filter_fail_ppm", filter_fail, 0, 1'000'000),
                              not_negative("filter_delay_us", filter_delay, true)}) {
    if (!checked) return checked;
  }
  for (const auto& checked :
       {within("mtu", terms.mtu, 256, 4096), within("service level", terms.service_level, 0, 15),
        within("min_rnr_timer", terms.min_rnr_timer, 0, 31), within("timeout", terms.timeout, 0, 31),
        within("retry_count", terms.retry_count, 0, 7), within("rnr_retry", terms.rnr_retry, 0, 7)}) {
    if (!checked) return checked;
  }
  if (memory.n / 2 < small)
    return fail("memory = " + std::to_string(memory.n) +
                ": half of it is the longest message, which must not be " + "shorter than small_msg_size, " +
                std::to_string(small));
  if (memory_mode != MemoryMode::kPort && pages.map == nullptr)
    return fail("memory_mode = " + std::to_string(static_cast<unsigned>(memory_mode)) +
                ": this platform maps no pages; 0 is the device's own memory");
  if (memory_mode == MemoryMode::kMalloc && isolate)
    return fail(
        "memory_mode = 3: the program's heap has no holes around a region; isolate = 1 needs another one");
  return {};
}

}  // namespace weft::channel
