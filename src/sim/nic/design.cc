#include "sim/nic/design.h"

#include <algorithm>
#include <string>

namespace weft::sim {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

Result<void> check_pipeline(const Design& d, const char* which, const PipelineDesign& p) {
  if (p.interval == 0 || p.depth == 0 || p.interval > 100'000 || p.depth > 100'000)
    return fail(d.name + ": " + which + ": interval and depth are from 1 to 100000 cycles, not " +
                number(p.interval) + " and " + number(p.depth));
  return {};
}

Result<void> check_pcie(const Design& d) {
  const PcieDesign& p = d.pcie;
  if (p.rate.bps < 1'000'000) return fail(d.name + ": pcie.rate: the link needs a rate of at least 1Mbps");
  if (p.round_trip.ps < 0 || p.write_delay.ps < 0 || p.round_trip > milliseconds(1) ||
      p.write_delay > milliseconds(1))
    return fail(d.name + ": pcie.round_trip and pcie.write_delay are from 0 to 1ms");
  if (p.payload < 32 || p.payload > 4096) return fail(d.name + ": pcie.payload is from 32 to 4096 bytes");
  if (p.overhead > 256) return fail(d.name + ": pcie.overhead is at most 256 bytes");
  if (p.reads == 0 || p.reads > 4096) return fail(d.name + ": pcie.reads is from 1 to 4096");
  if (p.request < 64 || p.request > 4096) return fail(d.name + ": pcie.request is from 64 to 4096 bytes");
  return {};
}

Result<void> check_board(const Design& d, Home home, const char* which) {
  if (home == Home::kBoard && d.board.size.n == 0)
    return fail(d.name + ": " + which + ".home: the board has no memory; give board.size");
  return {};
}

Result<void> check_context(const Design& d) {
  const ContextDesign& c = d.context;
  if (c.bytes == 0 || c.bytes > 4096) return fail(d.name + ": context.bytes is from 1 to 4096");
  if (c.stride != 0 && c.stride < c.bytes)
    return fail(d.name + ": context.stride: " + number(c.stride) + " bytes do not hold a context of " +
                number(c.bytes));
  const std::uint64_t stride = c.stride != 0 ? c.stride : c.bytes;
  if (c.channels == 0 || c.channels > 8) return fail(d.name + ": context.channels is from 1 to 8");
  if (c.index_bits == 0 || c.index_bits > 16) return fail(d.name + ": context.index_bits is from 1 to 16");
  if (c.ooo_capacity == 0 || c.ooo_capacity > (1U << c.index_bits))
    return fail(d.name + ": context.ooo_capacity: " + number(c.ooo_capacity) + " is not from 1 to " +
                number(1U << c.index_bits) + ", what context.index_bits can number");
  if (c.policy == ContextPolicy::kOnChip) {
    if (c.cache != 0)
      return fail(d.name + ": context.cache: with every context on chip there is no cache of them");
    if (d.on_chip.n != 0 && c.most * stride > d.on_chip.n)
      return fail(d.name + ": context.most: " + number(c.most) + " contexts of " + number(stride) +
                  " bytes are larger than the memory on chip, " + number(d.on_chip.n) + " bytes");
    return {};
  }
  if (c.cache == 0) return fail(d.name + ": context.cache: a cache of contexts holds at least one");
  if (d.on_chip.n != 0 && c.cache * stride > d.on_chip.n)
    return fail(d.name + ": context.cache: " + number(c.cache) + " contexts of " + number(stride) +
                " bytes are larger than the memory on chip, " + number(d.on_chip.n) + " bytes");
  if (c.home == Home::kBoard && c.most * std::uint64_t{c.bytes} > d.board.size.n)
    return fail(d.name + ": context.most: " + number(c.most) + " contexts are larger than board.size, " +
                number(d.board.size.n) + " bytes");
  if (c.misses == 0 || c.misses > 256) return fail(d.name + ": context.misses is from 1 to 256");
  return check_board(d, c.home, "context");
}

Result<void> check_translation(const Design& d) {
  const TranslationDesign& t = d.translation;
  if (t.page.n < 4096) return fail(d.name + ": translation.page: a page is at least 4096 bytes");
  if (t.entry_bytes == 0) return fail(d.name + ": translation.entry_bytes is at least 1");
  const std::uint64_t table = (t.reach.n + t.page.n - 1) / t.page.n;
  if (!t.on_chip && t.cache > table)
    return fail(d.name + ": translation.cache: " + number(t.cache) +
                " entries are more than the table has, " + number(table));
  const std::uint64_t bytes = (t.on_chip ? table : t.cache) * t.entry_bytes;
  if (d.on_chip.n != 0 && bytes > d.on_chip.n)
    return fail(d.name + ": translation: " + number(bytes) +
                " bytes of entries are larger than the memory on chip, " + number(d.on_chip.n) + " bytes");
  if (!t.on_chip && t.cache != 0 && t.fetch_bytes == 0)
    return fail(d.name + ": translation.fetch_bytes is at least 1");
  return check_board(d, t.home, "translation");
}

Result<void> check_reorder(const Design& d) {
  const RecoveryDesign& r = d.recovery;
  const std::uint64_t size = r.reorder_buffer.n;
  if (r.reorder == Reorder::kNothing) {
    if (size == 0) return {};
    return fail(d.name + ": recovery.reorder_buffer: " + number(size) +
                " bytes of no buffer; set recovery.reorder to per-qp or shared");
  }
  if (size < 4096)
    return fail(d.name + ": recovery.reorder_buffer: " + number(size) +
                " bytes do not hold the payload of the largest packet, 4096");
  const std::uint64_t buffers = r.reorder == Reorder::kShared ? 1 : std::max(d.context.most, 1U);
  if (d.on_chip.n != 0 && buffers * size > d.on_chip.n)
    return fail(d.name + ": recovery.reorder_buffer: " + number(buffers) + " of " + number(size) +
                " bytes are larger than the memory on chip, " + number(d.on_chip.n) + " bytes");
  return {};
}

}  // namespace

Result<void> validate(const Design& d) {
  if (d.clock_mhz == 0 || d.clock_mhz > 10'000)
    return fail(d.name + ": clock_mhz: the clock runs at 1 to 10000 MHz, not at " + number(d.clock_mhz));
  if (const auto ok = check_pcie(d); !ok) return ok;
  const PipelinesDesign& p = d.pipelines;
  const struct {
    const char* name;
    const PipelineDesign& stage;
  } stages[] = {{"pipelines.doorbell", p.doorbell},     {"pipelines.schedule", p.schedule},
                {"pipelines.transmit", p.transmit},     {"pipelines.receive", p.receive},
                {"pipelines.completion", p.completion}, {"context.access", d.context.access}};
  for (const auto& s : stages) {
    if (const auto ok = check_pipeline(d, s.name, s.stage); !ok) return ok;
  }
  if (p.bytes_per_cycle == 0) return fail(d.name + ": pipelines.bytes_per_cycle is at least 1");
  const SendSchedulerDesign& s = d.scheduler;
  if (s.wqes == 0 || s.wqes > 1024) return fail(d.name + ": scheduler.wqes is from 1 to 1024");
  if (s.turns == 0 || s.turns > 4096) return fail(d.name + ": scheduler.turns is from 1 to 4096");
  if (s.burst.n < 4096 + 128 || s.burst.n > 65000)
    return fail(d.name + ": scheduler.burst is from 4224 to 65000 bytes, not " + number(s.burst.n));
  if (d.buffers.transmit < s.burst)
    return fail(d.name + ": buffers.transmit: " + number(d.buffers.transmit.n) +
                " bytes do not hold scheduler.burst, " + number(s.burst.n));
  if (d.buffers.receive.n < 4096 + 128)
    return fail(d.name + ": buffers.receive: " + number(d.buffers.receive.n) +
                " bytes do not hold the largest packet, 4224");
  if (const auto ok = check_context(d); !ok) return ok;
  if (const auto ok = check_translation(d); !ok) return ok;
  if (const auto ok = check_reorder(d); !ok) return ok;
  if (d.recovery.event_bytes != 0 && d.recovery.bitmaps != Keeps::kHost)
    return fail(d.name +
                ": recovery.event_bytes: events go to software only where it keeps the bitmaps; "
                "set recovery.bitmaps to host");
  if (d.recovery.cpu_time.ps < 0 || d.recovery.nak_delay.ps < 0 || d.recovery.nak_delay > milliseconds(1) ||
      d.recovery.cpu_time > milliseconds(1))
    return fail(d.name + ": recovery.cpu_time and recovery.nak_delay are from 0 to 1ms");
  return {};
}

}  // namespace weft::sim
