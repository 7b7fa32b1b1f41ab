#include "core/transport/tables.h"

#include <algorithm>

#include "core/base/check.h"

namespace weft {

Tables::Tables(const DeviceConfig& c)
    : config(c), random(c.seed), keys(c.max_mr, random.fork(1)), pool(c.loss_blocks, c.window_packets) {
  CHECK(c.validate().has_value());
  for (std::uint8_t m = 0; m < wire::kModeCount; ++m) schemes[m] = &loss_scheme(static_cast<wire::Mode>(m));
  if (c.recovery != nullptr) schemes[static_cast<std::size_t>(c.recovery->mode)] = c.recovery;
  qpn_mask = (1U << c.qpn_bits) - 1U;
  chunks.resize((c.max_qp + kChunk - 1) / kChunk);
  colds.resize(c.max_qp);
  Prng order = random.fork(2);
  free_qps.resize(c.max_qp);
  for (std::uint32_t i = 0; i < c.max_qp; ++i) free_qps[i] = i;
  // Numbers 0 and 1 of slot 0 are QP0 and QP1.
  for (std::uint32_t i = c.max_qp; i > 1; --i) std::swap(free_qps[i - 1], free_qps[order.below(i)]);
  if (c.qpn_base == 0 && c.max_qp > 2) std::erase_if(free_qps, [](std::uint32_t i) { return i < 2; });
}

}  // namespace weft
