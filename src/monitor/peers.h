// Other hosts' monitors: their state is pulled now and then, one after the other, by a thread of its own. One
// that does not answer within kPatience seconds is down, and keeps what it said last, with how old that is.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "monitor/metrics.h"

namespace weft::monitor {

inline constexpr std::size_t kMostPeers = 256;
inline constexpr int kPatienceOfPeer = 2;                   // seconds
inline constexpr std::size_t kMostStateBytes = 16U << 20U;  // of a peer's answer
inline constexpr std::size_t kMostStateValues = 1U << 21U;  // in it
inline constexpr int kMostStateDepth = 8;

class Peers {
 public:
  // "HOST:PORT" each. `unix_ms` is the clock.
  static Result<std::unique_ptr<Peers>> begin(const std::vector<std::string>& peers, double every_seconds,
                                              std::int64_t (*unix_ms)());
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Adds its metrics and returns its JSON, both of one moment: what one says is up is up in the other.
  std::string tell(Metrics& metrics) const;

 private:
  struct Inside;
  explicit Peers(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace weft::monitor
