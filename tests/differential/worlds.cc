#include "tests/differential/worlds.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "trace/text.h"

namespace weft::differential {

std::string Programs::difference(const Programs& simulated, const Programs& live) {
  for (std::size_t h = 0; h < 2; ++h) {
    for (const Lane lane : {Lane::kServices, Lane::kDevice}) {
      const auto& s = simulated.logged(h, lane);
      const auto& l = live.logged(h, lane);
      for (std::size_t i = 0; i < std::max(s.size(), l.size()); ++i) {
        const std::string a = i < s.size() ? s[i] : "(nothing more)";
        const std::string b = i < l.size() ? l[i] : "(nothing more)";
        if (a != b)
          return "host " + std::to_string(h) + (lane == Lane::kServices ? ", services" : "") + ", line " +
                 std::to_string(i) + "\n  simulated: " + a + "\n  live:      " + b;
      }
    }
  }
  return {};
}

std::vector<std::uint8_t> fresh_memory(std::size_t host) {
  std::vector<std::uint8_t> memory(kMemory);
  Prng random(host);
  for (std::size_t i = 0; i < kMemory; i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(memory.data() + i, &word, 8);
  }
  return memory;
}

std::string mad_text(const wire::Header& header, std::span<const std::uint8_t> mad) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = trace::to_text(header, static_cast<std::uint32_t>(mad.size())) + " ";
  wire::CmMessage m;
  wire::MadError error{};
  if (decode(mad, m, error)) {
    text += wire::cm_name(m.kind);
    text += ' ';
  }
  for (const std::uint8_t b : mad) {
    text += kDigits[b >> 4U];
    text += kDigits[b & 15U];
  }
  return text;
}

bool is_managers(std::span<const std::uint8_t> mad) {
  constexpr std::size_t kClassAt = 1;
  constexpr std::uint8_t kManagersClass = 7;
  CHECK_OP(mad.size(), ==, wire::kMadBytes);
  return mad[kClassAt] == kManagersClass;
}

}  // namespace weft::differential
