#!/usr/bin/env python3
"""How fast unmodified programs are over the soft NIC, beside what the machine can do without it.

    ./dev bench live [--json FILE] [--repeats 7]

Rows are interleaved, so that a slow moment of a shared machine hits all of them; medians count, and ratios
within one run, never absolute numbers of different runs. Both ends are pinned to one core each. A turn in which
other programs, or the hypervisor, had more than a twentieth of the processors does not count and is repeated, three
times as often as was asked for at most; where too few turns are left, no ratios are printed.
"""
import argparse
import json
import pathlib
import statistics
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent / "parts")]
from busy import MOST, Busy, sentence  # noqa: E402
from live_rows import LIMITS, RATIOS, ROWS  # noqa: E402


def in_turns(repeats):
    """Each row's numbers of the turns in which the machine was quiet, or of all where none was; what others had in the
    turns that do not count; whether enough of them do."""
    quiet, all_turns, crowded = [], [], []
    while len(quiet) < repeats and len(all_turns) < 3 * repeats:
        busy = Busy()
        turn = {}
        for name, measure in ROWS.items():
            print(f"\rbench live: turn {len(quiet) + 1} of {repeats}, {name:40}", end="", file=sys.stderr, flush=True)
            measured = measure()
            turn.update(measured if isinstance(measured, dict) else {name: measured})
        share = busy.share()
        all_turns.append(turn)
        if share <= MOST:
            quiet.append(turn)
        else:
            crowded.append(share)
            print(f"\nbench live: others had {share:.0%} of the processors in this turn, which does not count",
                  file=sys.stderr)
    counted = quiet or all_turns
    return {name: [turn[name] for turn in counted] for name in counted[0]}, crowded, len(quiet) == repeats


def main():
    parser = argparse.ArgumentParser(prog="./dev bench live", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--repeats", type=int, default=7)
    a = parser.parse_args()
    if a.repeats < 1 or a.repeats > 100:
        parser.error(f"--repeats {a.repeats} is not between 1 and 100")
    samples, crowded, enough = in_turns(a.repeats)
    print(file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    for name, value in medians.items():
        limit = "   budget {1} {0}".format(*LIMITS[name]) if name in LIMITS else ""
        print(f"{name:40} {value:10.2f}   ({min(samples[name]):.2f} to {max(samples[name]):.2f}){limit}")
    print()
    ratios = {}
    if not enough:
        print(sentence(statistics.median(crowded)))
    for name, (row, to, budget) in RATIOS.items() if enough else ():
        # Turn by turn: a machine that changes its pace between turns changes both.
        ratios[name] = statistics.median(a / b for a, b in zip(samples[row], samples[to]))
        print(f"{name:40} {ratios[name]:10.2f}   budget {budget}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"medians": medians, "samples": samples, "ratios": ratios, "busy": crowded}, f, indent=2)
            f.write("\n")


if __name__ == "__main__":
    main()
