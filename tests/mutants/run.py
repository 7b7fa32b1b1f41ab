#!/usr/bin/env python3
"""Plants known defects, one at a time in each copy of the tree, and expects an independent checker to notice each.

    ./dev mutants              all of them
    ./dev mutants fence rnr    those whose name contains one of the words
    ./dev mutants --list       their names, each with the rule that it breaks

A mutant is a file NAME.patch beside this one: its name, the rule that it breaks and where that rule stands, then
a unified diff. It is applied to a copy of the tree, without fuzz: one that no longer applies is an error, and
whoever changed the line moves its mutant along. Then the checkers are built and run, one after the other, until one
fails; `First: NAME` in the head of a patch says which is likely to. They judge by the rules and not by
what the code did before: the swarm's observers, and tests of single rules and of every loss pattern. A mutant that
survives means that nothing tests this line.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
WORK = ROOT / "build-mutants"
# Most mutants change one file, which occupies one core, so two are under way wherever there are two cores.
WORKERS = min(2, os.cpu_count() or 1)

# Name, program below Tree.build, what it is asked, and what in its output names the rule that was broken. In the order
# in which they are tried: the swarm needs the fewest files compiled anew.
TEST = (["--gtest_brief=1", "--gtest_fail_fast"], r"\[  FAILED  \] ([\w./]+)")
SWARM = (["--jobs", "2", "--seeds"], r"breaks a rule:\n +[\d.]+ us +(.*)")
CHECKERS = {
    "swarm": ("weft-swarm", [*SWARM[0], "200"], SWARM[1]),
    "transport": ("src/core/transport/weft_transport_test", *TEST),
    "unreliable": ("tests/unreliable/weft_unreliable_test", *TEST),
    "engine": ("src/sim/engine/weft_sim_engine_test", *TEST),
    "fabric": ("src/sim/fabric/weft_sim_fabric_test", *TEST),
    "fabrics": ("weft-fabric-swarm", [*SWARM[0], "100"], SWARM[1]),
    "channels": ("tests/channel/weft_channels_test", *TEST),
    "channel-swarm": ("weft-channel-swarm", [*SWARM[0], "300"], SWARM[1]),
    "run_to_complete": ("tests/channel/weft_run_to_complete_test", *TEST),
    "waiting": ("src/channel_c/weft_channel_waiting_test", *TEST),
    "caches": ("src/sim/nic/weft_sim_nic_test", *TEST),
    "stores": ("tests/nic/weft_nic_store_test", *TEST),
    "boxes": ("tests/wan/weft_wan_by_hand_test", *TEST),
    "sites": ("tests/wan/weft_wan_boxes_test", *TEST),
    "lines": ("weft-line-swarm", [*SWARM[0], "100"], SWARM[1]),
    "box": ("src/wan/box/weft_wan_box_test", *TEST),
    "wires": ("src/live/wires/weft_live_wires_test", [*TEST[0], "--gtest_filter=LineOut.*:ImpairedWire.*:SharedRing.*:Shm.*:HostileShm.*:UnpackTest.*:UnpackV6.*:BothWire.*"], TEST[1]),
    "rsockets": ("src/live/rsockets/weft_live_rsockets_test", *TEST),
    "shards": ("src/live/engine/weft_live_engine_test", [*TEST[0], "--gtest_filter=*Shards*"], TEST[1]),
    "time-outs": ("src/live/engine/weft_live_engine_test", [*TEST[0], "--gtest_filter=*NeverEmpty.*"], TEST[1]),
    "patience": ("src/live/engine/weft_live_engine_test", [*TEST[0], "--gtest_filter=Patience.*"], TEST[1]),
    "lab": ("src/lab/weft_lab_test", *TEST),
    "traces": ("src/live/capture/weft_live_capture_test", *TEST),
    "settings": ("src/adm/weft_adm_test", *TEST),
    "both": ("weft-both-swarm", [*SWARM[0], "300"], r"breaks a rule:\n +(host .*)"),
    "whole-nics": ("weft-both-swarm", ["nics", *SWARM[0], "200"], r"breaks a rule:\n +(host .*)"),
    "nics": ("src/sim/world/weft_sim_world_test", [*TEST[0], "--gtest_filter=DetailedWorld.*"], TEST[1]),
}
# What a part of the simulator alone does is noticed by its own: the first row whose folders hold all files of a patch.
OWN = ((("src/adm/",), ("settings",)), (("src/lab/",), ("lab",)),
       (("src/wan/box/",), ("box",)), (("src/wan/",), ("boxes", "sites", "lines")),
       (("src/channel_c/",), ("run_to_complete", "waiting")), (("src/channel/",), ("channels", "channel-swarm")),
       (("src/live/capture/",), ("traces",)), (("src/live/engine/",), ("patience", "shards", "time-outs", "both", "whole-nics")), (("src/live/rsockets/",), ("rsockets",)), (("src/live/wires/",), ("wires",)),
       (("src/sim/nic/context/", "src/sim/nic/cache/"), ("caches", "stores")),
       (("src/sim/engine/",), ("engine", "fabric", "fabrics")),
       (("src/sim/nic/",), ("nics", "fabric", "fabrics", "both")), (("src/sim/",), ("fabric", "fabrics")))
# These use the host's addresses, sockets or shared memory, so two of them at a time could fail because of each other.
ALONE = {"waiting", "run_to_complete", "box", "wires", "rsockets", "shards", "traces", "settings"}
THE_HOST = threading.Lock()
OTHERS = tuple(c for c in CHECKERS if all(c not in own for _, own in OWN))


class Mutant:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        head, _, diff = path.read_text(encoding="utf-8").partition("\n--- ")
        rule = re.search(r"^Breaks: ((?:.+\n)+?)(?:First: ([\w-]+)\n)?$", head + "\n", re.M)
        if not head.startswith(self.name + "\n") or rule is None or not diff:
            raise SystemExit(f"{path.name}: wants its name, 'Breaks: ' and the rule, and a unified diff")
        self.rule = " ".join(rule[1].split())
        self.files = re.findall(r"^\+\+\+ b/(.+)$", "--- " + diff, re.M)
        self.checkers = list(next((own for folders, own in OWN if all(f.startswith(folders) for f in self.files)), OTHERS))
        if rule[2] is not None:
            if rule[2] not in self.checkers:
                raise SystemExit(f"{path.name}: First: '{rule[2]}' is not one of {', '.join(self.checkers)}")
            self.checkers.sort(key=lambda c: c != rule[2])

class Tree:
    """A copy of the tree in which one mutant at a time is planted, and what is built of it."""

    def __init__(self, number):
        self.top = WORK / f"tree{number}"
        self.build = self.top / "build"  # as a tree of its own has it, so that ccache knows what is not broken

    def copy(self):
        """Writes only what differs, so that the build repeats only what it must."""
        self.top.mkdir(parents=True, exist_ok=True)
        wanted = set()
        for part in ("src", "tests", "cmake", "tools", "data", "experiments", "examples", "CMakeLists.txt"):
            source = ROOT / part
            for file in [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file()):
                name = file.relative_to(ROOT)
                wanted.add(name)
                target, content = self.top / name, file.read_bytes()
                if not target.exists() or target.read_bytes() != content:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content)
        for file in [p for p in self.top.rglob("*") if p.is_file() and self.build not in p.parents]:
            if file.relative_to(self.top) not in wanted:
                file.unlink()

    def make(self, *checkers, show=False):
        """None, or what the compiler says. `show`: ninja tells the terminal how far it is."""
        if not (self.build / "build.ninja").exists():
            subprocess.run(["cmake", "-S", str(self.top), "-B", str(self.build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DCMAKE_CXX_COMPILER=g++", "-DWEFT_BENCH=OFF"], check=True, capture_output=True)
        targets = [pathlib.Path(CHECKERS[c][0]).name for c in checkers]
        done = subprocess.run(["ninja", "-C", str(self.build), *targets], stdout=None if show else subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return None if done.returncode == 0 else (done.stdout or "")[-4000:]

    def plant(self, mutant):
        """What was there before, or None when the mutant does not fit."""
        before = {f: (self.top / f).read_bytes() for f in mutant.files if (self.top / f).exists()}
        done = subprocess.run(["patch", "-p1", "-F0", "-s", "-f", "-d", str(self.top), "-i", str(mutant.path),
                               "--no-backup-if-mismatch", "-r", "-"], capture_output=True, text=True)
        if done.returncode == 0 and len(before) == len(mutant.files):
            return before
        self.uproot(before)
        return None

    def uproot(self, before):
        """Writes the files anew, so that ninja sees newer ones than what it made of the mutant."""
        for file, content in before.items():
            (self.top / file).write_bytes(content)

    def verdict(self, checker, patience):
        """What the checker found, or None. One that crashes or does not end has noticed, too."""
        program, arguments, finding = CHECKERS[checker]
        try:
            with THE_HOST if checker in ALONE else contextlib.nullcontext():
                done = subprocess.run([str(self.build / program), *arguments], capture_output=True, text=True, errors="replace",
                                      timeout=patience)
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode == 0:
            return None
        found = re.search(finding, done.stdout, re.M)
        if found:
            return found[1]
        if done.returncode < 0 or "CHECK" in done.stderr or "ended its process" in done.stdout:
            return "crashes: " + (done.stderr.strip().splitlines() or ["without a word"])[0]
        return None  # the swarm missed a coverage mark: no rule was broken

    def judge(self, mutant, patience):
        """Whether the mutant is caught, and by whom or why not."""
        before = self.plant(mutant)
        if before is None:
            return False, "DOES NOT APPLY any more; move it along"
        try:
            for checker in mutant.checkers:
                if (complaint := self.make(checker)) is not None:
                    return False, "DOES NOT COMPILE\n" + complaint
                if (found := self.verdict(checker, patience[checker])) is not None:
                    return True, f"{checker}: {found}"[:110]
            return False, "SURVIVED"
        finally:
            self.uproot(before)


def main():
    mutants = [Mutant(p) for p in sorted(HERE.glob("*.patch"))]
    words = sys.argv[1:]
    if words == ["--list"]:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads may stop early
        for m in mutants:
            print(f"{m.name}\n    {m.rule}")
        return 0
    for word in words:
        if not any(word in m.name for m in mutants):
            print(f"mutants: none of {len(mutants)} has '{word}' in its name; ./dev mutants --list shows all.", file=sys.stderr)
            return 2
    chosen = [m for m in mutants if not words or any(word in m.name for word in words)]
    trees = [Tree(i) for i in range(min(WORKERS, len(chosen)))]
    print("mutants: building what is to be broken", flush=True)
    for tree in trees:
        tree.copy()
        if (complaint := tree.make(*CHECKERS, show=sys.stdout.isatty())) is not None:
            print(complaint)
            print("mutants: the tree does not build")
            return 1
    patience = {}
    for checker in CHECKERS:
        began = time.monotonic()
        if (found := trees[0].verdict(checker, 600)) is not None:
            print(f"mutants: {checker} fails already without a mutant: {found}")
            return 1
        patience[checker] = 5 + 10 * (time.monotonic() - began)
    free = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def judge(mutant):
        tree, began = free.get(), time.monotonic()
        try:
            return mutant, *tree.judge(mutant, patience), time.monotonic() - began
        finally:
            free.put(tree)

    survived = 0
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(trees)) as pool:
        judged = concurrent.futures.as_completed([pool.submit(judge, m) for m in chosen])
        for i, (mutant, good, result, took) in enumerate((f.result() for f in judged), 1):
            survived += not good
            print(f"[{i:2}/{len(chosen)}] {mutant.name:40} {took:5.1f} s  {result}", flush=True)
    print(f"mutants: {len(chosen) - survived} of {len(chosen)} caught in {time.monotonic() - start:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
