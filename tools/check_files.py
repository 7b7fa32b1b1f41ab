#!/usr/bin/env python3
"""What every source file looks like: not too long, opening with prose, headers guarded.

Past 500 lines look for the seam (reported, not refused); past 1000 there is one (refused). A .cc
or a test beside a header of its own name may leave the prose to the header.
"""
import sys
from pathlib import Path

import tree

LONG, TOO_LONG = 500, 1000


def check(root, notes=None):
    found = []
    for path in tree.files(root, (".cc", ".h", ".py")):
        lines = tree.text(root, path).split("\n")
        length = len(lines) - 1
        if length > TOO_LONG:
            found.append(f"{path}:{TOO_LONG + 1}: {length} lines; a file past {TOO_LONG} has a seam, split it there")
        elif length > LONG and notes is not None:
            notes.append(f"{path}: {length} lines; look for the seam")
        opening = next((line for line in lines if line.strip() and not line.startswith("#!")), "")
        if path.suffix == ".py":
            prose = opening.startswith(('"""', "#"))
        else:
            prose = opening.startswith(("//", "/*")) or (
                path.suffix == ".cc" and (Path(root) / path.with_name(path.stem.removesuffix("_test") + ".h")).is_file())
        if length > 0 and not prose:
            found.append(f"{path}:1: opens without prose; say what it is, and which section it follows")
        if path.suffix == ".h" and not any(line.startswith("#pragma once") for line in lines):
            found.append(f"{path}:1: a header without #pragma once")
    return found


if __name__ == "__main__":
    long_ones = []
    findings = check(Path(__file__).resolve().parent.parent, long_ones)
    print("\n".join(long_ones + findings) or "files: none too long")
    sys.exit(1 if findings else 0)
