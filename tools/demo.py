#!/usr/bin/env python3
"""The demo: ib_write_bw over the soft NIC, lossless and with 1 % loss, in modes roce and irn; beside it the
same traffic in the simulator. What is compared is goodput as a fraction of the lossless run.

    ./dev demo

Live, two unmodified programs run on 127.0.0.1 and 127.0.0.2; the kernel's loopback is the network, and weft
loses packets as they are received. The simulated network has the link rate that the lossless live run reached
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
    if shutil.which("ib_write_bw") is None:
        stop("ib_write_bw is not installed; ./dev setup installs it")
    print(f"ib_write_bw, {SIZE // 1024} KiB WRITEs, {DEPTH} outstanding: live (median of {REPEATS} runs of {SECONDS} s)"
          " beside the simulator", flush=True)
    table = {}
    for mode in ("roce", "irn"):
        for loss in ("0", "1%"):
            print(f"  running {mode}, loss {loss} ...", file=sys.stderr, flush=True)
            table[mode, loss] = statistics.median(live(mode, loss) for _ in range(REPEATS))
    print()
    print("  mode  loss   live Gb/s  of lossless | simulated Gb/s  of lossless")
    print("  ----------------------------------- + ---------------------------")
    for mode in ("roce", "irn"):
        rate = table[mode, "0"] * (MTU + 98) / MTU  # of the wire, headers included
        # The live world's retransmission time-out has a floor of 1 ms; a loopback hop is about 5 us.
        sim = {loss: simulated(mode, loss, rate, 5, 1000, 1000) for loss in ("0", "1%")}
        for loss in ("0", "1%"):
            print(f"  {mode:4}  {loss:>4} {table[mode, loss]:11.2f} {table[mode, loss] / table[mode, '0']:12.2f} |"
                  f" {sim[loss]:14.2f} {sim[loss] / sim['0']:12.2f}")
    print()
    print("One transport, both worlds: go-back-N (roce) resends a window for every loss, irn resends what was lost.")
    print("Live numbers depend on what else the machine does. Next: weft run --help, weft sim --help, README.md.")


if __name__ == "__main__":
    main()
