#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets; the files are committed, so that a run needs nothing but the tree.

  decode   the UDP payloads of data/vectors/packets.txt, one file per vector. Run this after adding a vector.
  cm       connections and SIDR exchanges that succeed, as the decisions that cm_fuzz.cc reads from its bytes
  device   one operation of each kind, delivered and acknowledged, in each mode: decisions of device_fuzz.cc
  wan      an ownership, READs inside it, a line that is cut, a connection that meets and parts: decisions of wan_fuzz.cc
  channel  sessions that are opened from either end, with messages of each kind, as decisions of channel_peer.h
  scenario the examples, a topology, a trace, a size distribution, and what `weft-fabric-swarm --print` draws
           from some seeds, if it is built (as build/weft-fabric-swarm)

Seeds of cm, device, wan and channel go stale when their target reads its bytes in another order. They are then still valid
inputs, only dull ones; write them again here.
"""
import pathlib
import re
import subprocess

HEADERS = {"0800": 14 + 20 + 8, "86dd": 14 + 40 + 8, "8915": 14 + 40}  # by Ethertype; 8915 has a GRH instead

here = pathlib.Path(__file__).resolve().parent


def write(target, name, content):
    folder = here / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(bytes(content))


def decode():
    vectors = (here.parent.parent / "data/vectors/packets.txt").read_text()
    for name, frame in re.findall(r"^\[(\w+)\]\n(?:.*\n)*?frame = ([0-9a-f]+)$", vectors, re.M):
        write("decode", name, bytes.fromhex(frame)[HEADERS[frame[24:28]] :])


def cm():
    active, passive = 0, 1
    carry = lambda host: [host, 4, 7]
    # words, their number, what the user does; then what that takes
    hear = lambda host, act, *more: [host, 9, 0x41, 5, act, *more]
    ask = lambda host, act: [host, 10, 0, 0, 0x41, 5, act]  # about the first connection known
    listen = lambda tcp: [passive, 0, 1, tcp, 2]
    connect = [active, 2, passive, 1, 1, 5, 1, 4, 4, 19]
    accept, reject, establish, disconnect, abandon, answer, nothing = 0, 1, 2, 4, 5, 6, 8
    wait = [active, 8, 1, 0x20, 0]
    request = listen(1) + connect + carry(active)
    established = (
        request + hear(passive, accept, 0x22) + carry(passive) + hear(active, establish) + carry(active)
        + hear(active, nothing) + hear(passive, nothing)
    )
    write("cm", "connect", established + ask(active, disconnect) + carry(active) + carry(passive) + wait)
    write("cm", "reject", request + hear(passive, reject) + carry(passive))
    write("cm", "abandon", established + ask(passive, abandon) + carry(passive) + carry(active))
    write("cm", "nobody", connect + carry(active) + carry(passive))
    write("cm", "silence", connect + wait * 8)
    write("cm", "again", request + wait + carry(active) + carry(passive) + hear(passive, accept, 0x22) + wait)
    write("cm", "resolve", listen(0) + [active, 3, passive, 1] + carry(active) + hear(passive, answer, 0) + carry(passive))
    write("cm", "discover", [active, 11, 0, 2, 0, 1, passive] + carry(active) + carry(passive) + wait)


def device():
    operations = ["write", "write_imm", "send", "send_imm", "read", "swap", "add", "invalidate", "bind", "send_invalidate"]
    for mode, mode_name in enumerate(["roce", "irn", "srnic"]):
        config = [19, 3, 0, 7, 0, 0, 0, mode, 0, 0, 0, 0, mode] * 2 + [0, 0]  # controllers 0, 1 and 2; the mode's own scheme
        begin = config + [0, 0, mode, 0, 1, 3, 3, 14, 7, 7, 1]
        for op, name in enumerate(operations):
            atomic = name in ("swap", "add")
            length = [0, 8] if atomic else [2, 188]  # 700 bytes: three packets
            remote = [8, 5] if atomic else [0, 16]
            sometimes = [1] if atomic else []
            local = name in ("bind", "invalidate")
            element = [0] if local else [1, 0, 1, *length, 1, 1, 0, 0]
            post = [10, 0, *element, op, 2, *sometimes, 0, 0, 0, 0, 0, 0, 1, *remote, *sometimes, 1, 0]
            window = [8, 1, 1, 0] if name == "bind" else []
            post += [0, 0, 0, 0, 100, 7] if window else []
            receive = [15, 1, 0, 1, 5, 0, 1, 1, 0, 0, 1, 0]
            carry = [16, 15, 200, 0, 9, 23, 5, 9, 9, 9, 9, 9, 9, 0, 21, 21, 21, 17, 15, 200, 0, 9]
            back = [22, 5, 9, 9, 9, 9, 9, 9, 0, 20, 30, 0, 1, 1, 31, 0, 1, 1]
            write("device", f"{mode_name}_{name}", begin + window + (receive + post + carry + back) * 3)


def wan():
    speak = lambda mode: [0, 255, 2, 255, 2, 0xF8, mode, 0xF8, mode]  # acknowledges early; stores, bitmaps, first numbers
    begin = speak(0)
    push = lambda n, lost=0: [0, 0, 7 * lost, n - 1]
    read, resend, silent, answers = [0, 3, 1], [0, 4], [0, 5, 0, 0], [0, 5, 1, 0]
    cut, whole = [0, 6, 3], [0, 6, 0]
    run = lambda tenths: [0, 11, tenths]
    learn = (push(1) + run(20)) * 12 + resend + run(40)
    # A message: its kind, number, whose queue pair, first number, MTU; the frame around it; where it comes
    greet = lambda kind, mine, forth, site: [0, 10, kind, 1, mine, 0, 0xF8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, forth, site]
    meet = greet(0, 1, 1, 0) + run(20) + greet(1, 0, 0, 1) + run(20)
    parity = [2, *begin[1:]]
    lose = lambda low, high=0: [0, 12, 0, 1, high, low]
    again = lambda flips=0: [0, 12, 0, 0, 0, flips, *[40, 255] * flips, 0, 1]
    write("wan", "parity", parity + learn + lose(1) + push(4) + run(60) + again() + lose(7) + push(4) + run(90) + again(1) + run(60))
    write("wan", "owned", begin + learn + push(8) + run(60) + push(3) + run(200))
    write("wan", "read", begin + learn + read + run(60) + push(4) + read + read + run(80))
    write("wan", "cut", begin + learn + cut + push(8) + run(250) + whole + run(250) + resend + run(60))
    write("wan", "farewell", begin + meet + learn + silent + push(5) + greet(2, 0, 1, 0) + run(60) + answers + run(100))
    write("wan", "reconnect", begin + meet + learn + silent + push(5) + meet + answers + push(3) + run(100))
    for mode, name in ((1, "irn"), (2, "srnic")):
        write("wan", name, speak(mode) + learn + push(4, lost=1) + read + run(10) + resend + push(8) + run(60) + read + run(80))


def channel():
    begin = [1, 7, 4, 0, 5, 2, 2, 1, 5]  # memory, depth, queue, fragment, outstanding, reads, cache, reconnect, keepalive
    hello = lambda session, *goes_on: [session, 7, 9, 20, 2, *(goes_on or [1]), 0, 0, 0]
    turn = [1]
    ask = lambda c, session, *goes_on: c + [0, 1, *hello(session, *goes_on)] + turn
    confirm = lambda connection: [0, 2, connection, *hello(3), 0, 0] + turn
    accept = [0, 11, 0] + turn
    send = [0, 11, 2, 0, 0, 90, 1] + turn
    call = [0, 11, 4, 0, 90, 1, 200] + turn
    complete = [0, 8, 7, *[9] * 7] + turn
    let_go = [0, 13, 0, 1, 5] + turn
    sound = [0, 0, 0, 0]
    plain = [0, 5, 0, 0, 0, 60, *sound]
    request = [0, 5, 0, 1, 0, 0, 0, 0, 1, 0, 60, *sound]
    response = [0, 5, 0, 2, 0, 0, 0, 60, *sound]
    large = [0, 5, 1, 0, 0, 1, 0, 0, 0, 9, 8, 0, 7, 0, 0, 0, 9, 8, 0, 7, 0, *sound]
    control = lambda kind, ack: [0, 5, kind, 0, ack, *sound]
    wait = [0, 10, 1, 90] + turn
    there = begin + ask([], 3) + accept + confirm(0)
    here = begin + [1] + turn + confirm(0)
    write("channel", "plain", there + (plain + let_go) * 3 + wait + send * 3 + complete + control(2, 1) + wait)
    write("channel", "request", here + request + let_go + complete + call + complete + response + let_go)
    write("channel", "large", there + large + complete * 4 + let_go + wait)
    write("channel", "again", there + plain + [0, 4, 0] + turn + ask([0], 3, 0, 1, 1) + confirm(1) + plain + let_go)
    write("channel", "close", there + send * 2 + [0, 11, 5] + turn + complete + control(2, 2) + complete + wait)
    write("channel", "peer_closes", here + plain + control(4, 0) + let_go)


def scenario():
    root = here.parent.parent
    for example in sorted((root / "examples").glob("*.toml")):
        write("scenario", example.stem, b"S" + example.read_bytes())
    write("scenario", "topology", b"Thosts 3\nswitches 2\nlink h0 s0\nlink h1 s0 25Gbps\nlink h2 s1 25Gbps 5us\nlink s0 s1 10Gbps # core\n")
    write("scenario", "trace", b"R0us 0 3 64KiB read\n1.5us 1 2 1000\n2us, 4, 5, 1MB, send\n")
    write("scenario", "sizes", b"Z" + (root / "data/cdf/irn-heavy.txt").read_bytes())
    plan = root / "build/weft-fabric-swarm"
    for seed in range(1, 25) if plan.exists() else []:
        text = subprocess.run([plan, "--print", str(seed)], capture_output=True, check=True).stdout
        write("scenario", f"fabric{seed}", b"S" + text)


decode()
cm()
device()
wan()
channel()
scenario()
