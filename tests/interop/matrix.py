#!/usr/bin/env python3
"""The matrix of clients: every program of clients.py in every mode, with and without loss, over every wire.

    matrix.py tests                  the rows that CI runs: a pairwise cover (cover.py), and samples of what is not in it
    matrix.py run WEFT ROW           one row; exit code 77 if its program is not installed
    matrix.py whole WEFT [--only REGEX] [--table FILE]
                                     every row with one shard, one after the other: a quarter of an hour. --table writes what
                                     passed, with the commit, between two marks of a document

A row that fails is run once more, as ./dev test does, and the table counts it as passed then; the summary names it.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import clients
from cover import cover

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
BEGINS, ENDS = "<!-- matrix: written by ./dev ci --full -->", "<!-- matrix ends -->"


def tests():
    rows = clients.rows()
    covered = {c.name for c in clients.CLIENTS if c.covered}
    return cover([row for row in rows if row.client in covered]) + [row for row in rows if row.name in clients.SAMPLES]


def words(text, weft, scratch):
    places = {"@THIS": os.path.join(HERE, "rules.cc"), "@SCRATCH": scratch}
    for mpi in ("mpi", "mpich"):
        places[f"@RANKS_{mpi}"] = os.path.join(os.path.dirname(os.path.abspath(weft)), "tests", "interop", f"ranks_{mpi}")
    for name, place in places.items():
        text = text.replace(name, place)
    return shlex.split(text)


def command(weft, row, scratch):
    """What runs a row, as the list of words that a shell would need."""
    client = next(c for c in clients.CLIENTS if c.name == row.client)
    serve, ask = (words(end.replace("@RANKS", f"@RANKS_{row.client}"), weft, scratch) for end in client.variants[row.variant])
    options = ["--mode", row.mode, "--wire", row.wire]
    if client.harness == "alone":
        return [weft, "run", *client.flags, *options, "--loss", row.loss + "%", "--seed", "7", "--", *serve]
    script = os.path.join(HERE, f"run_{client.harness}.py")
    if client.harness == "veth":
        options += ["--link", "no_segmentation"] + ([] if row.loss == "0" else [f"--line=in={row.loss}%,out={row.loss}%"])
        ask = [word.replace("@SERVER", "10.0.0.1") for word in ask]
    else:
        options += ["--seconds", "50", "--loss", row.loss + "%"] + ([] if row.shards == "1" else ["--shards", row.shards])
    return [sys.executable, script, weft, *options, "--", *client.flags, *serve, "::", *ask]


def missing(full):
    """A program of the row that is not here, or nothing."""
    asked = full[full.index("--") + 1:]
    programs = [w for w in asked if w.startswith(("mpiexec.", os.sep))]
    return next((p for p in programs if shutil.which(p) is None and not os.path.exists(p)), None)


def run(weft, row):
    """(exit code, what it printed)"""
    with tempfile.TemporaryDirectory() as folder:
        full = command(weft, row, os.path.join(folder, "copy"))
        absent = missing(full)
        if absent:
            return SKIPPED, f"skipped: {absent} is not here; ./dev setup --mpi and ./dev build make it"
        done = subprocess.run(full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, f"{shlex.join(full)}\n{done.stdout}"


def table(results):
    """Lines of Markdown: a line a program and its words, a column a mode and a loss, and how many of its wires passed."""
    columns = [(mode, loss) for mode in clients.MODES for loss in clients.LOSSES]
    yield "| program | " + " | ".join(f"{mode}, {loss} %" for mode, loss in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for client in clients.CLIENTS:
        for variant in client.variants:
            cells = []
            for mode, loss in columns:
                codes = [code for row, code in results
                         if (row.client, row.variant, row.mode, row.loss) == (client.name, variant, mode, loss)]
                ran = [code for code in codes if code != SKIPPED]
                passed = sum(code == 0 for code in ran)
                cells.append("" if not codes else "not installed" if not ran else str(passed) if passed == len(ran) else
                             f"**{passed} of {len(ran)}**")
            if any(cells):
                name = client.name if variant == clients.PLAIN else f"{client.name}, {variant.replace('_', ' ')}"
                yield f"| {name} | " + " | ".join(cells) + " |"


def version(weft):
    """Of what was tried, and not of the tree, which may be changed meanwhile."""
    return subprocess.run([weft, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def summary(what, results, seconds):
    counts = {said: sum(test(code) for _, code in results) for said, test in (
        ("passed", lambda code: code == 0), ("failed", lambda code: code not in (0, SKIPPED)), ("not installed", SKIPPED.__eq__))}
    said = ", ".join(f"{count} {said}" for said, count in counts.items() if count)
    return f"{len(results)} runs of {what} on {time.strftime('%Y-%m-%d')}, {seconds:.0f} s: {said}."


def write_table(file, text):
    with open(file, encoding="utf-8") as before:
        document = before.read()
    if BEGINS not in document or ENDS not in document:
        sys.exit(f"{file} has no lines '{BEGINS}' and '{ENDS}' for the table to go between.")
    at, end = document.index(BEGINS) + len(BEGINS), document.index(ENDS)
    with open(file, "w", encoding="utf-8") as after:
        after.write(f"{document[:at]}\n{text}\n{document[end:]}")


def whole(weft, only, file):
    began, what = time.monotonic(), version(weft)
    rows = [row for row in clients.rows() if row.shards == "1" and re.search(only, row.name)]
    if not rows:
        sys.exit(f"no row matches '{only}'; 'matrix.py tests' shows how they are named.")
    results, again = [], []
    for i, row in enumerate(rows):
        code, text = run(weft, row)
        if code not in (0, SKIPPED):
            again.append(row.name)
            print(f"{row.name} failed once\n{text}", flush=True)
            code, text = run(weft, row)
        if code not in (0, SKIPPED):
            print(f"{row.name} FAILED\n{text}", flush=True)
        results.append((row, code))
        if sys.stderr.isatty() or i % 50 == 49:
            left = (time.monotonic() - began) / (i + 1) * (len(rows) - i - 1)
            print(f"{i + 1} of {len(rows)} rows, {left:.0f} s left", file=sys.stderr, flush=True)
    said = summary(what, results, time.monotonic() - began)
    if again:
        said += f" A second try took: {', '.join(f'`{name}`' for name in again)}."
    print(said)
    if file:
        write_table(file, "\n".join([said, "", *table(results)]))
    return 0 if all(code in (0, SKIPPED) for _, code in results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parsers = parser.add_subparsers(dest="what", required=True)
    parsers.add_parser("tests")
    one = parsers.add_parser("run")
    one.add_argument("weft")
    one.add_argument("row")
    every = parsers.add_parser("whole")
    every.add_argument("weft")
    every.add_argument("--only", default="", help="rows whose name has this regular expression")
    every.add_argument("--table", help="a document to write the table into")
    a = parser.parse_args()
    if a.what == "tests":
        print(*(row.name for row in tests()), sep="\n")
        return 0
    weft = os.path.abspath(a.weft)
    if a.what == "whole":
        return whole(weft, a.only, a.table)
    row = next((row for row in clients.rows() if row.name == a.row), None)
    if row is None:
        sys.exit(f"there is no row '{a.row}'; 'matrix.py tests' names those that CI runs.")
    code, text = run(weft, row)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
