#!/usr/bin/env python3
"""Boxes on a long line that exists: two sites in network namespaces, 5 ms apart, programs that were linked to the system's libibverbs.

    run_wan.py WEFT COUNTED_STREAM CASE

    goodput       Debian's ib_write_bw is faster with boxes than without
    loss          1 % of all frames are lost on the line
    parity        the same with parity 16+2 between the boxes: what was lost is restored
    answers       1 % again, and programs that READ: the boxes repair what answers them
    irn, srnic    the same; the endpoints speak that dialect, and the far box is restarted under them
    line_cut      the line is cut for 2 s
    far_box       the far box is killed, and started again after a second
    near_box      the near box, acknowledging early: what it had not sent is lost, so the connection fails
    near_box_far  the near box, acknowledging what the far box has: nothing is lost
    both_boxes    both
    leaving       the near box is told to end: it delivers what it owes first
    xdp           as goodput, the boxes' ports on AF_XDP; the hosts compute their checksums
    strangers     TCP in segments that nobody cut, over IPv4, IPv6 and a VLAN, and large UDP datagrams: all of it passes

What an acknowledgement means then is a table in docs/guide/long-distance.md; the cases hold its rows. In each of them the receiver
gets messages once, in order and whole, and what the sender's program was told is true, or the program sees an error.
"""
import argparse
import re
import signal
import subprocess
import sys
import time

import wan_sites
from wan_sites import Sites, finish, run

SIZE = 4096


def bandwidth(a, boxes):
    with Sites(a.weft, boxes=boxes, rate="10Gbps") as sites:
        ended, text = sites.pair(["ib_write_bw", "-s", str(SIZE), "-D", "2", "-u", "18", "--report_gbits"], 40)
        gbps = wan_sites.goodput(text, SIZE)
        if not ended or gbps is None:
            sys.exit(f"ib_write_bw failed {'with' if boxes else 'without'} boxes:\n{text}")
        time.sleep(0.6)  # until the status is new
        return gbps, sites.stat(1)["box"] if boxes else None


def xdp(a):
    with Sites(a.weft, boxes=True, start=False) as sites:
        for host in sites.hosts:
            run(*host.inside("ethtool", "-K", "eth0", "tx", "off"))
        sites.options = ["--port", "xdp"]
        for i in range(2):
            refused = sites.start_box(i, may_fail=True)
            if refused:
                print(f"skipped: AF_XDP may not be used here ({refused.strip()})")
                sys.exit(wan_sites.SKIPPED)
        ended, text = sites.pair(["ib_write_bw", "-s", str(SIZE), "-D", "2", "-u", "18", "--report_gbits"], 40)
        time.sleep(0.6)
        counters = sites.stat(1)["box"]
        print(f"ib_write_bw, {SIZE} B, 5 ms one way, AF_XDP: {wan_sites.goodput(text, SIZE)} Gb/s with boxes")
        if not ended or counters["taken"] < 1000:
            sys.exit(f"{text}\nbox 1: {counters}")


def goodput(a):
    for _ in range(3):  # the machine may be busy
        (without, _), (with_boxes, counters) = bandwidth(a, False), bandwidth(a, True)
        print(f"ib_write_bw, {SIZE} B, 128 outstanding, 5 ms one way: {without:.2f} Gb/s without boxes, {with_boxes:.2f} with")
        if counters["taken"] == 0:
            sys.exit(f"the near box took nothing: {counters}")
        if with_boxes > 1.3 * without:
            return
    sys.exit("no faster with boxes")


class Stream:
    """The counted stream from site 1 to site 0; its near box is box 1."""

    def __init__(self, a, seconds, **line):
        self.sites = Sites(a.weft, boxes=True, rate="2Gbps", **line)
        self.receiver = self.sites.verbs(0, [a.stream, "serve"])
        self.sender = self.sites.verbs(1, [a.stream, "send", self.sites.ADDRESSES[0], str(seconds)])
        deadline = time.monotonic() + 20
        while self.sites.stat(1)["box"]["taken"] < 500:
            if time.monotonic() > deadline or self.sender.poll() is not None:
                self.fail("the near box never took over")
            time.sleep(0.05)

    def fail(self, sentence):
        self.sites.boxes = [b for b in self.sites.boxes if b]
        said = "".join(f"\nbox {i}: {self.sites.end(b, seconds=3)}" for i, b in enumerate(self.sites.boxes))
        self.sites.close()
        sys.exit(f"{sentence}{said}")

    def end(self, may_fail):
        """(completed, received, failed); the rules that hold in every case are checked here."""
        said, code = finish(self.sender, 60)
        heard, heard_code = finish(self.receiver, 60)
        print(said.strip(), "|", heard.strip())
        s = re.search(r"completed (\d+) confirmed (-?\d+) status (-?\d+)", said)
        r = re.search(r"received (\d+) wrong (\d+)", heard)
        if not s or not r or code not in (0, 1) or heard_code not in (0, 1):
            self.fail(f"a program did not end by itself:\n{said}\n{heard}")
        completed, confirmed, status = map(int, s.groups())
        received, wrong = map(int, r.groups())
        if wrong:
            self.fail("messages came twice, torn or out of order")
        if status == -1:
            self.fail("the sender's program waited for ever")
        if status == 0 and (confirmed != completed or received != completed):
            self.fail("messages were lost without a word")
        if status != 0 and not may_fail:
            self.fail("the connection failed")
        return completed, received, status != 0

    def box(self, i):
        return self.sites.stat(i)["box"]

    def close(self):
        for b in self.sites.boxes:
            if b is None:
                continue
            text, code = self.sites.end(b)
            if code not in (0, 1) or "runtime error" in text:
                self.fail(f"a box ended badly ({code}): {text}")
        self.sites.close()


def kill_and_restart(stream, which, pause=1.0):
    for i in which:
        stream.sites.boxes[i].kill()
        stream.sites.boxes[i].wait()
    time.sleep(pause)
    for i in which:
        stream.sites.start_box(i)


def loss(a):
    s = Stream(a, 4, loss="1%")
    s.end(may_fail=False)
    if s.box(1)["line_resent"] == 0:
        s.fail("the boxes repaired nothing")
    s.close()


def parity(a):
    s = Stream(a, 4, loss="1%", mtu=4500, near_options=["--parity", "16+2"])
    s.end(may_fail=False)
    near, far, status = s.box(1), s.box(0), s.sites.stat(1)
    print(f"covered {near['covered']}, parity frames {near['parity_sent']}, restored {far['restored']}, sent again {near['line_resent']}")
    if status["partner_parity"] != "16+2" or near["covered"] == 0 or near["uncovered"] != 0:
        s.fail(f"the near box covered nothing, or not all: {near}")
    if far["restored"] == 0 or far["restored_wrong"] != 0:
        s.fail(f"the far box restored nothing, or something wrong: {far}")
    s.close()


def answers(a):
    read = {}
    for options in ([], ["--repair-answers"]):
        with Sites(a.weft, boxes=True, rate="2Gbps", loss="1%", near_options=options) as sites:
            ended, text = sites.pair(["ib_read_bw", "-s", "65536", "-D", "3", "-u", "18", "--report_gbits"], 60)
            gbps = wan_sites.goodput(text, 65536)
            if not ended or gbps is None:
                sys.exit(f"ib_read_bw failed with {options or 'no options'}:\n{text}")
            time.sleep(0.6)  # until the status is new
            read[bool(options)] = gbps
            counters = sites.stat(0)["box"]  # the box whose site is read from
    print(f"ib_read_bw, 64 KiB, 5 ms one way, 1 % loss: {read[False]:.3f} Gb/s as on a wire, {read[True]:.3f} with repaired answers")
    print({k: v for k, v in counters.items() if "answer" in k or k == "line_resent"})
    if counters["answers_resent"] == 0:
        sys.exit(f"the box sent no answer again: {counters}")


def dialect(a, mode):
    s = Stream(a, 5, loss="1%", mode=mode)
    kill_and_restart(s, [0])
    s.end(may_fail=False)
    near = s.box(1)
    if near["line_resent"] == 0 or near["other_mode"] != 0:
        s.fail(f"the boxes repaired nothing, or took the packets for another dialect's: {near}")
    s.close()


def irn(a):
    dialect(a, "irn")


def srnic(a):
    dialect(a, "srnic")


def line_cut(a):
    s = Stream(a, 6)
    s.sites.line.send_signal(signal.SIGUSR1)
    time.sleep(2)
    s.sites.line.send_signal(signal.SIGUSR1)
    s.end(may_fail=False)
    s.close()


def far_box(a):
    s = Stream(a, 6)
    kill_and_restart(s, [0])
    s.end(may_fail=False)
    time.sleep(0.6)
    if s.box(1)["renewed"] == 0:
        s.fail("the near box never noticed")
    s.close()


def near_box(a):
    s = Stream(a, 8)
    kill_and_restart(s, [1])
    completed, received, failed = s.end(may_fail=True)
    if received < completed and not failed:
        s.fail("lost without a word")
    s.close()


def near_box_far(a):
    s = Stream(a, 8, near_options=["--acknowledge", "far"])
    kill_and_restart(s, [1])
    completed, received, failed = s.end(may_fail=False)
    s.close()


def both_boxes(a):
    s = Stream(a, 8)
    kill_and_restart(s, [0, 1])
    s.end(may_fail=True)
    s.close()


def leaving(a):
    s = Stream(a, 4)
    text, code = s.sites.end(s.sites.boxes[1])
    if code != 0 or "nothing was left" not in text:
        s.fail(f"the box left something although its partner was there ({code}): {text}")
    s.sites.start_box(1)
    s.end(may_fail=False)
    s.close()


SERVE = '''
import hashlib, socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
s.bind((sys.argv[1], 7000)); s.listen(1)
u = socket.socket(s.family, socket.SOCK_DGRAM); u.bind((sys.argv[1], 7000)); u.settimeout(20)
print("ready", flush=True)
c, _ = s.accept(); c.settimeout(20)
h, n = hashlib.sha256(), 0
while n < 4000000:
    b = c.recv(1 << 16)
    if not b: break
    h.update(b); n += len(b)
d = u.recv(1 << 16)
h.update(d)
c.send(h.digest())
c.recv(1)
'''
ASK = '''
import hashlib, os, socket, sys, time
deadline = time.monotonic() + 15
while True:
    try:
        c = socket.create_connection((sys.argv[1], 7000), timeout=5); break
    except OSError:
        if time.monotonic() > deadline: raise
        time.sleep(0.2)
c.settimeout(20)
data, datagram = os.urandom(4000000), os.urandom(20000)
c.sendall(data)
u = socket.socket(c.family, socket.SOCK_DGRAM)
u.sendto(datagram, (sys.argv[1], 7000))
assert c.recv(32) == hashlib.sha256(data + datagram).digest(), "other bytes"
c.send(b"e")
'''


def strangers(a):
    with Sites(a.weft, boxes=True, rate="2Gbps") as sites:
        for i, host in enumerate(sites.hosts):
            host.ip("addr", "add", f"fd00::{i + 1}/64", "dev", "eth0", "nodad")
            made = subprocess.run(host.inside("ip", "link", "add", "link", "eth0", "name", "vlan5", "type", "vlan", "id", "5"),
                                  capture_output=True, text=True)
            if made.returncode == 0:
                host.ip("addr", "add", f"10.5.0.{i + 1}/24", "dev", "vlan5")
                host.ip("link", "set", "vlan5", "up")
        if made.returncode != 0:
            print(f"no VLAN: {made.stderr.strip()}")
        addresses = ["10.0.0.1", "fd00::1"] + (["10.5.0.1"] if made.returncode == 0 else [])
        for address in addresses:
            server = sites.start(sites.hosts[0], sys.executable, "-c", SERVE, address)
            server.stdout.readline()
            text, code = finish(sites.start(sites.hosts[1], sys.executable, "-c", ASK, address), 40)
            print(address, "passed" if code == 0 else text)
            sites.end(server, seconds=2)
            if code != 0:
                sys.exit(1)
        time.sleep(0.6)
        seen = sites.stat(1)
        for box in range(2):
            for port in ("near_port", "far_port"):
                lost = {n: v for n, v in sites.stat(box)[port].items() if v and n in ("rx_torn", "tx_failed", "tx_full")}
                if lost:
                    sys.exit(f"box {box} lost frames at its {port}: {lost}")
        if seen["not_understood"]["other"] < 100:
            sys.exit(f"the boxes did not see it: {seen}")


CASES = {f.__name__: f for f in (goodput, loss, parity, answers, irn, srnic, line_cut, far_box, near_box, near_box_far, both_boxes, leaving, strangers, xdp)}


def main():
    arguments = wan_sites.enter_namespaces(__file__, sys.argv[1:], ["ib_write_bw"])
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("stream")
    parser.add_argument("case", choices=CASES)
    a = parser.parse_args(arguments)
    CASES[a.case](a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
