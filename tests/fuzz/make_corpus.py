#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets; the files are committed, so that a run needs nothing but the tree.

  decode   the UDP payloads of data/vectors/packets.txt, one file per vector. Run this after adding a vector.
  cm       connections and SIDR exchanges that succeed, as the decisions that cm_fuzz.cc reads from its bytes
  device   one operation of each kind, delivered and acknowledged, in each mode: decisions of device_fuzz.cc
  live     one operation of each kind, carried by each door, in each mode, what an attacker makes of it, datagrams, a
           group, a connection, discovery: decisions of live_fuzz.cc
  wan      an ownership, READs inside it, a line that is cut, a connection that meets and parts: decisions of wan_fuzz.cc
  channel  sessions that are opened from either end, with messages of each kind, as decisions of channel_peer.h
  scenario the examples, a topology, a trace, a size distribution, and what `weft-fabric-swarm --print` draws
           from some seeds, if it is built (as build/weft-fabric-swarm)

Seeds of cm, device, live, wan and channel go stale when their target reads its bytes in another order. They are then still valid
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


def live():
    a, b = 0, 1
    rc, drawing, ud, uc = range(4)
    everything, readable, local, silent, foreign, odd = range(6)
    place = [0, 0, 16]
    piece = lambda block, length: [block, length >> 8, length & 255, 0, *place]
    datagram = [0, 1, 0, 0, 0]  # a SEND, to the peer's, with its key
    remote = lambda block: [block, *place, 0, 5, 7]

    def post(host, queue, op, block, length, there=everything):
        return [host, queue, op, 0, 1, *piece(block, length), *remote(there), *(datagram if queue == ud else [])]

    receive = lambda host, queue, length=1024: [6 + host, 1, *piece(local, length), 0, *place, 0, queue]
    poll = lambda host: [24 + host]
    well = lambda host: [26 + host]
    carry = lambda host, door, *fate: [28 + host, *(fate or [15]), *([door] if door and host == b else [])]
    begin = lambda mode, door=0: [0, mode, 1 if door else 0, 0, 0, 1, 0, 0, 0, 1, 0]
    # Opcode by its kind, then what forged_packet reads; at last: not altered, nor its facts, sealed
    forge = lambda queue, opcode, ahead, length, block, door: [
        14, 5, 4, opcode, 0, 15, queue, 1, 4 + ahead, 1, length, block, 0, 0, 0, *place, 0, 1, 1, 4, 0, 0, 0, 0, *([door] if door else [])]
    operations = ["write", "write_imm", "send", "send_imm", "read", "swap", "add"]
    for mode, mode_name in enumerate(["roce", "irn", "srnic"]):
        for op, name in enumerate(operations):
            for door, door_name in enumerate(["memory", "ring", "udp"]):
                queue = drawing if name == "send_imm" else rc
                get = receive(a, queue) if queue == rc else [6, 1, *piece(local, 1024), 0, *place, 1]
                once = get + post(b, queue, op, local, 8 if op > 4 else 600) + carry(b, door) + well(a) + poll(b)
                write("live", f"{mode_name}_{name}_{door_name}", begin(mode, door) + once * 3)
        for door in range(3):
            kinds = {"sends": [4, 0, 1, 2], "writes": [10, 6, 7, 8], "asks": [12, 19, 17]}  # of a message of three, in its order
            for name, opcodes in kinds.items():
                made = sum((forge(rc, o, n, 250 if o in (0, 1, 6, 7) else 90, everything, door) for n, o in enumerate(opcodes)), [])
                write("live", f"{mode_name}_forged_{name}_{door}", begin(mode, door) + receive(a, rc) * 3 + made)
            strange = begin(mode, door) + forge(rc, 10, 0, 90, everything, door)
            for facts, name in enumerate(["elsewhere", "itself", "port", "stray"]):
                at = -1 - (1 if door else 0)
                write("live", f"{mode_name}_{name}_{door}", strange[: at - 1] + [1, facts] + [9, 9] * (name == "port") + strange[at:])
            denied = sum((forge(rc, 10, 1 + n, 90, n + 1, door) for n in range(5)), [])  # ahead of what is missing
            write("live", f"{mode_name}_denied_{door}", begin(mode, door) + denied + forge(rc, 10, 0, 90, silent, door))
        for ahead, name in ((1, "some"), (2, "all"), (7, "more")):  # of three packets, by somebody else
            write("live", f"{mode_name}_acknowledged_{name}", begin(mode) + post(a, rc, 2, silent, 600) + forge(rc, 17, ahead, 0, everything, 0) + post(a, rc, 4, local, 300))
        altered = sum(([*receive(a, rc), *post(b, rc, 2, silent, 700), *carry(b, 0, fate, 0, n, n, 0)] for fate in (6, 7) for n in range(6)), [])
        write("live", f"{mode_name}_altered", begin(mode) + altered)
        lost = sum((post(b, rc, n % 5, local, 900) + carry(b, 0, n) + well(b) + well(a) + [12, 2] for n in range(10)), [])
        write("live", f"{mode_name}_lost", begin(mode) + receive(a, rc) * 4 + lost)
    for door in range(3):
        write("live", f"datagrams_{door}", begin(0, door) + (receive(a, ud) + post(b, ud, 2, silent, 200) + carry(b, door)) * 3)
        write("live", f"unreliable_{door}", begin(1, door) + (receive(a, uc) + post(b, uc, 2, silent, 600) + carry(b, door)) * 3)
        connect = [11, 0] + carry(b, door) + [10, 5, 0, 15, 0] + carry(a, 0) + [11, 5, 0, 15] + carry(b, door) + post(b, 4, 0, silent, 300) + carry(b, door)
        write("live", f"connection_{door}", begin(2, door) + connect + [11, 5, 0, 1] + carry(b, door) + carry(a, 0))
        write("live", f"resolved_{door}", begin(0, door) + [11, 1] + carry(b, door) + [10, 5, 0, 15] + carry(a, 0))
        write("live", f"discovery_{door}", begin(1, door) + [9, 0, 6, 15, 0] + well(b) + [23] + carry(b, door) + well(a))
        # Messages of the connection manager, and of discovery, that nobody sent
        tail = [7, 0, 0, *([door] if door else [])]  # its PSN; facts as they are; sealed
        # Whose queue pair, kind, ids, transaction, service, MTU, PSN, depths, retries, reason, options, no byte changed
        strange = sum(([14, 1, 15, 0, kind, 1, 1, 1, 1, 1, 3, 0, 2, 4, 0, 0, 0, *tail] for kind in range(9)), [])
        write("live", f"messages_{door}", begin(0, door) + strange + [14, 2, 15, 0, 0, 0, 1, *[0] * 8, 7, 1, 0, 0, 16, 0, 4, 0, *tail])
    for mode in range(3):  # over IPv6, with a wrong ICRC
        write("live", f"unsealed_{mode}", [1, *begin(mode)[1:]] + forge(rc, 10, 0, 90, everything, 0)[:-1] + [1, 7])
    tell = lambda trains, size, last, *more: [8, 0, 7, 1, trains, size >> 8, size & 255, *last, *more]
    write("live", "ring_long", begin(0, 1) + tell(0, 0, [1, 0x7F, 0], 0, 0, 0x20, 0, 0) + [24])
    write("live", "ring_end", begin(0, 1) + tell(7, 65535, [1, 0x10, 0], 0, 0, 4, 1, 0) + [24])
    write("live", "ring_count", begin(0, 1) + tell(1, 200, [2, 90], 0, 1, *[255] * 8, 0) + [24])
    # A message of some bytes, into a receive that has room for just so many, and to the end of a region
    short = sum((receive(a, rc, n) + post(b, rc, 2, silent, n) + carry(b, 0) + well(a) for n in (1, 3, 7)), [])
    last = [b, rc, 0, 0, 1, *piece(silent, 3), everything, 1, 0, 3, 0, 5, 7]  # 597 bytes behind it would end the region
    write("live", "short", begin(0) + short + last + carry(b, 0))
    group = [*receive(a, ud), 1, ud, 2, 0, 1, *piece(silent, 100), *remote(everything), 0, 1, 1, 1, 2, 0]
    write("live", "group", begin(0) + (group + carry(b, 0)) * 2)
    write("live", "forgotten", begin(0) + receive(a, rc) + [8, 0, 4, 2] + post(b, rc, 2, silent, 300) + well(b) + well(a))
    write("live", "destroyed", begin(1) + receive(a, rc) + post(b, rc, 2, silent, 900) + [8, 0, 2] + well(b) + [8, 0, 3, 1, 0, 0])


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
live()
wan()
channel()
scenario()
