#!/usr/bin/env python3
"""What boxes cost: their logic alone, and a live pair beside a pair of plain forwarders.

    ./dev bench wan [--json FILE] [--repeats 3]

logic: nanoseconds a data frame in each box, without bytes (tests/bench/wan_logic_bench.cc says what each number is).

live: two hosts in network namespaces, ib_write_bw with WRITEs of 4 KiB between them, no delay. In turns through two boxes, and through two
programs that forward frames over the same ports and do nothing else. What counts is processor time for each frame that a program received:
other work on the machine hardly changes that, where it changes goodput. Senders cut their trains themselves, so that both see frames.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "interop"))
import wan_sites  # noqa: E402

BUILD = ROOT / "build"
WEFT = BUILD / "weft"
LOGIC_BUDGET = {"": 60, "parity": 120}  # nanoseconds a data frame and direction, without and with 16+2
LIVE_BUDGET = 0.7  # of the forwarder's frames a second
TICKS = os.sysconf("SC_CLK_TCK")


def program(name):
    found = next((p for p in BUILD.rglob(name) if p.is_file()), None)
    if found is None:
        sys.exit(f"bench wan: {name} is not built; ./dev build builds it")
    return found


def logic():
    """{row: {counter: median}}"""
    text = subprocess.run([program("weft-bench-wan_logic"), "--benchmark_format=json"], check=True, capture_output=True, text=True).stdout
    rows = {}
    for row in json.loads(text)["benchmarks"]:
        if row.get("aggregate_name") == "median":
            rows[row["run_name"].split("/")[0]] = {k: v for k, v in row.items() if k.endswith(("_ns", "_us")) or k in ("reports", "allocations")}
    return rows


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def live(boxes):
    """(Gb/s, [microseconds of processor time a frame, of each of the two])"""
    with wan_sites.Sites(WEFT, boxes=True, line=False, rate="0", forwarder=None if boxes else program("weft-plain-forwarder")) as sites:
        for host in sites.hosts:
            subprocess.run(host.inside("ethtool", "-K", "eth0", "tx-udp-segmentation", "off"), check=True, capture_output=True)
        before = [processor_seconds(b.pid) for b in sites.boxes]
        ended, text = sites.pair(["ib_write_bw", "-s", "4096", "-D", "3", "-u", "18", "--report_gbits"], 40)
        gbps = wan_sites.goodput(text, 4096)
        if not ended or gbps is None:
            sys.exit(f"bench wan: ib_write_bw failed:\n{text}")
        spent = [processor_seconds(b.pid) - s for b, s in zip(sites.boxes, before)]
        time.sleep(0.7)
        if boxes:
            said = [sites.stat(i) for i in range(2)]
            frames = [s["near_port"]["rx_frames"] + s["far_port"]["rx_frames"] for s in said]
            if said[1]["box"]["taken"] < 1000:
                sys.exit(f"bench wan: the boxes did not take part: {said[1]['box']}")
        else:
            frames = [int(sites.end(b, signal.SIGTERM)[0]) for b in sites.boxes]
        return gbps, [1e6 * s / f for s, f in zip(spent, frames)]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench wan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--repeats", type=int, choices=range(1, 30), default=3, metavar="N", help="of the live rows")
    a = parser.parse_args([x for x in sys.argv[1:] if x != "--inside"])
    wan_sites.enter_namespaces(__file__, sys.argv[1:], ["ib_write_bw", "ethtool"])
    load = os.getloadavg()[0]
    rows = logic()
    print(f"load {load:.1f}\n\n  logic, ns a data frame     near     far     ack    done   report  reports a frame  allocations")
    for name, r in rows.items():
        if name == "coding":
            continue
        print(f"  {name:24}{r['near_ns']:8.0f}{r['far_ns']:8.0f}{r['ack_ns']:8.0f}{r['done_ns']:8.0f}{r['report_ns']:9.0f}{r['reports']:17.2f}"
              f"{r['allocations']:13.0f}")
    print(f"  budget: {LOGIC_BUDGET['']} ns for each of near and far over 10 000 connections, {LOGIC_BUDGET['parity']} with parity 16+2")
    print(f"  bytes of parity 16+2: {rows['coding']['encode_ns']:.0f} ns for each data frame of 4 KiB at the near box, "
          f"{rows['coding']['restore_us']:.1f} us for a restored one at the far box", flush=True)
    samples = {"forwarder": [], "box": []}
    for turn in range(a.repeats):
        for name in samples:
            print(f"\rbench wan: turn {turn + 1} of {a.repeats}, {name:10}", end="", file=sys.stderr, flush=True)
            samples[name].append(live(name == "box"))
    print(file=sys.stderr)
    medians = {name: {"gbps": statistics.median(s[0] for s in all_of), "far_us": statistics.median(s[1][0] for s in all_of),
                      "near_us": statistics.median(s[1][1] for s in all_of)} for name, all_of in samples.items()}
    print("\n  live, processor time a frame     near, us    far, us   goodput, Gb/s")
    for name, m in medians.items():
        print(f"  {name:30}{m['near_us']:11.2f}{m['far_us']:11.2f}{m['gbps']:16.2f}")
    ratios = {side: medians["forwarder"][f"{side}_us"] / medians["box"][f"{side}_us"] for side in ("near", "far")}
    print(f"  box / forwarder, frames a processor second: near {ratios['near']:.2f}, far {ratios['far']:.2f}   budget >= {LIVE_BUDGET}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"load": load, "logic": rows, "live": medians, "samples": samples, "ratios": ratios}, f, indent=2)
            f.write("\n")


if __name__ == "__main__":
    main()
