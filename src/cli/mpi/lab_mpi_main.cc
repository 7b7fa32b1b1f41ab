// weft-lab-mpi: `weft lab` over machines. mpirun -n N weft-lab-mpi run NAME…: rank 0 owns the record and
// hands out runs to the others. All ranks must see the experiments under the same path; the record only rank
// 0 does.
#include <iostream>

#include "cli/cmd_lab.h"
#include "cli/mpi/ranks.h"
#include "cli/program.h"
#include "record/output.h"

int main(int argc, char** argv) {
  using namespace weft;
  cli::Ranks ranks(&argc, &argv);
  if (ranks.rank() != 0) {
    ranks.serve([](const std::string& piece) { return lab::execute_piece(piece, cli::this_program()); });
    return 0;
  }
  return record::run_program("weft-lab-mpi", [&] {
    return cli::run_lab_program(
        {argv + (argc > 0 ? 1 : 0), argv + argc}, std::cout, std::cerr,
        [&](const auto& pieces, const lab::PoolCalls& calls) { return ranks.run(pieces, calls); });
  });
}
