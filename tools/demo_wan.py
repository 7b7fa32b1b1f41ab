#!/usr/bin/env python3
"""The demo of long distances: Debian's ib_write_bw, unmodified, over an emulated line in three ways.

    ./dev demo wan [--svg FILE] [--seconds 2]

    standard     as it is: 128 requests under way
    deep         2048 requests under way: what an operator can do who may change the programs
    accelerated  128 requests, and a box at each end of the line that acknowledges early (weft wan box)

Six network namespaces: two hosts, two boxes, the line (weft wan link). Both programs run on the soft NIC over UDP, in mode roce. The
three ways take turns. Everything runs on this machine's processors, so what binds the accelerated run is their time and not the line;
the table says what the line and the depth would allow. Root, or a kernel that lets users make namespaces. Nothing stays behind.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "interop"))
import wan_sites  # noqa: E402

WEFT = ROOT / "build" / "weft"
GBPS = 10
DISTANCES = (("10 km", "50us", 5e-5), ("100 km", "500us", 5e-4), ("1000 km", "5ms", 5e-3))
SIZES = (512, 4096)
WAYS = {"standard": (False, 128), "deep": (False, 2048), "accelerated": (True, 128)}
BAR = 50
AROUND = {512: 98, 4096: 98}  # headers of a WRITE of one packet, on the line


def measure(boxes, depth, size, delay, seconds):
    with wan_sites.Sites(WEFT, boxes=boxes, delay=delay, rate=f"{GBPS}Gbps", queue="64MB") as sites:
        command = ["ib_write_bw", "-s", size, "-t", depth, "-D", seconds, "-u", "18", "--report_gbits"]
        ended, text = sites.pair([str(c) for c in command], 40)
        gbps = wan_sites.goodput(text, size)
        if not ended or gbps is None:
            sys.exit(f"demo: ib_write_bw failed:\n{text}")
        return gbps


def allowed(depth, size, one_way):
    """Of the line and the depth; boxes and their hosts have no limit in it."""
    line = GBPS * size / (size + AROUND[size])
    return min(line, depth * size * 8 / (2 * one_way) / 1e9)


def draw(table, path):
    """The same numbers as a figure, by gnuplot."""
    rows = "\n".join(" ".join([f'"{where}, {size} B"', *(str(table[way, where, size]) for way in WAYS)]) for size in SIZES
                     for where, _, _ in DISTANCES)
    script = f"""set terminal svg size 900,420
set output "{path}"
set style data histograms
set style fill solid
set logscale y
set ylabel "goodput, Gb/s"
set key top right
$rows << END
{rows}
END
plot {", ".join(f'$rows using {i + 2}:xtic(1) title "{way}"' for i, way in enumerate(WAYS))}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    arguments = sys.argv[1:]
    parser = argparse.ArgumentParser(prog="./dev demo wan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg", help="draw the table into this file, too", metavar="FILE")
    parser.add_argument("--seconds", type=int, choices=range(1, 31), default=2, metavar="N", help="of each of the 18 runs")
    a = parser.parse_args([x for x in arguments if x != "--inside"])
    if a.svg and shutil.which("gnuplot") is None:
        parser.error("--svg needs gnuplot; ./dev setup installs it")
    wan_sites.enter_namespaces(__file__, arguments, ["ib_write_bw"])
    print(f"ib_write_bw over an emulated line of {GBPS} Gb/s, WRITEs, one connection, {a.seconds} s each: Gb/s", flush=True)
    table = {}
    for size in SIZES:
        for where, delay, _ in DISTANCES:
            for way, (boxes, depth) in WAYS.items():
                print(f"  running {where}, {size} B, {way} ...", file=sys.stderr, flush=True)
                table[way, where, size] = measure(boxes, depth, size, delay, a.seconds)
    print(f"\n  {'':18}" + "".join(f"{way:>13}" for way in WAYS) + "   accelerated/standard    128 deep allows")
    for size in SIZES:
        for where, _, one_way in DISTANCES:
            row = [table[way, where, size] for way in WAYS]
            print(f"  {where:>8} {size:>5} B  " + "".join(f"{v:13.3f}" for v in row) + f"{row[2] / row[0]:23.1f}"
                  f"{allowed(128, size, one_way):19.3f}")
    most = max(table.values())
    for size in SIZES:
        print(f"\n  {size} B, Gb/s")
        for where, _, _ in DISTANCES:
            for way in WAYS:
                v = table[way, where, size]
                print(f"  {where:>8} {way:>12} |{'#' * max(1, round(BAR * v / most))} {v:.3f}")
    if a.svg:
        draw(table, a.svg)
    print("\nA completion of the accelerated runs says that the near box has the bytes, not that the receiver has them: read")
    print("docs/guide/long-distance.md before you put boxes on a path. Live numbers depend on what else the machine does.")


if __name__ == "__main__":
    main()
