#!/usr/bin/env python3
"""Forged packets, by name: what they do to a program that somebody on the network has chosen.

    run_forged.py WEFT END [--mode roce] [--wire udp]

Two programs of end.cc are connected over a virtual Ethernet. Somebody who sees the peer's packets puts others on the cable, a field of
which is wrong (forger.py). After each of them the victim's memory holds what it held, no event is told, nothing completes that the peer
did not answer, and messages pass both ways as before; at the end each packet has been counted, by its reason.

The last two are right in all that a receiver may check (docs/SECURITY.md#what-an-attacker-can-still-do). They show that the others
were not refused for being badly made, and what a wrong key does to a connection where everything else is right.
"""
import argparse
import random
import socket
import subprocess
import sys

from ends import Cable, Ends, Failed
from forger import ACKNOWLEDGE, AT, BTH, SYNDROME, WRITE_ONLY, Forger
from namespaces import enter_namespaces

TIMES = 3          # each of them
FAR = 0x400000     # of sequence numbers
EVIL = b"\xee" * 32
SRNIC = 2      # the mode, on the wire
ECX = 12       # bytes behind the AETH of its ACKs
NAK_ACCESS = 0x62


class Scene:
    def __init__(self, ends, a):
        cable = Cable(ends, a)
        self.peer, self.victim, self.place = cable.x, cable.y, cable.place
        self.forger = Forger("eth0")
        self.byte = 1
        ends.connect(self.peer, self.victim, timeout=18)
        self.write, self.ack = None, None
        self.works()

    def works(self):
        """Messages pass both ways; their packets are what the forger changes."""
        self.byte += 1
        self.forger.forgets()
        Ends.work(self.peer, self.victim, self.byte)
        self.write = self.forger.hears(lambda f: f.opcode == WRITE_ONLY and f.qpn == self.victim.number)
        self.ack = self.forger.hears(lambda f: f.opcode == ACKNOWLEDGE and f.qpn == self.victim.number)
        if self.write is None or self.ack is None:
            raise Failed("the forger did not hear the peer's WRITE and its ACK")
        self.sent = bytes([self.byte]) * 32

    def next_write(self, key=0, **but):
        """What the peer sends next, but for what it writes and what is named."""
        frame = self.write
        swap = [(self.sent, EVIL)]
        if key:
            place = (self.victim.place + 4096).to_bytes(8, "big")
            swap.append((place + self.victim.key.to_bytes(4, "big"), place + (self.victim.key ^ key).to_bytes(4, "big")))
        if frame.mode == SRNIC:  # whose packets count messages, too
            msn = frame.data[AT + BTH:AT + BTH + 3]
            head = frame.data[AT + 9:AT + BTH]
            swap.append((head + msn, head + (int.from_bytes(msn, "big") + 1 & 0xFFFFFF).to_bytes(3, "big")))
        frame = frame.but(swap=swap)
        return frame.but(**{"psn": frame.psn + 1, **but})

    def later_ack(self, far, syndrome=None):
        """srnic's ACK says the first packet that is missing apart from the one that it answers, and an error NAK has no such words."""
        psn = self.ack.psn + far
        if self.ack.mode != SRNIC or syndrome is not None:
            return self.ack.but(psn=psn, syndrome=syndrome, shorter=ECX if self.ack.mode == SRNIC else 0)
        words = self.ack.data[SYNDROME:SYNDROME + 5]
        missing = self.ack.number(SYNDROME + 5, 3)
        return self.ack.but(psn=psn, swap=[(words + missing.to_bytes(3, "big"), words + (missing + far & 0xFFFFFF).to_bytes(3, "big"))])

    def untouched(self):
        self.victim.does(f"look 4096 {self.byte} 32", "same")
        self.victim.does("state", "RTS")
        self.victim.does("event 0", "nothing")
        self.victim.does("poll 0", "nothing")


def to_nobody(s):
    s.forger.says(s.next_write(qpn=s.victim.number ^ 0x155), TIMES)


def from_another_address(s):
    s.forger.says(s.next_write(source="10.0.0.77"), TIMES)


def with_a_wrong_icrc(s):
    s.forger.says(s.next_write(icrc=0x5A5A1234), TIMES)


def with_a_wrong_key_out_of_window(s):
    s.forger.says(s.next_write(key=0x55, psn=s.write.psn + FAR), TIMES)


def said_before(s):
    """The peer's own packet, again."""
    s.forger.says(s.write.but(swap=[(s.sent, EVIL)]), TIMES)


def from_another_port(s):
    """A program of the victim's host, which needs no rights, in the name of the victim's address."""
    frame = s.next_write()
    code = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            f"[s.sendto(bytes.fromhex('{frame.payload.hex()}'), ('10.0.0.2', 4791)) for _ in range({TIMES})]")
    subprocess.run(s.place.inside(sys.executable, "-c", code), check=True)


def acks_out_of_window(s):
    """While the victim's SEND waits for a receive: ACKs beyond what it has sent, and error NAKs likewise."""
    s.victim.does("post send 1", "posted")
    for far in (0x1000, FAR):
        s.forger.says(s.later_ack(far), TIMES)
        s.forger.says(s.later_ack(far, syndrome=NAK_ACCESS), TIMES)
    s.victim.does("poll 200", "nothing")
    s.untouched()
    s.peer.does("receive 1", "posted")
    s.victim.succeeds()
    s.peer.succeeds()


def noise(s):
    """Bytes without a meaning; but for the shortest they are for the victim's queue pair."""
    chance = random.Random(7)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port:
        for _ in range(200):
            data = chance.randbytes(chance.randrange(1, 200))
            any_port.sendto(data[:5] + s.victim.number.to_bytes(3, "big") + data[8:], ("10.0.0.2", 4791))


FORGED = {to_nobody: "drop_no_qp", from_another_address: "drop_source", with_a_wrong_icrc: "rx_icrc",
          with_a_wrong_key_out_of_window: "drop_out_of_order", said_before: "rx_duplicate", from_another_port: "rx_port",
          acks_out_of_window: "drop_stale", noise: "rx_opcode"}


def right_in_everything(s):
    """It is the peer's next packet, to all that the victim can know."""
    s.forger.says(s.next_write())
    s.victim.does("poll 200", "nothing")
    s.victim.does("look 4096 238 32", "same")


def with_a_wrong_key(s):
    """Where all but the key is right, the connection ends as with a peer that is wrong; nothing is written."""
    s.victim.does(f"fill 4096 {s.byte} 32", "filled")
    s.forger.says(s.next_write(key=0x55, psn=s.write.psn + 2))
    s.victim.does("event 5000", "told local access violation work queue error")
    s.victim.does("state", "ERR")
    s.victim.does(f"look 4096 {s.byte} 32", "same")


def forge(ends, a):
    s = Scene(ends, a)
    for forged in FORGED:
        try:
            forged(s)
            s.victim.does("poll 100", "nothing")  # it drives, and takes what has come
            s.untouched()
            s.works()
        except Failed as failed:
            raise Failed(f"{forged.__name__}: {failed}") from failed
    right_in_everything(s)
    with_a_wrong_key(s)
    ends.close()
    s.victim.counted(**{counter: TIMES * (4 if forged is acks_out_of_window else 1) for forged, counter in FORGED.items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("end")
    parser.add_argument("--mode", default="roce")
    parser.add_argument("--wire", default="udp")
    a = parser.parse_args(enter_namespaces(__file__, sys.argv[1:]))
    try:
        with Ends(a.weft, a.end) as ends:
            forge(ends, a)
    except Failed as failed:
        print(f"{a.mode}, {a.wire}: {failed}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
