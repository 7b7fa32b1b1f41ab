// Figures that papers state and that follow from arithmetic: memory, header bytes, sizes of networks. Each
// row is computed from its inputs by the functions of network.h, irn.h and srnic.h; the inputs stand in
// quantities.cc beside the section that gives them.
//
// Units follow SRNIC's rule: K is 1024 for memory and messages ("KiB", "MiB") and 1000 otherwise ("KB",
// "MB").
#pragma once
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace weft::account {

struct Figure {
  const char* what = "";
  double value = 0;
};

struct Quantity {
  static constexpr std::size_t kMost = 8;
  constexpr Quantity(const char* i, const char* u, const char* t, std::initializer_list<Figure> all)
      : id(i), unit(u), text(t) {
    for (const Figure& f : all) figures_[count_++] = f;
  }

  const char* id;
  const char* unit;
  const char* text;
  // First those that the paper states, in its order, then what explains them.
  constexpr std::span<const Figure> figures() const { return {figures_.data(), count_}; }

 private:
  std::array<Figure, kMost> figures_{};
  std::size_t count_ = 0;
};

std::span<const Quantity> quantities();
// Null when there is none of that name.
const Quantity* find_quantity(const char* id);

}  // namespace weft::account
