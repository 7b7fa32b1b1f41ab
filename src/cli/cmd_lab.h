// The commands of `weft lab`, for `weft` and for weft-lab-mpi, which executes runs elsewhere.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "lab/session.h"

namespace weft::cli {

// `weft-lab-mpi run NAME…` is `weft lab run NAME…` with this executor instead of child processes.
int run_lab_program(std::vector<std::string> args, std::ostream& out, std::ostream& err,
                    lab::Executor executor);

}  // namespace weft::cli
