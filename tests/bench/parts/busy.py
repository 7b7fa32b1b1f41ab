"""How much of this machine's processors was not a benchmark's own: other programs' work, and what the hypervisor took.

`Busy` begins a measurement of that; `share()` ends it. Own is what this process and the children that it has waited for
used (getrusage), so every child has to be waited for before the end. The kernel's work for packets (softirq) is nobody's
here, since on a loopback it is the benchmark's. The clock of /proc/stat ticks a hundred times a second: measure for a second
or more.
"""
import os
import resource
import time

MOST = 0.05  # of all processors; what is above makes ratios of benchmarks that use two of them meaningless
TICK = os.sysconf("SC_CLK_TCK")


def used():
    """Processor seconds of all programs, and stolen ones, since the machine started."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, _, _, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + steal) / TICK


def own():
    """Processor seconds of this process and of its children that have ended."""
    return sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Busy:
    def __init__(self):
        self.began, self.used, self.own = time.monotonic(), used(), own()

    def share(self):
        """Of all processors' time, from 0 to 1."""
        others = used() - self.used - (own() - self.own)
        return max(0.0, others / ((time.monotonic() - self.began) * os.cpu_count()))


def sentence(share):
    """What a benchmark says in place of ratios."""
    return (f"The machine was busy: others had {share:.0%} of its processors, so ratios would mean nothing. "
            "Run it again when it is quiet.")
