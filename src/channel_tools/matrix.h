// Who reaches whom, and how fast: the matrix of a full-mesh ping, what is wrong with it in sentences, and as
// a terminal, a browser (SVG) and a program (JSON) want it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft::tools {

struct Cell {
  enum class State : std::uint8_t {
    kUnknown,  // the row's agent did not answer, so nobody knows
    kSelf,
    kReached,
    kSilent,   // no connection came of it
    kRefused,  // the peer said no
  };
  State state = State::kUnknown;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  std::uint64_t least_ns = 0;
  std::uint64_t mean_ns = 0;
  std::uint64_t p99_ns = 0;

  bool well() const { return state == State::kReached && received == sent && sent != 0; }
  double loss() const { return sent == 0 ? 0 : 1.0 - static_cast<double>(received) / sent; }
};

struct Matrix {
  explicit Matrix(std::vector<std::string> names);
  Cell& at(std::size_t from, std::size_t to) { return cells[from * names.size() + to]; }
  const Cell& at(std::size_t from, std::size_t to) const { return cells[from * names.size() + to]; }

  std::vector<std::string> names;
  std::vector<Cell> cells;
};

struct Finding {
  enum class Kind : std::uint8_t { kDead, kSlow, kOneWay, kCut, kLossy };
  Kind kind;
  std::size_t from = 0;  // or the node
  std::size_t to = 0;
  std::string sentence;
};
// What a person should look at, the worst first. A cell is slow if its mean is above three times that of the
// fast quarter of all cells, and 20 us more; a node is slow if most of its row or column is.
std::vector<Finding> findings(const Matrix& m);
bool slow(const Matrix& m, const Cell& c);

std::string text(const Matrix& m, bool colours);
std::string row_text(const Matrix& m);  // of the first row only
std::string svg(const Matrix& m);
std::string json_text(const Matrix& m);

}  // namespace weft::tools
