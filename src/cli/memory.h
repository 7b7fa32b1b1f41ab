// Memory as an option among others: a run that needs more than there is ends with a sentence. Left to itself
// Linux promises any amount and later kills the process that took it, or another one.
#pragma once

namespace weft::cli {

// From here on this process and its children get no more memory than the machine has free now: then
// allocation fails, and run_program() says so. A stricter limit (`ulimit -d`) stays.
void limit_memory();

}  // namespace weft::cli
