#!/usr/bin/env python3
"""Runs scenarios with `weft sim` as three compilers' settings made it, and compares what they write byte for byte.

    python3 tools/same_bytes.py              builds what is missing of the three, then compares
    python3 tools/same_bytes.py --keep DIR   leaves the results there

g++ -O3 (preset release), g++ -O0 (debug), clang -O1 with sanitizers (asan). A simulation is a function of its
scenario: where two of them differ, something depends on floating point, on an order that the language leaves
open, or on a byte that was never written.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILDS = {"release": "build", "debug": "build-debug", "asan": "build-asan"}
FILES = ("summary.json", "flows.csv", "ports.csv")
SEEDS = 12  # random fabrics beside the named ones

BASE = """
hosts = 16
limit = "1s"
[topology]
kind = "fat-tree"
[network]
delay = "1us"
[[traffic]]
sizes = "irn-heavy"
verb = "mixed"
load = "60%"
flows = 40
[[flow]]
from = 1
to = 14
op = "read"
size = "5000"
count = 50
"""
NETWORKS = {
    "loss": ["network.loss=0.5%", "network.reorder=1%", "topology.routing=spray"],
    "pfc": ["switch.pfc=true", "switch.kind=input-queued", "transport.controller=timely"],
    "ecn": ["switch.buffer=100kB", "switch.ecn=red", "switch.ecn_low=5kB", "switch.ecn_high=50kB", "transport.controller=dcqcn"],
    "step": ["network.queue=30kB", "switch.ecn=step", "switch.ecn_low=10kB", "transport.controller=dctcp", "network.control_class=3"],
    "credits": ["switch.credits=true", "transport.controller=aimd", "topology.routing=fixed"],
}


def build(preset, folder):
    if not (ROOT / folder / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", preset], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    targets = ["weft", "weft-fabric-swarm"] if preset == "release" else ["weft"]
    subprocess.run(["cmake", "--build", folder, "--target", *targets], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def scenarios(folder):
    """(name, file, changes)"""
    base = folder / "base.toml"
    base.write_text(BASE)
    for mode in ("roce", "irn", "srnic"):
        for name, changes in NETWORKS.items():
            yield f"{mode}-{name}", base, [f"transport.mode={mode}", *changes]
    for seed in range(1, SEEDS + 1):
        file = folder / f"seed{seed}.toml"
        plan = subprocess.run([ROOT / "build/weft-fabric-swarm", "--print", str(seed)], check=True, capture_output=True)
        file.write_bytes(plan.stdout)
        yield file.stem, file, ["check=false", "bytes=false"]


def run(program, file, changes, out):
    sets = [word for change in changes for word in ("--set", change)]
    done = subprocess.run([program, "sim", file, *sets, "--out", out], capture_output=True, text=True)
    # 1: flows failed, which some scenarios are made for.
    if done.returncode not in (0, 1) or not all((out / name).exists() for name in FILES):
        sys.exit(f"same_bytes: {program} ends {file.name} with {done.returncode}: {done.stderr.strip()[-400:]}")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave the results there")
    keep = options.parse_args().keep
    began = time.monotonic()
    for preset, folder in BUILDS.items():
        build(preset, folder)
    built = time.monotonic()
    differences = compared = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, file, changes in scenarios(folder):
            for preset, place in BUILDS.items():
                run(ROOT / place / "weft", file, changes, folder / name / preset)
            for result in FILES:
                first, *others = [(folder / name / preset / result).read_bytes() for preset in BUILDS]
                for preset, other in zip(list(BUILDS)[1:], others):
                    compared += 1
                    if other == first:
                        continue
                    differences += 1
                    line = next((n for n, (a, b) in enumerate(zip(first.split(b"\n"), other.split(b"\n")), 1) if a != b), "the last")
                    print(f"{name}: {result} of {preset} is not that of release from line {line} on")
    print(f"same_bytes: {compared - differences} of {compared} files are equal; built in {built - began:.0f} s, run in {time.monotonic() - built:.0f} s")
    if not compared:
        sys.exit("same_bytes: nothing was compared")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
