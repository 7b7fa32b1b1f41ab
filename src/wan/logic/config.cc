#include "wan/logic/config.h"

#include <algorithm>
#include <bit>

#include "core/base/parse.h"
#include "core/transport/loss/pool.h"
#include "wan/logic/store.h"

namespace weft::wan {

Result<ParityTerms> parse_parity_terms(const std::string& field, const std::string& text) {
  if (text == "0") return ParityTerms{};
  const std::size_t plus = std::min(text.find('+'), text.size());
  const auto data =
      parse_integer(field, text.substr(0, plus), ParityTerms::kLeastData, ParityTerms::kMostData);
  const auto repair =
      parse_integer(field, plus < text.size() ? text.substr(plus + 1) : "", 1, ParityTerms::kMostRepair);
  if (!data || !repair)
    return fail(
        field + ": '" + text +
        "' is not like 16+2, that is 2 to 64 data frames and 1 to 8 parity frames of a group; 0 is none");
  return ParityTerms{static_cast<std::uint8_t>(*data), static_cast<std::uint8_t>(*repair)};
}

Result<void> BoxConfig::validate() const {
  constexpr std::uint32_t kMost = 1U << 20U;  // halves have 20 bits in the number of an ownership
  if (instance == 0) return fail("instance must not be 0");
  if (secret.empty()) return fail("secret must not be empty: everybody could sign");
  if (store.n < kLeastStore)
    return fail("store must hold four frames of 4096 bytes and what each costs beside them");
  if (frames < 4 || frames > 1U << 26U) return fail("frames must be between 4 and 2^26");
  if (halves == 0 || halves > kMost) return fail("halves must be between 1 and 2^20");
  if (queue == 0 || queue > kMost) return fail("queue must be between 1 and 2^20");
  // 64 reports (Once) tell of less than half the numbers of the wire.
  if (!std::has_single_bit(window) || window < 64 || window > 1U << 16U)
    return fail("window must be a power of two between 64 and 65536");
  if (site_window == 0) return fail("site_window must be at least 1");
  if (meetings > kMost) return fail("meetings must be at most 2^20");
  if (loss_blocks >= kNoBlock) return fail("loss_blocks must be below 65535");
  constexpr Duration kLongest = seconds(10 * 24 * 3600);
  const struct {
    const char* name;
    Duration value;
  } times[] = {{"line_timeout", line_timeout}, {"least_line_timeout", least_line_timeout},
               {"site_timeout", site_timeout}, {"hello", hello},
               {"patience", patience},         {"give_up", give_up},
               {"parity_wait", parity_wait},   {"quiet", quiet}};
  for (const auto& [name, value] : times) {
    if (value.ps <= 0 || value > kLongest)
      return fail(std::string(name) + " must be positive, and ten days at most");
  }
  if (patience < hello * 2) return fail("patience must be at least twice hello: one answer may be lost");
  if (site_tries == 0 || site_tries > 254) return fail("site_tries must be between 1 and 254");
  const bool none = parity.data == 0 && parity.repair == 0;
  if (!none && (parity.data < ParityTerms::kLeastData || parity.data > ParityTerms::kMostData ||
                parity.repair == 0 || parity.repair > ParityTerms::kMostRepair))
    return fail("parity must be 0+0, or 2 to 64 data frames and 1 to 8 parity frames");
  if (agreements == 0) return fail("agreements must be at least 1");
  return {};
}

}  // namespace weft::wan
