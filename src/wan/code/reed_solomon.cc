#include "wan/code/reed_solomon.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace weft::wan {
namespace {

constexpr std::size_t kTable = 32;                     // bytes of ISA-L's table for one coefficient
constexpr std::size_t kOfRow = kTable * kMostMembers;  // tables of a row stand together
constexpr std::size_t kLine = 64;                      // of a cache

unsigned char coefficient(std::uint32_t row, std::uint32_t member) {
  return gf_inv(static_cast<unsigned char>((kMostMembers + row) ^ member));
}

using Tables = std::array<unsigned char, kOfRow * kMostRows>;

Tables make_tables() {
  std::array<unsigned char, kMostMembers * kMostRows> c{};
  for (std::uint32_t r = 0; r < kMostRows; ++r) {
    for (std::uint32_t i = 0; i < kMostMembers; ++i) c[r * kMostMembers + i] = coefficient(r, i);
  }
  Tables t{};
  ec_init_tables(kMostMembers, kMostRows, c.data(), t.data());
  return t;
}

// Computed once, never changed.
const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

// ISA-L takes what it only reads as if it wrote to it.
unsigned char* read_only(const unsigned char* p) { return const_cast<unsigned char*>(p); }

}  // namespace

Rows::Rows(std::uint32_t rows, std::uint32_t longest)
    : rows_(rows), longest_(longest), stride_((longest + kLine - 1) / kLine * kLine) {
  CHECK(rows >= 1 && rows <= kMostRows && longest >= 1);
  bytes_ = std::make_unique<std::uint8_t[]>(stride_ * rows);
}

void Rows::use(std::uint32_t bytes) {
  CHECK_OP(bytes, <=, longest_);
  used_ = std::max(used_, bytes);
}

void Rows::clear() {
  for (std::uint32_t r = 0; r < rows_; ++r) std::memset(at(r), 0, used_);
  used_ = 0;
}

void Encoder::add(std::uint32_t member, std::span<const std::uint8_t> block) {
  CHECK_OP(member, <, kMostMembers);
  rows_.use(static_cast<std::uint32_t>(block.size()));
  std::array<unsigned char*, kMostRows> to{};
  for (std::uint32_t r = 0; r < rows_.count(); ++r) to[r] = rows_.at(r);
  ec_encode_data_update(static_cast<int>(block.size()), kMostMembers, static_cast<int>(rows_.count()),
                        static_cast<int>(member), read_only(tables().data()), read_only(block.data()),
                        to.data());
}

void Decoder::begin(std::uint32_t used) {
  rows_.clear();
  solved_.clear();
  rows_.use(used);
  solved_.use(used);
  here_ = 0;
}

void Decoder::row(std::uint32_t r, std::span<const std::uint8_t> bytes) {
  CHECK(r < kMostRows && here_ < kMostRows && bytes.size() <= rows_.used());
  std::copy(bytes.begin(), bytes.end(), rows_.at(here_));
  which_[here_++] = r;
}

void Decoder::subtract(std::uint32_t member, std::span<const std::uint8_t> block) {
  CHECK_OP(member, <, kMostMembers);
  CHECK_OP(block.size(), <=, std::size_t{rows_.used()});
  std::array<unsigned char, kMostRows * kTable> one;
  for (std::uint32_t i = 0; i < here_; ++i)
    std::memcpy(one.data() + i * kTable, tables().data() + which_[i] * kOfRow + member * kTable, kTable);
  std::array<unsigned char*, kMostRows> to{};
  for (std::uint32_t i = 0; i < here_; ++i) to[i] = rows_.at(i);
  // Of one member only: its tables follow each other, as if there were no other.
  ec_encode_data_update(static_cast<int>(block.size()), 1, static_cast<int>(here_), 0, one.data(),
                        read_only(block.data()), to.data());
}

void Decoder::solve(std::span<const std::uint32_t> missing) {
  const std::size_t n = missing.size();
  CHECK(n >= 1 && n <= here_);
  std::array<unsigned char, kMostRows * kMostRows> matrix{};
  std::array<unsigned char, kMostRows * kMostRows> inverse{};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) matrix[i * n + j] = coefficient(which_[i], missing[j]);
  }
  CHECK_OP(gf_invert_matrix(matrix.data(), inverse.data(), static_cast<int>(n)), ==, 0);
  std::array<unsigned char, kMostRows * kMostRows * kTable> solving;
  ec_init_tables(static_cast<int>(n), static_cast<int>(n), inverse.data(), solving.data());
  std::array<unsigned char*, kMostRows> from{};
  std::array<unsigned char*, kMostRows> to{};
  for (std::size_t i = 0; i < n; ++i) {
    from[i] = rows_.at(static_cast<std::uint32_t>(i));
    to[i] = solved_.at(static_cast<std::uint32_t>(i));
  }
  ec_encode_data(static_cast<int>(rows_.used()), static_cast<int>(n), static_cast<int>(n), solving.data(),
                 from.data(), to.data());
}

}  // namespace weft::wan
