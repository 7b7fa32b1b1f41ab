// The program `weft`. Everything it does is a row of the table in commands.cc.
#include <iostream>

#include "cli/commands.h"
#include "record/output.h"

int main(int argc, char** argv) {
  return weft::record::run_program("weft", [&] {
    return weft::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc}, std::cout, std::cerr);
  });
}
