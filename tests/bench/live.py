#!/usr/bin/env python3
"""How fast unmodified programs are over the soft NIC, beside what the machine can do without it.

    ./dev bench live [--json FILE] [--repeats 7]

Rows are interleaved, so that a slow moment of a shared machine hits all of them; medians count, and ratios
within one run, never absolute numbers of different runs. Both ends are pinned to one core each. A turn in which
other programs, or the hypervisor, had more than a twentieth of the processors does not count and is repeated, three
times as often as was asked for at most; where too few turns are left, no ratios are printed.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

from busy import MOST, Busy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
WEFT = BUILD / "weft"
RAW = next(iter(BUILD.rglob("weft-raw-udp")), None)
SECONDS = "1"


def raw(kind):
    return float(subprocess.run([RAW, kind, SECONDS], check=True, capture_output=True, text=True).stdout)


def qperf(test):
    """TCP between two processes, by qperf: microseconds or Gb/s."""
    server = subprocess.Popen(["taskset", "-c", "1", "qperf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        text = subprocess.run(["taskset", "-c", "0", "qperf", "-t", SECONDS, "-u", "127.0.0.1", *test], check=True,
                              capture_output=True, text=True, timeout=30).stdout
    finally:
        server.kill()
        server.wait()
    number, unit = re.search(r"=\s+([\d.,]+)\s+(\S+)", text).groups()
    scale = {"ns": 1e-3, "us": 1, "ms": 1e3, "bytes/sec": 8e-9, "KB/sec": 8e-6, "MB/sec": 8e-3, "GB/sec": 8}
    return float(number.replace(",", "")) * scale[unit]


def perftest(command, column, options=()):
    """One number of a perftest program's last row."""
    def run(core, address, extra):
        mode = [] if "--mode" in options else ["--mode", "roce"]
        wire = [] if "--wire" in options else ["--wire", "udp"]  # through the kernel, as all that is measured beside it
        return ["taskset", "-c", core, WEFT, "run", "--addr", address, *mode, *wire, *options, "--", *command, *extra]

    server = subprocess.Popen(run("1", "127.0.0.1", []), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL)
    try:
        for _ in range(50):
            time.sleep(0.2)
            client = subprocess.run(run("0", "127.0.0.2", ["127.0.0.1"]), capture_output=True, text=True, timeout=60,
                                    stdin=subprocess.DEVNULL)
            if client.returncode == 0 or server.poll() is not None:
                break
        server.wait(timeout=20)
    finally:
        server.kill()
    rows = [line.split() for line in client.stdout.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]+\s", line)]
    if client.returncode != 0 or not rows:
        sys.exit(f"bench live: {' '.join(command)} failed:\n{client.stdout}{client.stderr}")
    return float(rows[-1][column])


LATENCY = ["-s", "64", "-n", "20000"]
LARGE = ["-s", "1048576", "-D", SECONDS, "--report_gbits"]
SMALL = ["-s", "64", "-D", SECONDS, "-t", "128", "--cq-mod", "64"]
ROWS = {
    "raw_udp_spinning_us": lambda: raw("spinning"),
    "raw_udp_blocking_us": lambda: raw("blocking"),
    "tcp_lat_us": lambda: qperf(["-m", "64", "tcp_lat"]),
    "weft_send_lat_us": lambda: perftest(["ib_send_lat", *LATENCY], 4),
    "weft_read_lat_us": lambda: perftest(["ib_read_lat", *LATENCY], 4),
    "raw_udp_stream_gbps": lambda: raw("stream"),
    "tcp_bw_gbps": lambda: qperf(["-m", "1M", "tcp_bw"]),
    "weft_write_1m_gbps": lambda: perftest(["ib_write_bw", *LARGE], 3),
    "weft_write_1m_irn_gbps": lambda: perftest(["ib_write_bw", *LARGE], 3, ["--mode", "irn"]),
    "weft_write_1m_irn_1_percent_gbps": lambda: perftest(["ib_write_bw", *LARGE], 3, ["--mode", "irn", "--loss", "1%"]),
    "weft_write_1m_no_icrc_gbps": lambda: perftest(["ib_write_bw", *LARGE], 3, ["--icrc", "off"]),
    "weft_shm_send_lat_us": lambda: perftest(["ib_send_lat", *LATENCY], 4, ["--wire", "shm"]),
    "weft_shm_write_1m_gbps": lambda: perftest(["ib_write_bw", *LARGE], 3, ["--wire", "shm"]),
    "weft_shm_write_64_mpps": lambda: perftest(["ib_write_bw", *SMALL], 4, ["--wire", "shm"]),
    "weft_write_64_mpps": lambda: perftest(["ib_write_bw", *SMALL], 4),
    "weft_write_64_list_32_mpps": lambda: perftest(["ib_write_bw", "-s", "64", "-n", "1000000", "-t", "128", "--cq-mod",
                                                    "32", "-l", "32"], 4),
}
RATIOS = {  # name, row, to row, budget
    "send latency / spinning UDP": ("weft_send_lat_us", "raw_udp_spinning_us", "<= 1.35"),
    "read latency / spinning UDP": ("weft_read_lat_us", "raw_udp_spinning_us", "<= 1.35"),
    "send latency / TCP": ("weft_send_lat_us", "tcp_lat_us", "< 1"),
    "1 MB WRITE / UDP stream": ("weft_write_1m_gbps", "raw_udp_stream_gbps", ">= 0.55"),
    "1 MB WRITE / TCP": ("weft_write_1m_gbps", "tcp_bw_gbps", ">= 1.1"),
    "1 MB WRITE without ICRC / UDP stream": ("weft_write_1m_no_icrc_gbps", "raw_udp_stream_gbps", ">= 0.7"),
    "1 MB WRITE without ICRC / TCP": ("weft_write_1m_no_icrc_gbps", "tcp_bw_gbps", ">= 1.3"),
    "send latency in shared memory / TCP": ("weft_shm_send_lat_us", "tcp_lat_us", "< 0.2"),
    "1 MB WRITE in shared memory / UDP stream": ("weft_shm_write_1m_gbps", "raw_udp_stream_gbps", ">= 0.55"),
    "irn with 1 % loss / irn without": ("weft_write_1m_irn_1_percent_gbps", "weft_write_1m_irn_gbps", ">= 0.77"),
}


def in_turns(repeats):
    """Each row's numbers of the turns in which the machine was quiet, or of all where none was; what others had in the
    turns that do not count; whether enough of them do."""
    quiet, all_turns, crowded = [], [], []
    while len(quiet) < repeats and len(all_turns) < 3 * repeats:
        busy = Busy()
        turn = {}
        for name, measure in ROWS.items():
            print(f"\rbench live: turn {len(quiet) + 1} of {repeats}, {name:40}", end="", file=sys.stderr, flush=True)
            turn[name] = measure()
        share = busy.share()
        all_turns.append(turn)
        if share <= MOST:
            quiet.append(turn)
        else:
            crowded.append(share)
            print(f"\nbench live: others had {share:.0%} of the processors in this turn, which does not count",
                  file=sys.stderr)
    return {name: [turn[name] for turn in quiet or all_turns] for name in ROWS}, crowded, len(quiet) == repeats


def main():
    parser = argparse.ArgumentParser(prog="./dev bench live", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    parser.add_argument("--repeats", type=int, default=7)
    a = parser.parse_args()
    if a.repeats < 1 or a.repeats > 100:
        parser.error(f"--repeats {a.repeats} is not between 1 and 100")
    samples, crowded, enough = in_turns(a.repeats)
    print(file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    for name, value in medians.items():
        print(f"{name:40} {value:10.2f}   ({min(samples[name]):.2f} to {max(samples[name]):.2f})")
    print()
    ratios = {}
    if not enough:
        print(f"The machine was busy: others had {statistics.median(crowded):.0%} of its processors, so ratios would mean "
              "nothing. Run it again when it is quiet.")
    for name, (row, to, budget) in RATIOS.items() if enough else ():
        ratios[name] = medians[row] / medians[to]
        print(f"{name:40} {ratios[name]:10.2f}   budget {budget}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"medians": medians, "samples": samples, "ratios": ratios, "busy": crowded}, f, indent=2)
            f.write("\n")


if __name__ == "__main__":
    main()
