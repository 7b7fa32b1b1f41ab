#include "channel_tools/matrix.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace weft::tools {
namespace {

constexpr std::uint64_t kSlowTimes = 3;
constexpr std::uint64_t kSlowMore = 20'000;  // ns

std::uint64_t usual(const Matrix& m) {
  std::vector<std::uint64_t> means;
  for (const Cell& c : m.cells) {
    if (c.received != 0) means.push_back(c.mean_ns);
  }
  if (means.empty()) return 0;
  std::sort(means.begin(), means.end());
  return means[means.size() / 4];
}
bool slower(const Cell& c, std::uint64_t than) {
  return c.received != 0 && c.mean_ns > than * kSlowTimes && c.mean_ns > than + kSlowMore;
}

std::string micros(std::uint64_t ns) {
  char out[32];
  std::snprintf(out, sizeof out, "%.1f", static_cast<double>(ns) / 1e3);
  return out;
}
std::string percent(double part) {
  char out[32];
  std::snprintf(out, sizeof out, "%.0f%%", part * 100);
  return out;
}

std::string word(const Cell& c) {
  switch (c.state) {
    case Cell::State::kUnknown:
      return "?";
    case Cell::State::kSelf:
      return ".";
    case Cell::State::kSilent:
      return "dead";
    case Cell::State::kRefused:
      return "refused";
    case Cell::State::kReached:
      break;
  }
  if (c.received == 0) return "lost";
  return micros(c.mean_ns) + (c.received != c.sent ? " -" + percent(c.loss()) : "");
}

enum class Colour : std::uint8_t { kNone, kGood, kSlow, kBad };
Colour colour(const Cell& c, std::uint64_t usual_ns) {
  if (c.state == Cell::State::kUnknown || c.state == Cell::State::kSelf) return Colour::kNone;
  if (!c.well()) return Colour::kBad;
  return slower(c, usual_ns) ? Colour::kSlow : Colour::kGood;
}

const char* name_of(Cell::State s) {
  switch (s) {
    case Cell::State::kUnknown:
      return "unknown";
    case Cell::State::kSelf:
      return "self";
    case Cell::State::kReached:
      return "reached";
    case Cell::State::kSilent:
      return "silent";
    case Cell::State::kRefused:
      return "refused";
  }
  return "";
}
const char* name_of(Finding::Kind k) {
  switch (k) {
    case Finding::Kind::kDead:
      return "dead";
    case Finding::Kind::kSlow:
      return "slow";
    case Finding::Kind::kOneWay:
      return "one_way";
    case Finding::Kind::kCut:
      return "cut";
    case Finding::Kind::kLossy:
      return "lossy";
  }
  return "";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

Matrix::Matrix(std::vector<std::string> all) : names(std::move(all)), cells(names.size() * names.size()) {
  for (std::size_t i = 0; i < names.size(); ++i) at(i, i).state = Cell::State::kSelf;
}

bool slow(const Matrix& m, const Cell& c) { return slower(c, usual(m)); }

std::vector<Finding> findings(const Matrix& m) {
  std::vector<Finding> out;
  const std::size_t n = m.names.size();
  const std::uint64_t than = usual(m);
  const auto bad = [&](std::size_t from, std::size_t to) {
    const Cell& c = m.at(from, to);
    return c.state == Cell::State::kSilent || c.state == Cell::State::kRefused ||
           (c.state == Cell::State::kReached && c.received == 0);
  };
  std::vector<bool> dead(n);
  std::vector<bool> slow_node(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t tried = 0, failed = 0, timed = 0, slow_ones = 0, row_slow = 0, row_timed = 0;
    for (std::size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const Cell& c = m.at(k, i);
      const Cell& r = m.at(i, k);
      tried += c.state != Cell::State::kUnknown ? 1 : 0;
      failed += bad(k, i) ? 1 : 0;
      timed += c.received != 0 ? 1 : 0;
      slow_ones += slower(c, than) ? 1 : 0;
      row_timed += r.received != 0 ? 1 : 0;
      row_slow += slower(r, than) ? 1 : 0;
    }
    const bool answers = std::any_of(m.cells.begin() + static_cast<std::ptrdiff_t>(i * n),
                                     m.cells.begin() + static_cast<std::ptrdiff_t>((i + 1) * n),
                                     [](const Cell& c) { return c.received != 0; });
    dead[i] = tried != 0 && failed == tried && !answers;
    if (dead[i]) out.push_back({Finding::Kind::kDead, i, i, m.names[i] + " is dead: nobody reaches it"});
    const bool column = timed > 1 && slow_ones * 2 > timed;
    const bool row = row_timed > 1 && row_slow * 2 > row_timed;
    slow_node[i] = n > 2 && (row || column);
    if (slow_node[i])
      out.push_back({Finding::Kind::kSlow, i, i,
                     m.names[i] + " is slow: " +
                         (row && column ? "its row and its column are"
                          : row         ? "its row is"
                                        : "its column is") +
                         " above three times " + micros(than) + " us"});
  }
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      if (from == to || dead[from] || dead[to]) continue;
      const Cell& c = m.at(from, to);
      const std::string arrow = m.names[from] + " -> " + m.names[to];
      if (bad(from, to) && m.at(to, from).received != 0) {
        out.push_back(
            {Finding::Kind::kOneWay, from, to, arrow + " fails (" + word(c) + ") and the other way works"});
      } else if (bad(from, to) && (from < to || !bad(to, from))) {
        out.push_back({Finding::Kind::kCut, from, to, arrow + " fails (" + word(c) + ")"});
      } else if (c.state == Cell::State::kReached && c.received != 0 && c.received != c.sent) {
        out.push_back({Finding::Kind::kLossy, from, to, arrow + " loses " + percent(c.loss())});
      } else if (slower(c, than) && !slow_node[from] && !slow_node[to]) {
        out.push_back({Finding::Kind::kSlow, from, to,
                       arrow + " is slow: " + micros(c.mean_ns) + " us where " + micros(than) + " is usual"});
      }
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.kind < b.kind; });
  return out;
}

std::string text(const Matrix& m, bool colours) {
  std::size_t width = 9;
  for (const std::string& name : m.names) width = std::max(width, name.size());
  for (const Cell& c : m.cells) width = std::max(width, word(c).size());
  width += 2;
  const auto right = [&](const std::string& s) { return std::string(width - s.size(), ' ') + s; };
  const std::uint64_t than = usual(m);
  std::string out = "mean us" + std::string(width - 7, ' ');
  for (const std::string& name : m.names) out += right(name);
  out += '\n';
  for (std::size_t from = 0; from < m.names.size(); ++from) {
    out += m.names[from] + std::string(width - m.names[from].size(), ' ');
    for (std::size_t to = 0; to < m.names.size(); ++to) {
      const Cell& c = m.at(from, to);
      const Colour k = colour(c, than);
      const std::string said = right(word(c));
      if (!colours || k == Colour::kNone) {
        out += said;
      } else {
        out += k == Colour::kGood ? "\x1b[32m" : k == Colour::kSlow ? "\x1b[33m" : "\x1b[31m";
        out += said + "\x1b[0m";
      }
    }
    out += '\n';
  }
  for (const Finding& f : findings(m)) out += f.sentence + '\n';
  return out;
}

std::string row_text(const Matrix& m) {
  char line[128];
  std::snprintf(line, sizeof line, "%-16s %9s %9s %9s %9s %9s\n", "host", "sent", "received", "least us",
                "mean us", "99% us");
  std::string out = line;
  for (std::size_t to = 1; to < m.names.size(); ++to) {
    const Cell& c = m.at(0, to);
    if (c.received == 0) {
      std::snprintf(line, sizeof line, "%-16s %9u %9u %s\n", m.names[to].c_str(), c.sent, c.received,
                    word(c).c_str());
    } else {
      std::snprintf(line, sizeof line, "%-16s %9u %9u %9s %9s %9s\n", m.names[to].c_str(), c.sent, c.received,
                    micros(c.least_ns).c_str(), micros(c.mean_ns).c_str(), micros(c.p99_ns).c_str());
    }
    out += line;
  }
  for (const Finding& f : findings(m)) out += f.sentence + '\n';
  return out;
}

std::string svg(const Matrix& m) {
  constexpr int kCell = 72;
  constexpr int kHigh = 28;
  constexpr int kLeft = 150;
  constexpr int kTop = 90;
  const auto n = static_cast<int>(m.names.size());
  const std::vector<Finding> all = findings(m);
  const int wide = kLeft + std::max(n * kCell, 420) + 10;
  const int high = kTop + n * kHigh + 20 + static_cast<int>(all.size()) * 18;
  const std::uint64_t than = usual(m);
  const auto number = [](int v) { return std::to_string(v); };
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(wide) + "\" height=\"" +
                    number(high) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
                    "fill=\"#ffffff\"/>\n";
  for (int i = 0; i < n; ++i) {
    const std::string name = escaped(m.names[static_cast<std::size_t>(i)]);
    out += "<text x=\"" + number(kLeft - 8) + "\" y=\"" + number(kTop + i * kHigh + 18) +
           "\" text-anchor=\"end\">" + name + "</text>\n";
    const std::string at = number(kLeft + i * kCell + kCell / 2) + "," + number(kTop - 8);
    out += "<text transform=\"translate(" + at + ") rotate(-30)\">" + name + "</text>\n";
  }
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) {
      const Cell& cell = m.at(static_cast<std::size_t>(r), static_cast<std::size_t>(c));
      const Colour k = colour(cell, than);
      const char* const fill = k == Colour::kGood   ? "#b7e1b0"
                               : k == Colour::kSlow ? "#ffd97a"
                               : k == Colour::kBad  ? "#f2918a"
                                                    : "#e6e6e6";
      const std::string x = number(kLeft + c * kCell);
      const std::string y = number(kTop + r * kHigh);
      out += "<rect x=\"" + x + "\" y=\"" + y + "\" width=\"" + number(kCell - 2) + "\" height=\"" +
             number(kHigh - 2) + "\" fill=\"" + fill + "\"><title>" +
             escaped(m.names[static_cast<std::size_t>(r)]) + " to " +
             escaped(m.names[static_cast<std::size_t>(c)]) + ": " + name_of(cell.state) + ", " +
             std::to_string(cell.received) + " of " + std::to_string(cell.sent) + "</title></rect>\n";
      out += "<text x=\"" + number(kLeft + c * kCell + (kCell - 2) / 2) + "\" y=\"" +
             number(kTop + r * kHigh + 18) + "\" text-anchor=\"middle\">" + escaped(word(cell)) + "</text>\n";
    }
  }
  int y = kTop + n * kHigh + 24;
  for (const Finding& f : all) {
    out += "<text x=\"10\" y=\"" + number(y) + "\">" + escaped(f.sentence) + "</text>\n";
    y += 18;
  }
  return out + "</svg>\n";
}

std::string json_text(const Matrix& m) {
  using nlohmann::json;
  json all = {{"hosts", m.names}, {"pairs", json::array()}, {"findings", json::array()}};
  for (std::size_t from = 0; from < m.names.size(); ++from) {
    for (std::size_t to = 0; to < m.names.size(); ++to) {
      if (from == to) continue;
      const Cell& c = m.at(from, to);
      all["pairs"].push_back({{"from", m.names[from]},
                              {"to", m.names[to]},
                              {"state", name_of(c.state)},
                              {"sent", c.sent},
                              {"received", c.received},
                              {"loss", c.loss()},
                              {"least_ns", c.least_ns},
                              {"mean_ns", c.mean_ns},
                              {"p99_ns", c.p99_ns}});
    }
  }
  for (const Finding& f : findings(m))
    all["findings"].push_back({{"kind", name_of(f.kind)},
                               {"from", m.names[f.from]},
                               {"to", m.names[f.to]},
                               {"sentence", f.sentence}});
  return all.dump();
}

}  // namespace weft::tools
