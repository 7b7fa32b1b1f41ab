#!/usr/bin/env python3
"""The demo: ib_write_bw over the soft NIC, lossless and with 1 % loss, in the three modes; beside it the same
traffic in the simulator, and TCP between the same two processors. What is compared is goodput as a fraction of
the lossless run; bars draw it.

    ./dev demo

Live, two unmodified programs run on 127.0.0.1 and 127.0.0.2; the kernel's loopback is the network, and weft
loses packets as they are received. TCP is qperf's, over the same loopback, and loses nothing. The simulated network has the link rate that the lossless live run reached
and the delay of a loopback hop, so that the two face the same problem; nothing else is fitted.
"""
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WEFT = ROOT / "build" / "weft"
SERVER, CLIENT = "127.0.0.1", "127.0.0.2"
SIZE, DEPTH, MTU = 65536, 16, 4096
SECONDS = 2  # of each live run
REPEATS = 3  # the median counts
MODES = ("roce", "irn", "srnic")
LOSSES = ("0", "1%")
BAR = 30  # columns of the longest bar


def stop(sentence):
    print(f"demo: {sentence}", file=sys.stderr)
    sys.exit(1)


def live(mode, loss):
    """Goodput in Gb/s."""
    command = ["ib_write_bw", "-s", str(SIZE), "-t", str(DEPTH), "-D", str(SECONDS), "--report_gbits"]
    options = ["--wire", "udp", "--mode", mode, "--loss", loss]  # through the kernel, as TCP
    server = subprocess.Popen([WEFT, "run", "--addr", SERVER, *options, "--", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            time.sleep(0.2)
            client = subprocess.run([WEFT, "run", "--addr", CLIENT, *options, "--", *command, SERVER],
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            if client.returncode == 0 or time.monotonic() > deadline or server.poll() is not None:
                break
        server.wait(timeout=20)
    finally:
        server.kill()
    found = re.search(rf"^\s*{SIZE}\s+\d+\s+[\d.]+\s+([\d.]+)\s", client.stdout, re.MULTILINE)
    if client.returncode != 0 or not found:
        stop(f"ib_write_bw failed:\n{client.stdout}{client.stderr}")
    return float(found[1])


def tcp():
    """Goodput of TCP in Gb/s, writes of the same size."""
    server = subprocess.Popen(["qperf"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        client = subprocess.run(["qperf", "-t", str(SECONDS), "-u", "-m", str(SIZE), SERVER, "tcp_bw"],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    finally:
        server.kill()
        server.wait()
    found = re.search(r"=\s+([\d.,]+)\s+bytes/sec", client.stdout)
    if client.returncode != 0 or not found:
        stop(f"qperf failed:\n{client.stdout}{client.stderr}")
    return float(found[1].replace(",", "")) * 8e-9


def bar(value, longest):
    """A bar of at least one column, so that what is slow is seen, too."""
    return "#" * max(1, round(BAR * value / longest))


def simulated(mode, loss, gbps, delay_us, rto_low_us, rto_high_us):
    scenario = f"""
        hosts = 2
        limit = "60s"
        [network]
        rate = "{gbps * 1000:.0f}Mbps"
        delay = "{delay_us}us"
        loss = "{loss}"
        [transport]
        mode = "{mode}"
        mtu = {MTU}
        bdp_cap = 256
        roce_window = 256
        timeout = 14
        rto_low = "{rto_low_us}us"
        rto_high = "{rto_high_us}us"
        tail_probe = "1ms"
        [[flow]]
        size = "{SIZE}"
        depth = {DEPTH}
        count = 4000
        """
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
        f.write(scenario)
        f.flush()
        run = subprocess.run([WEFT, "sim", f.name, "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        stop(f"the simulation failed: {run.stdout}{run.stderr}")
    return json.loads(run.stdout)["flows"][0]["goodput_gbps"]


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    if sys.argv[1:]:
        print(f"demo: it takes no arguments, not '{sys.argv[1]}'; ./dev demo --help says what it does", file=sys.stderr)
        sys.exit(2)
    for program in ("ib_write_bw", "qperf"):
        if shutil.which(program) is None:
            stop(f"{program} is not installed; ./dev setup installs it")
    print(f"ib_write_bw, {SIZE // 1024} KiB WRITEs, {DEPTH} outstanding: live (median of {REPEATS} runs of {SECONDS} s)"
          " beside the simulator", flush=True)
    measures = {(mode, loss): (f"{mode}, loss {loss}", lambda mode=mode, loss=loss: live(mode, loss))
                for mode in MODES for loss in LOSSES}
    measures["tcp", "0"] = ("TCP", tcp)
    samples = {row: [] for row in measures}
    for turn in range(REPEATS):  # in turns, so that a slow moment of the machine hits all of them
        for row, (name, measure) in measures.items():
            print(f"  turn {turn + 1} of {REPEATS}: {name} ...", file=sys.stderr, flush=True)
            samples[row].append(measure())
    table = {row: statistics.median(values) for row, values in samples.items()}
    longest = max(table.values())
    print()
    print("  mode   loss   live Gb/s  of lossless | simulated Gb/s  of lossless | live")
    print("  ------------------------------------ + --------------------------- + " + "-" * BAR)
    for mode in MODES:
        rate = table[mode, "0"] * (MTU + 98) / MTU  # of the wire, headers included
        # The live world's retransmission time-out has a floor of 1 ms; a loopback hop is about 5 us.
        sim = {loss: simulated(mode, loss, rate, 5, 1000, 1000) for loss in LOSSES}
        for loss in LOSSES:
            print(f"  {mode:5}  {loss:>4} {table[mode, loss]:11.2f} {table[mode, loss] / table[mode, '0']:12.2f} |"
                  f" {sim[loss]:14.2f} {sim[loss] / sim['0']:12.2f} | {bar(table[mode, loss], longest)}")
    print(f"  TCP       0 {table['tcp', '0']:11.2f} {'':12} | {'':14} {'':12} | {bar(table['tcp', '0'], longest)}")
    print()
    print("One transport, both worlds: go-back-N (roce) resends a window for every loss, irn and srnic resend what was lost.")
    print("Live numbers depend on what else the machine does. Next: weft run --help, weft sim --help, README.md.")


if __name__ == "__main__":
    main()
