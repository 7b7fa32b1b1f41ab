#!/usr/bin/env python3
"""Looks into core's compiled objects for what pure state machines cannot have: python3 tools/check_symbols.py BUILD.

Two questions for every object of the archives in symbols.toml, and for the object that instantiates the
Device's templates over NullSink (tools/gate): which symbols does it ask the outside for, and does it keep
variables of its own (anything in .data, .bss or their thread-local kin)?

check_includes.py asks the sources the same; this one sees what came in through a macro, a builtin or a
third-party template. Optimised objects are what it judges, because they are what runs.

One more question for the middleware as it ships: does an instruction of it lock the bus, or does it ask for
a lock? [unlocked] in symbols.toml says what counts as one, and which functions are not on a message's way.
"""
import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

SYMBOL = re.compile(r"^[0-9a-f]{8,} (.{7}) (\S+)\t[0-9a-f]+\s+(?:\.(?:hidden|internal|protected) )?(.+)$")
MEMBER = re.compile(r"^(\S+):\s+file format ")
# A writable section that stays writable; .data.rel.ro is sealed by the loader before main.
VARIABLES = re.compile(r"^(\.(data|bss|tdata|tbss)(?!\.rel\.ro)(\.|$)|\*COM\*)")
FUNCTION = re.compile(r"^[0-9a-f]{8,} <(.+)>:$")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\s+(.+?)\s*$")
FORMAT = re.compile(r"file format (\S+)")
GATE = "tools/CMakeFiles/weft_gate.dir/gate"


class Rules:
    def __init__(self, path=None):
        data = tomllib.loads((path or Path(__file__).with_name("symbols.toml")).read_text(encoding="utf-8"))
        self.core = data["core"]
        self.banned = [(name, kind) for kind, names in data["banned"].items() for name in names]
        self.reason = data["reason"]
        self.allowed = [re.compile(name) for name in data["allowed"]["names"]]
        self.exceptions = data["exception"]
        self.unlocked = data["unlocked"]
        self.locking = re.compile("|".join(f"(?:{one})" for one in self.unlocked["instructions"]))

    def refuse(self, member, name):
        """Why `member` may not ask for `name`, or None."""
        # glibc under _FORTIFY_SOURCE: __fprintf_chk is fprintf. Symbol versions are no part of the name.
        plain = re.sub(r"^__(\w+)_chk$", r"\1", name.split("@")[0])
        if plain in self.exceptions.get(member, {}).get("names", ()):
            return None
        bare = plain.split("(")[0]
        for pattern, kind in self.banned:
            if plain == pattern or bare == pattern or (pattern.count("*") and fnmatch.fnmatchcase(bare, pattern)):
                return f"a {kind} symbol: {self.reason[kind]}"
        if any(pattern.fullmatch(plain) for pattern in self.allowed):
            return None
        return "in no list of tools/symbols.toml; whether core may ask for it is a decision, write it down there"


def judge(rules, listing, where):
    """Findings in the output of `objdump -t -w -C` on an object or an archive."""
    found, member = [], ""
    for line in listing.split("\n"):
        named = MEMBER.match(line)
        if named:
            member = Path(named.group(1)).name
        symbol = SYMBOL.match(line)
        if not symbol:
            continue
        flags, section, name = symbol.groups()
        if section == "*UND*":
            reason = rules.refuse(member, name)
            if reason:
                found.append(f"{where}({member}): {name}: {reason}")
        elif "d" not in flags and VARIABLES.match(section):
            found.append(f"{where}({member}): {name}: a variable with static storage; make it a member or constexpr")
    return found


def judge_locks(rules, symbols, instructions, where):
    """Findings in the outputs of `objdump -T -C` and `objdump -d -C --no-show-raw-insn` on the library."""
    found, function, seen = [], "", 0
    machine = FORMAT.search(instructions)
    if not machine or machine.group(1) != rules.unlocked["machine"]:
        return [f"{where}: its instructions are not those that [unlocked] of tools/symbols.toml names"]
    for line in symbols.split("\n"):
        if "*UND*" not in line:
            continue
        name = line.split("*UND*")[1].split(None, 1)[1]
        name = re.sub(r"^\(?(GLIBC|GLIBCXX|CXXABI|GCC|IBVERBS|RDMACM)\w*[_.][\w.]+\)?\s+", "", name).strip()
        if any(fnmatch.fnmatchcase(name.split("(")[0], one) for one in rules.unlocked["names"]):
            found.append(f"{where}: {name}: the middleware has no lock and no thread; its context belongs to one")
    for line in instructions.split("\n"):
        named = FUNCTION.match(line)
        if named:
            function = named.group(1)
            continue
        instruction = INSTRUCTION.match(line)
        if not instruction:
            continue
        seen += 1
        if rules.locking.fullmatch(instruction.group(1)) and not any(
                fnmatch.fnmatchcase(function, one) for one in rules.unlocked["functions"]):
            found.append(f"{where}: {function}: '{instruction.group(1)}' locks or enters the kernel; a message meets neither")
    if seen == 0:
        found.append(f"{where}: no instructions to look into")
    return found


def run_objdump(path, *options):
    return subprocess.run(["objdump", *options, str(path)], check=True, capture_output=True, text=True).stdout


def objdump(path):
    return run_objdump(path, "-t", "-w", "-C")


def locks_of(rules, path, where):
    return judge_locks(rules, run_objdump(path, "-T", "-C"), run_objdump(path, "-d", "-C", "-w", "--no-show-raw-insn"), where)


def archives(rules, build):
    for folder in rules.core:
        yield from sorted((build / "src" / folder).glob("libweft_*.a"))
    yield from sorted((build / GATE).glob("*.o"))


def check(build, rules=None):
    rules = rules or Rules()
    build = Path(build)
    found, seen = [], set()
    for path in archives(rules, build):
        seen.add(path.name)
        found.extend(judge(rules, objdump(path), path.name))
    # A gate that looks at nothing passes everything.
    for needed in ("libweft_base.a", "libweft_wire.a", "libweft_transport.a", "null_sink.cc.o"):
        if needed not in seen:
            found.append(f"{build}: no {needed} to look into; build first")
    library = build / rules.unlocked["library"]
    if library.exists():
        found.extend(locks_of(rules, library, library.name))
    else:
        found.append(f"{build}: no {library.name} to look into; build first")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print("check_symbols: name the build folder, such as: python3 tools/check_symbols.py build", file=sys.stderr)
        sys.exit(2)
    findings = check(sys.argv[1])
    print("\n".join(findings) or "symbols: core asks the outside for memory and nothing else, and the middleware for no lock")
    sys.exit(1 if findings else 0)
