// For tests: a number as a paper prints it, for a figure that the program computes.
#pragma once
#include <cstddef>
#include <string>

namespace weft::account {

struct Stated {
  const char* id;
  std::size_t figure;
  double value;
  double within;  // half of the last digit printed, or what "about" covers
};

// As the name of a test.
inline std::string name_of(const Stated& stated) {
  std::string name = stated.id;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name + "_" + std::to_string(stated.figure);
}

}  // namespace weft::account
