#!/usr/bin/env python3
"""The drop-in library exports what Debian's programs ask for and nothing else, and needs little.

    abi_test.py LIBRARY EXPORTS...

EXPORTS (data/abi/libibverbs_exports.txt, librdmacm_exports.txt) are the lists of libibverbs 44's and librdmacm 44's
symbols with their default versions. librdmacm.so.1 beside LIBRARY must be the same file. A library in a foreign process must not bring symbols of its own along, nor libraries.
"""
import os
import re
import subprocess
import sys

NEEDED = {"libisal.so.2", "libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def exports(library):
    found = set()
    text = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        match = re.match(r"[0-9a-f]{16} g .* (\S+)\s+[0-9a-f]{16}\s+((?:IBVERBS|RDMACM)_\S+)\s+(\S+)$", line)
        if match and match[1] != "*ABS*":
            found.add(f"{match[3]}@{match[2]}")
        elif re.match(r"[0-9a-f]{16} g ", line) and "*ABS*" not in line:
            found.add("without a version: " + line.split()[-1])
    return found


def main():
    library, *lists = sys.argv[1:]
    wanted = set()
    for list_file in lists:
        with open(list_file, encoding="utf-8") as f:
            wanted |= {line.strip() for line in f if line.strip() and not line.startswith("#")}
    have = exports(library)
    failed = False
    for text, names in (("missing", wanted - have), ("not in the list", have - wanted)):
        for name in sorted(names):
            print(f"{text}: {name}")
            failed = True
    dynamic = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True).stdout
    for name in sorted(set(re.findall(r"NEEDED\s+(\S+)", dynamic)) - NEEDED):
        print(f"needs a library that a foreign process may not have: {name}")
        failed = True
    if "SONAME               libibverbs.so.1" not in dynamic:
        print("its SONAME is not libibverbs.so.1")
        failed = True
    second = os.path.join(os.path.dirname(library), "librdmacm.so.1")
    if not os.path.exists(second) or not os.path.samefile(second, library):
        print(f"{second} is not the same library")
        failed = True
    print(f"{len(have)} symbols")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
