// The program `weft`. Everything it does is a row of the table in commands.cc.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cli/commands.h"

int main(int argc, char** argv) {
  try {
    return weft::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc}, std::cout, std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "weft: " << error.what() << '\n';
    return 1;
  }
}
