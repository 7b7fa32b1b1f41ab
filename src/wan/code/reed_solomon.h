// Parity over a group of blocks: of `members` and `rows` together, any `members` of them give all the others
// back (Reed-Solomon, by ISA-L's arithmetic in GF(256)).
//
//   row r  =  sum over members i of  c(r, i) * block i        c(r, i) = 1 / ((64 + r) ^ i), a Cauchy matrix
//
// The coefficients depend on neither the number of members nor that of rows, because every square part of a
// Cauchy matrix can be inverted. So a group may end with fewer members than it was opened for. Considered
// instead: ISA-L's Vandermonde matrix, where not every choice of 8 rows can be solved.
//
// Blocks have lengths of their own. A row is as long as the longest of them; a shorter block counts as if
// zeros followed it. Whoever needs the length puts it into the block.
//
// Memory is taken by constructors only. An Encoder belongs to one direction of one line.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace weft::wan {

inline constexpr std::uint32_t kMostMembers = 64;
inline constexpr std::uint32_t kMostRows = 8;

// `rows` buffers of `longest` bytes each that are zero behind `used()`.
class Rows {
 public:
  Rows(std::uint32_t rows, std::uint32_t longest);
  std::uint8_t* at(std::uint32_t row) const { return bytes_.get() + std::size_t{row} * stride_; }
  std::uint32_t count() const { return rows_; }
  std::uint32_t longest() const { return longest_; }
  std::uint32_t used() const { return used_; }
  void use(std::uint32_t bytes);
  void clear();

 private:
  std::uint32_t rows_;
  std::uint32_t longest_;
  std::uint32_t used_ = 0;
  std::size_t stride_;
  std::unique_ptr<std::uint8_t[]> bytes_;
};

class Encoder {
 public:
  Encoder(std::uint32_t rows, std::uint32_t longest) : rows_(rows, longest) {}

  void begin() { rows_.clear(); }
  // Each member once, in any order. At most `longest` bytes.
  void add(std::uint32_t member, std::span<const std::uint8_t> block);
  std::span<const std::uint8_t> row(std::uint32_t r) const { return {rows_.at(r), rows_.used()}; }
  std::uint32_t used() const { return rows_.used(); }
  std::uint32_t longest() const { return rows_.longest(); }

 private:
  Rows rows_;
};

// One group at a time:
//
//   begin(used)          how long its rows are
//   row(r, bytes)        a row that is here; as many of them as members are missing
//   subtract(i, block)   a member that is here
//   solve(missing)       the blocks of the missing members, in the order of `missing`, `used` bytes each
class Decoder {
 public:
  explicit Decoder(std::uint32_t longest) : rows_(kMostRows, longest), solved_(kMostRows, longest) {}

  void begin(std::uint32_t used);
  void row(std::uint32_t r, std::span<const std::uint8_t> bytes);
  void subtract(std::uint32_t member, std::span<const std::uint8_t> block);
  void solve(std::span<const std::uint32_t> missing);
  std::span<const std::uint8_t> block(std::uint32_t which) const { return {solved_.at(which), rows_.used()}; }
  std::uint32_t longest() const { return rows_.longest(); }

 private:
  Rows rows_;
  Rows solved_;
  std::array<std::uint32_t, kMostRows> which_{};
  std::uint32_t here_ = 0;
};

}  // namespace weft::wan
