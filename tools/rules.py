#!/usr/bin/env python3
"""Runs every rule that needs no build: python3 tools/rules.py [FOLDER].

FOLDER is the tree to judge, by default the one that this file is in. Exit code 1 when something was found.
"""
import sys
from pathlib import Path

import check_citations
import check_experiments
import check_files
import check_includes
import check_words


def main(arguments):
    root = Path(arguments[0] if arguments else __file__).resolve()
    root = root if arguments else root.parent.parent
    if not root.is_dir():
        print(f"rules: '{root}' is no folder.", file=sys.stderr)
        return 2
    notes = []
    findings = (check_includes.check(root) + check_words.check(root) + check_files.check(root, notes) +
                check_citations.check(root) + check_experiments.check(root))
    for line in notes:
        print("note: " + line)
    for line in sorted(findings):
        print(line)
    print(f"rules: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
