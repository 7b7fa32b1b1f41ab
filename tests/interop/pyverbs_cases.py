#!/usr/bin/env python3
"""Runs some cases of one file of pyverbs' test-suite and writes what became of each; run_pyverbs.py starts it over weft.

    pyverbs_cases.py SUITE FILE RESULTS CASE...

SUITE is a folder that holds the suite as its package `tests`. RESULTS gets a line of JSON for each case as soon as it has
ended: its name, "pass", "skip" or "fail", and the suite's own words. A case that the file does not have has no line.
"""
import importlib
import json
import sys
import unittest


class Written(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def write(self, test, outcome, words=""):
        self.out.write(json.dumps([test._testMethodName, outcome, words]) + "\n")
        self.out.flush()

    def addSuccess(self, test):
        self.write(test, "pass")

    def addSkip(self, test, reason):
        self.write(test, "skip", reason)

    def addFailure(self, test, err):
        self.write(test, "fail", self._exc_info_to_string(err, test))

    addError = addFailure


def cases_of(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from cases_of(entry)
        else:
            yield entry


def main():
    suite, file, results, *names = sys.argv[1:]
    # The suite finds its parser of options beside itself, and options that it does not know stay in sys.argv.
    sys.path[:0] = [suite, f"{suite}/tests"]
    sys.argv[1:] = ["--dev", "weft0", "--gid", "0"]
    importlib.import_module("args_parser").parser.parse_args()
    module = importlib.import_module("tests." + file.removesuffix(".py"))
    chosen = [case for case in cases_of(unittest.defaultTestLoader.loadTestsFromModule(module))
              if case._testMethodName in names]
    with open(results, "a") as out:
        unittest.TestSuite(chosen).run(Written(out))


if __name__ == "__main__":
    main()
