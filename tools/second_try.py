#!/usr/bin/env python3
"""What ./dev test does when a test has failed: it shows what the test printed, and may give it a second try.

    second_try.py FOLDER [-C CONFIGURATION]        after ctest has failed in this build folder

A test of state machines that fails has found something, and stays failed. Tests with RUN_SERIAL run other people's programs
over sockets against the real clock; on a crowded machine one in many thousands gets no time when it needs it. If no more than
three of those failed, and nothing else, they run once more. Both outputs are shown, so that nothing is lost to whoever looks
for the reason, and the last lines say who needed it.
"""
import json
import pathlib
import re
import subprocess
import sys

MOST = 3
LINES = 60


def failed(folder):
    """The names of those that failed in the last run."""
    log = folder / "Testing/Temporary/LastTestsFailed.log"
    return [line.split(":", 1)[1] for line in log.read_text().splitlines() if ":" in line] if log.exists() else []


def serial(listing):
    """The names of those that have the machine to themselves, from ctest's own listing."""
    return {test["name"] for test in listing["tests"]
            if any(p["name"] == "RUN_SERIAL" and p["value"] is True for p in test.get("properties", []))}


def outputs(folder):
    """What each test of the last run printed."""
    text = (folder / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    found = {}
    for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        name, rest = part.split("\n", 1)
        body = re.search(r"^Output:\n-+\n(.*?)^<end of output>", rest, flags=re.M | re.S)
        found[name] = body.group(1).rstrip() if body else rest.rstrip()
    return found


def show(names, printed):
    for name in names:
        lines = printed.get(name, "it printed nothing").splitlines()
        print(f"\n== {name} failed; what it printed" + (f" (the last {LINES} lines)" if len(lines) > LINES else "") + ":")
        print("\n".join(lines[-LINES:]))


def main():
    folder, configuration = pathlib.Path(sys.argv[1]), sys.argv[2:]
    names = failed(folder)
    if not names:
        return 1
    printed = outputs(folder)  # before the listing: that makes the log anew
    if not printed:
        print(f"\n{', '.join(names)} failed. The log is lost: another ctest ran in this folder meanwhile, so there is no second try.")
        return 1
    show(names, printed)
    listing = json.loads(subprocess.run(["ctest", "--test-dir", folder, *configuration, "--show-only=json-v1"], check=True, capture_output=True).stdout)
    if len(names) > MOST or not set(names) <= serial(listing):
        return 1
    print(f"\n== a second try for {', '.join(names)}: on the real clock, and nothing else failed", flush=True)
    pattern = "^(" + "|".join(re.escape(name) for name in names) + ")$"
    if subprocess.run(["ctest", "--test-dir", folder, *configuration, "-R", pattern], check=False).returncode != 0:
        show(failed(folder), outputs(folder))
        return 1
    print(f"\nPassed at the second try only: {', '.join(names)}. What it printed at the first stands above; it deserves a look.\n\n"
          f"100% tests passed, 0 tests failed out of {len(printed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
