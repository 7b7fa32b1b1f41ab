// A child process that does not outlive the one that started it: far ends, programs beside, measurements and
// runs of an experiment. Whoever starts one waits for it.
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

namespace weft::process {

// The child runs `inside`, which becomes another program or ends the process; where it returns, it could not
// become that program. The answer is the child's number, or negative as fork()'s, with errno.
template <class Inside>
pid_t spawn(const Inside& inside) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the kernel knew
  inside();
  _exit(127);
}

}  // namespace weft::process
