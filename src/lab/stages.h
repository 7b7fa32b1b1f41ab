// The stages of a NIC as SVG: a column of boxes for each side, the one that binds in another colour and
// framed twice.
#pragma once
#include <string>
#include <vector>

namespace weft::lab {

struct StageBox {
  std::string name;
  double latency_ns = 0;
  double mrps = 0;  // 0: it bounds nothing
  bool binds = false;
};

struct StageGroup {
  std::string name;
  std::vector<StageBox> stages;
};

std::string draw_stages(const std::string& title, const std::vector<StageGroup>& groups);

}  // namespace weft::lab
