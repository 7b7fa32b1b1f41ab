#!/usr/bin/env python3
"""How many packets a second unmodified programs move over a virtual Ethernet, by each wire, with and without offloads.

    ./dev bench veth [--repeats 3] [--wires udp,packet,xdp] [--json FILE]

Two network namespaces, path MTU 1024, one core for each end. A mixed run is WRITE, SEND and READ of 64 B, 4 KiB and 64 KiB; its
figure is the mean over these of data packets per second, as perftest counts messages. Rows are interleaved, medians count, and
ratios within one run. As created, such a link hands trains over whole, which no real network does; without
segmentation the sender's kernel cuts them, and frames arrive one by one. Needs root, or a kernel that gives namespaces to users.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "interop"), str(ROOT / "tests" / "bench" / "parts")]
import run_veth  # noqa: E402
from busy import MOST, Busy, sentence  # noqa: E402

WEFT = ROOT / "build" / "weft"
PROGRAMS = ("ib_write_bw", "ib_send_bw", "ib_read_bw")
SIZES = (64, 4096, 65536)
MTU = 1024
LINKS = {"offloads": "as_created", "none": "no_segmentation"}


def run(host, core, wire, mode, command):
    return subprocess.Popen(host.inside("taskset", "-c", str(core), str(WEFT), "run", "--addr", host.address, "--wire", wire, "--mode", mode,
                                        "--stats", "on", "--", *command),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def measure(hosts, wire, mode, program, size):
    """Data packets per second in millions, and the packets that were sent again."""
    command = [program, "-s", str(size), "-m", str(MTU), "-D", "1", "-t", "128"]
    server = run(hosts[0], 1, wire, mode, command)
    try:
        for _ in range(50):
            time.sleep(0.2)
            client = run(hosts[1], 0, wire, mode, [*command, hosts[0].address])
            text = client.communicate(timeout=60)[0]
            if client.returncode == 0 or server.poll() is not None:
                break
        served = server.communicate(timeout=20)[0]
    finally:
        server.kill()
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]+\s", line)]
    if client.returncode != 0 or not rows:
        sys.exit(f"bench veth: {program} over {wire} failed:\n{text}\n{served}")
    rate = float(re.match(r"[\d.]+", rows[-1][4]).group())
    again = sum(run_veth.counters(t).get("tx_retransmitted", 0) for t in (text, served))
    return rate * -(-size // MTU), again


def inside(a):
    nets = {}
    for name, link in LINKS.items():
        nets[name], _ = run_veth.connect(argparse.Namespace(between="cable", link=link, mtu=1500, gro=False))
    rows = [(wire, link) for wire in a.wires.split(",") for link in LINKS]
    samples = {row: {(p, s): [] for p in PROGRAMS for s in SIZES} for row in rows}
    again = dict.fromkeys(rows, 0)
    busy = Busy()
    for turn in range(a.repeats):
        for program in PROGRAMS:
            for size in SIZES:
                for row in rows:
                    print(f"\rbench veth: turn {turn + 1} of {a.repeats}, {program} {size:6} {row[0]:7} {row[1]:9}", end="", file=sys.stderr, flush=True)
                    rate, repeated = measure(nets[row[1]], row[0], a.mode, program, size)
                    samples[row][program, size].append(rate)
                    again[row] += repeated
    print(file=sys.stderr)
    share = busy.share()
    median = {row: {k: statistics.median(v) for k, v in samples[row].items()} for row in rows}
    mixed = {row: statistics.mean(median[row].values()) for row in rows}
    base = mixed.get(("udp", "offloads")) if share <= MOST else None
    if share > MOST:
        print(sentence(share))
    print(f"{'M data packets/s':22}" + "".join(f"{p[3:-3]:>8}{s:>6}" for p in PROGRAMS for s in SIZES) + "   mixed  / udp with offloads  sent again")
    for row in rows:
        print(f"{row[0]:8}{row[1]:14}" + "".join(f"{v:14.3f}" for v in median[row].values()) +
              f"{mixed[row]:8.3f}" + (f"{mixed[row] / base:21.2f}" if base else " " * 21) + f"{again[row]:12}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"busy": share, "rows": [{"wire": w, "link": l, "mixed": mixed[w, l], "again": again[w, l],
                                 "medians": {f"{p} {s}": v for (p, s), v in median[w, l].items()}} for w, l in rows]}, f, indent=2)
            f.write("\n")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="./dev bench veth", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--wires", default="udp,packet,xdp")
    parser.add_argument("--mode", default="roce")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--inside", action="store_true", help="for the script itself: it is in its own namespace")
    a = parser.parse_args()
    if a.repeats < 1 or a.repeats > 100:
        parser.error(f"--repeats {a.repeats} is not between 1 and 100")
    for wire in a.wires.split(","):
        if wire not in ("udp", "packet", "xdp"):
            parser.error(f"--wires: '{wire}' is not udp, packet or xdp")
    if a.inside:
        return inside(a)
    way, reason = run_veth.namespaces_refused()
    if way is None:
        sys.exit(f"bench veth: network namespaces may not be made here ({reason})")
    return subprocess.call(["unshare", *way, "--net", sys.executable, __file__, *sys.argv[1:], "--inside"])


if __name__ == "__main__":
    sys.exit(main())
