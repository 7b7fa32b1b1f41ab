#!/usr/bin/env python3
"""`./dev noise`: tests of the live world under the shim of noise.cc, which makes threads nap at the worst moments.

    run.py FOLDER [-R REGEX] [--nap US] [--one-in N] [--seed S] [--times N]        FOLDER is a build folder

Each round is ctest with the shim preloaded, in a network namespace of its own, so that nothing else listens on its loopback addresses, and
the seed of round i is S + i. The programs that start others (ctest, shells, Python) do not nap. What a failed test printed is shown, with
the command that makes its naps again. Exit code 1: something failed; 2: it was asked for something that cannot be.

A test that compares times, or that says how much is done within one, fails of naps alone. Such tests are rows of LEFT_OUT with their reason;
a row is no place for a test that fails otherwise. A test that fills a table makes very many calls, and is left out only where its naps would take
it beyond ctest's time-out: a row of MANY_CALLS says how many there are.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/interop"), str(ROOT / "tools")]
import namespaces  # noqa: E402
import second_try  # noqa: E402

DEFAULT = r"^(interop|live_\w+)\."
LEAVE = "ctest,cmake,python3,python3.11,sh,bash,env,unshare,ip,cut"
LEFT_OUT = [
    (r"^interop\.(veth|wan|kernel|fi_pingpong|forged|ends\.(down|down_and_up|no_locked_memory))\.", "makes a network of its own, and is no case of loopback"),
]
# Calls that may nap, one after another: what a run took, divided by the mean of its naps. It grows with the naps, so the tests are slow and not stuck.
MANY_CALLS = [
    (r"^live_wires\.Shm\.NoBellIsMissed$", 50_000),
    (r"^live_rdmacm\.Id\.OfAConnectionThatIsOverEndsNobodyElses$", 70_000),
    (r"^live_rdmacm\.Multicast\.ReachesThoseWhoJoinedUntilTheyLeave$", 50_000),
    (r"^live_rsockets\.Datagrams\.OfMorePeersThanTheTableHoldsAllArrive$", 40_000),
    (r"^live_abi\.Peers\.AreLimitedAtATimeAndNotInAll$", 110_000),
    (r"^live_abi\.LimitsTest\.ThereAreAsManyCompletionQueuesAsTheDeviceSays$", 70_000),
    (r"^live_abi\.LimitsTest\.ThereAreAsManyAddressHandlesAsTheDeviceSays$", 110_000),
    (r"^live_abi\.LimitsTest\.ThereAreAsManyQueuePairsAsTheDeviceSays$", 180_000),
    (r"^live_abi\.LimitsTest\.ThereAreAsManyWindowsAsTheDeviceSays$", 420_000),
    (r"^live_abi\.LimitsTest\.ThereAreAsManyRegionsAsTheDeviceSays$", 590_000),
]
LONGEST = 80  # seconds of naps, of a time-out of 120


def refuse(sentence):
    print(f"noise: {sentence}", file=sys.stderr)
    sys.exit(2)


def why_not(name, nap, one_in):
    """The reason to leave this test out; None: it runs."""
    for row, reason in LEFT_OUT:
        if re.search(row, name):
            return reason
    for row, calls in MANY_CALLS:
        seconds = calls * nap / one_in / 1e6  # one nap before and one after, half of the longest on average
        if re.search(row, name) and seconds > LONGEST:
            return f"makes so many calls that their naps would take longer than {LONGEST} s"
    return None


def choose(names, pattern, nap, one_in):
    """The names to run, and those that match but are left out, with the reason."""
    chosen, without = [], []
    for name in names:
        if not re.search(pattern, name):
            continue
        reason = why_not(name, nap, one_in)
        if reason is None:
            chosen.append(name)
        else:
            without.append((name, reason))
    return chosen, without


class Parser(argparse.ArgumentParser):
    def error(self, message):
        refuse(f"{message}; ./dev noise --help says what there is.")


def arguments(words):
    def count(text):
        if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 999999999")
        return int(text)

    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("folder")
    parser.add_argument("--shim")
    parser.add_argument("-R", dest="pattern", default=DEFAULT)
    parser.add_argument("--nap", type=count, default=5000)
    parser.add_argument("--one-in", type=count, default=50)
    parser.add_argument("--seed", type=count, default=1)
    parser.add_argument("--times", type=count, default=1)
    a = parser.parse_args(words)
    try:
        re.compile(a.pattern)
    except re.error as wrong:
        refuse(f"-R '{a.pattern}' is no regular expression: {wrong}.")
    a.folder = Path(a.folder).resolve()
    a.shim = a.shim or str(a.folder / "lib/libweft_noise.so")
    return a


def tests_of(folder):
    done = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True)
    return [test["name"] for test in json.loads(done.stdout)["tests"]]


def one_round(a, chosen, seed):
    """The names that failed."""
    pattern = "^(" + "|".join(re.escape(name) for name in chosen) + ")$"
    environment = {**os.environ, "LD_PRELOAD": a.shim, "NOISE_SEED": str(seed), "NOISE_NAP": str(a.nap), "NOISE_ONE_IN": str(a.one_in),
                   "NOISE_LEAVE": LEAVE, "CTEST_OUTPUT_ON_FAILURE": "0"}
    (a.folder / "Testing/Temporary/LastTestsFailed.log").unlink(missing_ok=True)
    done = subprocess.run(["ctest", "--test-dir", a.folder, "-R", pattern, "--no-tests=error"], env=environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    failed = second_try.failed(a.folder)
    if done.returncode != 0 and not failed:
        print(done.stdout)
        refuse("ctest could not run the tests.")
    second_try.show(failed, second_try.outputs(a.folder))
    for name in failed:
        print(f"\n== its naps again: ./dev noise -R '^{re.escape(name)}$' --nap {a.nap} --one-in {a.one_in} --seed {seed}")
    summary = re.search(r"^\d+% tests passed.*$", done.stdout, flags=re.M)
    print(f"noise: seed {seed}: {summary[0] if summary else 'nothing ran'}", flush=True)
    return failed


def main():
    words = sys.argv[1:]
    inside = "--inside" in words
    a = arguments([word for word in words if word != "--inside"])
    if not Path(a.shim).exists():
        refuse(f"there is no shim {a.shim}; a build with sanitizers has none.")
    chosen, without = choose(tests_of(a.folder), a.pattern, a.nap, a.one_in)
    if not chosen:
        refuse(f"no test to run matches '{a.pattern}'" + (f"; left out is {without[0][0]}, which {without[0][1]}." if without else "."))
    if not inside:
        way, reason = namespaces.namespaces_refused()
        if way is None:
            refuse(f"network namespaces may not be made here ({reason}).")
        sys.exit(subprocess.call(["unshare", *way, "--net", sys.executable, "-B", __file__, "--inside", *words]))
    namespaces.run("ip", "link", "set", "lo", "up")
    for reason in dict.fromkeys(reason for _, reason in without):
        names = [name for name, why in without if why == reason]
        print(f"noise: left out {len(names)}: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}: {reason}")
    print(f"noise: {len(chosen)} tests, naps up to {a.nap} us around one call in {a.one_in}", flush=True)
    rounds = [one_round(a, chosen, a.seed + i) for i in range(a.times)]
    return 1 if any(rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
