#!/usr/bin/env python3
"""The cases of pyverbs' test-suite that name no vendor, over weft, both ends of each on one NIC.

    run_pyverbs.py WEFT EXPECTED [--suite FOLDER] [--file test_mr.py] [--times N]

Prints a line for each case: pass, skip or fail, with the reason. EXPECTED (pyverbs_expected.toml) lists the cases and those
that are skipped, each with its reason; any other outcome fails this run, and so does a case that is missing. A case
skipped in the suite's own words for another reason than the listed one is another outcome.

The suite comes with Debian's python3-pyverbs, packed; --suite is a folder with one of rdma-core's source tree instead. Each
of its files is one program over weft: what hangs or dies there costs that file's other cases, and no other file's. All run in
a network namespace of their own, with the loopback interface's address.

--file runs that file only; --times repeats all that many times, and every time has to be as expected.
"""
import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from namespaces import SKIPPED, enter_namespaces

SUITE = Path("/usr/share/doc/rdma-core/tests")
SECONDS = 100  # of one file; the longest takes ten
# The suite's package loads every test of its folder, so these stay behind.
OF_VENDORS = re.compile(r"test_(mlx5|efa|cuda)")


def python_with_pyverbs():
    """Debian's extension modules are for Debian's interpreter, which another one may hide."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import pyverbs.device"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except FileNotFoundError:
            pass
    return None


def unpack(suite, folder):
    package = Path(folder) / "tests"
    package.mkdir()
    for source in suite.iterdir():
        if OF_VENDORS.match(source.name):
            continue
        if source.name.endswith(".py.gz"):
            (package / source.name[:-3]).write_bytes(gzip.decompress(source.read_bytes()))
        elif source.name.endswith(".py"):
            shutil.copy(source, package)


def run_file(a, python, folder, file, cases):
    """What became of each case, by name, and what the program said."""
    results = Path(folder) / "results"
    results.write_text("")
    command = [a.weft, "run", "--device-files", "--", python, str(Path(__file__).with_name("pyverbs_cases.py")), folder, file, str(results), *cases]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        said, ended = done.stdout, f"the program ended with {done.returncode} before it"
    except subprocess.TimeoutExpired as late:
        said, ended = (late.stdout or b"").decode(errors="replace"), f"not ended after {SECONDS} s"
    got = {name: (outcome, words) for name, outcome, words in map(json.loads, results.read_text().splitlines())}
    return {name: got.get(name, ("fail", ended)) for name in cases}, said


def reason_of(skipped, file, name):
    """The listed reason why a case is skipped; None if it is to pass."""
    return next((reason for reason, files in skipped.items() if name in files.get(file, [])), None)


def judge(outcome, words, reason):
    """Whether that was to be expected, and a word about it."""
    if reason is None:
        return outcome == "pass", words
    if outcome == "skip":
        return re.search(reason["says"], words) is not None, reason["why"]
    return outcome == "pass" and reason.get("of_the_machine", False), words


def run_all(a, expected, python, folder):
    unexpected, count = 0, {"pass": 0, "skip": 0, "fail": 0}
    reasons = expected["reason"]
    for file, cases in expected["cases"].items():
        if a.file not in (None, file):
            continue
        results, said = run_file(a, python, folder, file, cases)
        file_failed = False
        for name, (outcome, words) in results.items():
            key = reason_of(expected["skipped"], file, name)
            good, shown = judge(outcome, words, reasons[key] if key else None)
            count[outcome] += 1
            line = f"{outcome:4} {file} {name}"
            if outcome != "pass":
                line += f": {shown if good else words.strip()}"
            if not good:
                unexpected += 1
                file_failed = True
                line += "\n     expected: " + (f"skip, {reasons[key]['why']}" if key else "pass")
            print(line)
        if file_failed:
            print(f"--- what {file} printed\n{said}---")
    print(f"{sum(count.values())} cases: {count['pass']} passed, {count['skip']} skipped, {count['fail']} failed; {unexpected} otherwise than expected")
    return unexpected == 0


def main():
    arguments = enter_namespaces(__file__, sys.argv[1:])
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("expected", type=Path)
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--file")
    parser.add_argument("--times", type=int, default=1)
    a = parser.parse_args(arguments)
    a.weft = os.path.abspath(a.weft)
    python = python_with_pyverbs()
    if python is None or not (a.suite / "__init__.py").exists():
        print("skipped: pyverbs or its tests are not installed; ./dev setup --pyverbs installs both")
        return SKIPPED
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    expected = tomllib.loads(a.expected.read_text())
    with tempfile.TemporaryDirectory() as folder:
        unpack(a.suite, folder)
        good = [run_all(a, expected, python, folder) for _ in range(a.times)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
