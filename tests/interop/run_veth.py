#!/usr/bin/env python3
"""Two unmodified verbs programs over weft, each in a network namespace of its own, with a virtual Ethernet between.

    run_veth.py WEFT --mode irn --link no_segmentation -- ib_write_bw -n 200

Behind `::` stands what the client runs, if it is not the server's command and its address.

Loopback hands a train of frames over as one piece. A real network does not: the frames of a train arrive one by one, or joined
anew by a receiver's offload. --link says who segments:

    as_created       nobody: the far socket receives the sender's train as one piece
    no_segmentation  the sender's kernel, just before the device (ethtool -K … tx-udp-segmentation off)
    no_offloads      as before, and the device has no checksum either (ethtool -K … tx off); older kernels refuse trains then

With --line both programs lose packets on purpose before these reach the cable.

--over says of which families the NICs' addresses are: 10.0.0.N, fd00::N, or both. --wire and --client-wire choose wires; --capture has every frame judged by others (captured.py).

Nothing is lost on such a link, so besides both exit codes the counters of `weft --stats on` are judged: no frame may be
dropped for its ICRC, and no packet may be sent twice. One thing excuses: a peer that had no processor was silent, and then a
time-out resends, or a probe asks for its ACK. Each of these takes a millisecond of silence, so there may be no more of them
than the two programs waited for a processor. A machine under the machine is not counted: hence --tries.

The namespaces have no names and end with this script. Where none may be made the exit code is 77, with the reason.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import captured
from namespaces import SKIPPED, Place, namespaces_refused, run

LINKS = ("as_created", "no_segmentation", "no_offloads")
NEVER = ("raw_lost", "raw_short", "raw_version", "raw_options", "raw_fragment", "raw_ip_checksum", "raw_protocol", "raw_udp_length",
         "raw_udp_checksum", "raw_source", "rx_icrc", "rx_short", "rx_opcode", "rx_mode", "rx_pad", "rx_payload", "drop_source", "send_failed")
SILENCES = ("timeout_low", "timeout_high", "timeout_read", "tx_probes")
SHORTEST = 500  # microseconds: half of the shortest time-out, for the rest of the silence is the network's own


class Host(Place):
    def __init__(self, address):
        super().__init__()
        self.address = address
        self.v6 = "fd00::" + address.rsplit(".", 1)[1]
        self.first = address == "10.0.0.1"

    def ethtool(self, device, *features):
        done = subprocess.run(self.inside("ethtool", "-K", device, *features), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode != 0:
            print(f"skipped: this kernel's virtual Ethernet has no {features[0]} ({done.stdout.strip()})")
            sys.exit(SKIPPED)


def take_offloads(host, device, link):
    if link == "no_segmentation":
        host.ethtool(device, "tx-udp-segmentation", "off")
    elif link == "no_offloads":
        host.ethtool(device, "tx", "off")


def connect(a):
    """Two hosts, and between them a cable, a bridge or a router."""
    hosts = [Host("10.0.0.1"), Host("10.0.1.2" if a.between == "router" else "10.0.0.2")]
    middle = None if a.between == "cable" else Host("10.0.0.254")
    ends = ["eth0", "eth0"]
    if middle is None:
        run("ip", "link", "add", "left", "type", "veth", "peer", "name", "right")
        for host, name in zip(hosts, ("left", "right")):
            run("ip", "link", "set", name, "netns", str(host.holder.pid))
            host.ip("link", "set", name, "name", "eth0")
    else:
        for i, host in enumerate(hosts):
            run("ip", "link", "add", "host", "type", "veth", "peer", "name", f"port{i}")
            run("ip", "link", "set", "host", "netns", str(host.holder.pid))
            run("ip", "link", "set", f"port{i}", "netns", str(middle.holder.pid))
            host.ip("link", "set", "host", "name", "eth0")
            middle.ip("link", "set", f"port{i}", "mtu", str(a.mtu), "up")
            take_offloads(middle, f"port{i}", a.link)
        if a.between == "bridge":
            middle.ip("link", "add", "bridge", "type", "bridge")
            for i in range(2):
                middle.ip("link", "set", f"port{i}", "master", "bridge")
            middle.ip("link", "set", "bridge", "mtu", str(a.mtu), "up")
        else:
            for i in range(2):
                middle.ip("addr", "add", f"10.0.{i}.254/24", "dev", f"port{i}")
            run(*middle.inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"))
            if a.gro:
                for i in range(2):
                    middle.ethtool(f"port{i}", "gro", "on", "rx-udp-gro-forwarding", "on")
    for i, host in enumerate(hosts):
        host.ip("addr", "add", host.address + "/24", "dev", ends[i])
        host.ip("link", "set", ends[i], "mtu", str(a.mtu), "up")
        if a.over != "v4":
            host.ip("addr", "add", host.v6 + "/64", "dev", ends[i], "nodad")
        take_offloads(host, ends[i], a.link)
        if a.gro:
            host.ethtool(ends[i], "gro", "on")
        if a.between == "router":
            host.ip("route", "add", "default", "via", f"10.0.{i}.254")
    return hosts, middle


def start(host, a, options, command):
    wire = a.wire if host.first else a.client_wire or a.wire
    address = {"v4": host.address, "v6": host.v6, "both": f"{host.address},{host.v6}"}[a.over]
    weft = [a.weft, "run", "--addr", address, "--wire", wire, "--stats", "on", *options, "--", *command]
    return subprocess.Popen(host.inside(*weft), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True)


def finish(process, seconds):
    """Its output; a process that outlives its time is killed and reported as such."""
    try:
        return process.communicate(timeout=max(seconds, 0.1))[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + "\nkilled: it did not end in time\n", -1


def counters(text):
    return {name: int(value) for name, value in re.findall(r"weft: (\w+) +(\d+) ", text, re.MULTILINE)}


def run_once(a, hosts, command):
    """(whether the programs ended well, what they printed, all counters of both)"""
    options = ["--mode", a.mode, *(["--loss", a.line, "--seed", "7"] if a.line else [])]
    deadline = time.monotonic() + a.seconds
    at = command.index("::") if "::" in command else len(command)
    serve, ask = command[:at], command[at + 1:] or [*command, hosts[0].address]
    server = start(hosts[0], a, options, serve)
    # The server listens on a TCP port before it does anything that takes long; a client that comes too
    # early is refused at once and tries again.
    while True:
        time.sleep(0.2)
        client = start(hosts[1], a, options, ask)
        text, code = finish(client, deadline - time.monotonic())
        early = "onnection refused" in text or "Couldn't connect" in text
        if code == 0 or not early or server.poll() is not None or time.monotonic() > deadline:
            break
    server_text, server_code = finish(server, min(5.0, deadline - time.monotonic()))
    both = [counters(text), counters(server_text)]
    total = {name: sum(c.get(name, 0) for c in both) for name in {**both[0], **both[1]}}
    ended = code == 0 and server_code == 0
    return ended, f"client, exit code {code}:\n{text}\nserver, exit code {server_code}:\n{server_text}", total


def inside(a, command):
    hosts, _ = connect(a)
    for attempt in range(a.tries):
        with tempfile.TemporaryDirectory() as folder:
            captures = [captured.Capture(host, folder, host.v6 if a.over == "v6" else None) for host in hosts] if a.capture else []
            ended, text, total = run_once(a, hosts, command)
            problems = [p for c in captures for p in c.finish()]
        if problems:
            print(text, *problems, sep="\n")
            return 1
        # What a probe asks for may be a READ's answers, or the window if it is not answered either.
        if total.get("tx_probes", 0) == 0:
            total["resent_without_time_out"] = total.get("tx_retransmitted", 0) - total.get("tx_after_timeout", 0)
        excused = total.get("waited_for_processor", 0) // SHORTEST
        total["silences_without_excuse"] = max(0, sum(total.get(n, 0) for n in SILENCES) - excused)
        if a.line:
            never = worst = [n for n in NEVER if total.get(n)] + ([] if total.get("line_dropped") else ["line_dropped"])
        else:
            never = [n for n in (*NEVER, "resent_without_time_out") if total.get(n)]
            worst = never + [n for n in ("silences_without_excuse",) if total.get(n)]
        if ended and total.get("rx_packets") and not worst:
            print(text)
            return 0
        what = ", ".join(f"{n} {total.get(n, 0)}" for n in worst) or "a program failed"
        if never or not ended or attempt + 1 == a.tries:
            print(text)
            print("not as on a network that loses nothing:", what)
            return 1
        print(f"{what}; once more")
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("--mode", default="roce")
    parser.add_argument("--wire", default="udp", help="of both, or of the server")
    parser.add_argument("--client-wire", help="of the client")
    parser.add_argument("--link", choices=LINKS, default="as_created")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--between", choices=("cable", "bridge", "router"), default="cable")
    parser.add_argument("--capture", action="store_true", help="every frame is dissected by tshark, and its ICRC computed by another program")
    parser.add_argument("--line", nargs="?", const="out=2%", help="both lose packets, as weft run --loss has it, and what is left has the right ICRCs all the same")
    parser.add_argument("--over", choices=("v4", "v6", "both"), default="v4", help="what the NICs' addresses are; a program's own TCP is over IPv4")
    parser.add_argument("--gro", action="store_true", help="receivers join frames again")
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--inside", action="store_true", help="for the script itself: it is in its own namespace")
    split = sys.argv.index("--")
    a = parser.parse_args(sys.argv[1:split])
    command = sys.argv[split + 1:]
    if a.inside:
        return inside(a, command)
    for program in (command[0], "unshare", "nsenter", "ip", "ethtool"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed; ./dev setup installs it")
            return SKIPPED
    if a.capture and captured.missing():
        print(f"skipped: {captured.missing()} is not installed; ./dev setup installs it")
        return SKIPPED
    way, reason = namespaces_refused()
    if way is None:
        print(f"skipped: network namespaces may not be made here ({reason})")
        return SKIPPED
    return subprocess.call(["unshare", *way, "--net", sys.executable, __file__, *sys.argv[1:split], "--inside",
                            *sys.argv[split:]])


if __name__ == "__main__":
    sys.exit(main())
