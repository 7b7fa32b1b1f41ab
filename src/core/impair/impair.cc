#include "core/impair/impair.h"

#include <string>
#include <utility>

#include "core/base/check.h"

namespace weft::impair {
namespace {

Result<void> check_probability(const char* field, std::uint32_t v) {
  if (v <= kMillion) return {};
  return fail(std::string(field) + ": " + std::to_string(v) + " millionths is more than 1000000 (100%)");
}

// Longer than any sensible link; keeps sums of delays far from overflow.
constexpr Duration kLongest = seconds(3600);

Result<void> check_duration(const char* field, Duration d) {
  if (d.ps >= 0 && d <= kLongest) return {};
  return fail(std::string(field) + ": " + std::to_string(d.ps) + " ps is outside 0 to 3600 s");
}

}  // namespace

Result<void> ImpairConfig::validate() const {
  if (auto r = check_probability("loss", loss); !r) return r;
  if (auto r = check_probability("duplicate", duplicate); !r) return r;
  if (auto r = check_probability("reorder", reorder); !r) return r;
  if (auto r = check_probability("corrupt", corrupt); !r) return r;
  if (auto r = check_probability("mark", mark); !r) return r;
  if (auto r = check_duration("delay", delay); !r) return r;
  if (auto r = check_duration("jitter", jitter); !r) return r;
  if (auto r = check_duration("reorder_by", reorder_by); !r) return r;
  if (reorder != 0 && reorder_by.ps == 0) {
    return fail("reorder_by: 0 with reorder above 0; a packet must be held back by at least 1 ps");
  }
  return {};
}

Impairment::Impairment(const ImpairConfig& config, Prng prng, std::vector<ScriptStep> script)
    : config_(config), prng_(prng), script_(std::move(script)), clean_(config.clean()) {
  CHECK(config_.validate().has_value());
  for (std::size_t i = 1; i < script_.size(); ++i) CHECK_OP(script_[i - 1].packet, <=, script_[i].packet);
}

Fate Impairment::decide_slowly() {
  Fate v;
  v.delay = v.duplicate_delay = config_.delay;
  const auto jitter = [&] {
    return config_.jitter.ps == 0 ? Duration{}
                                  : picoseconds(static_cast<std::int64_t>(
                                        prng_.below(static_cast<std::uint64_t>(config_.jitter.ps) + 1U)));
  };
  if (!clean_) {
    if (config_.loss != 0 && prng_.chance(config_.loss)) v.copies = 0;
    if (config_.duplicate != 0 && prng_.chance(config_.duplicate) && v.copies == 1) v.copies = 2;
    v.delay += jitter();
    if (config_.reorder != 0 && prng_.chance(config_.reorder)) v.delay += config_.reorder_by;
    if (v.copies == 2) v.duplicate_delay += jitter();
    if (config_.corrupt != 0 && prng_.chance(config_.corrupt)) {
      v.corrupt = true;
      v.corrupt_draw = static_cast<std::uint32_t>(prng_.next() >> 32U);
    }
    v.mark = config_.mark != 0 && prng_.chance(config_.mark);
  }
  for (; next_step_ < script_.size() && script_[next_step_].packet == packet_; ++next_step_) {
    const ScriptStep& step = script_[next_step_];
    switch (step.action) {
      case Action::kDrop:
        v.copies = 0;
        break;
      case Action::kDuplicate:
        v.copies = 2;
        v.duplicate_delay = v.delay + step.by;
        break;
      case Action::kDelay:
        v.delay += step.by;
        break;
      case Action::kCorrupt:
        v.corrupt = true;
        break;
    }
  }
  ++packet_;
  return v;
}

}  // namespace weft::impair
