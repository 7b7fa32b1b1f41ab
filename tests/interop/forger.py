"""Somebody on the network: reads what a host's soft NIC sends, changes a field, seals the frame anew with an ICRC that is right unless
asked otherwise, and puts it on the cable (docs/protocol/packets.md#base-transport-header). It is of no make: addresses, keys and
payloads are found by their bytes, so headers of every mode pass.

    forger = Forger("eth0")
    frame = forger.hears(lambda f: f.opcode == WRITE_ONLY)
    forger.says(frame.but(psn=frame.psn + 1))
"""
import socket
import struct
import time

from captured import PORT, icrc_of

WRITE_ONLY, ACKNOWLEDGE = 0x0A, 0x11
ALL = 0x0003  # ETH_P_ALL
OUTGOING = 4  # PACKET_OUTGOING
ETHERNET, IP, UDP, BTH = 14, 20, 8, 12
AT = ETHERNET + IP + UDP  # of the BTH
SYNDROME = AT + BTH       # of an acknowledgement


def internet_checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Frame:
    def __init__(self, data):
        self.data = bytes(data)

    def number(self, at, length):
        return int.from_bytes(self.data[at:at + length], "big")

    @property
    def opcode(self):
        return self.data[AT]

    @property
    def mode(self):
        return self.data[AT + 1] & 0x0F

    @property
    def qpn(self):
        return self.number(AT + 5, 3)

    @property
    def psn(self):
        return self.number(AT + 9, 3)

    def but(self, icrc=0, source=None, qpn=None, psn=None, syndrome=None, swap=(), shorter=0):
        """Sealed anew with these instead. `swap`: pairs of bytes to find and what stands there then; `icrc`: bits of it that are wrong;
        `shorter`: bytes in front of it that are left out."""
        data = bytearray(self.data[:len(self.data) - shorter])
        struct.pack_into("!H", data, ETHERNET + 2, len(data) - ETHERNET)
        struct.pack_into("!H", data, ETHERNET + IP + 4, len(data) - ETHERNET - IP)
        if source is not None:
            data[ETHERNET + 12:ETHERNET + 16] = socket.inet_aton(source)
        if qpn is not None:
            data[AT + 5:AT + 8] = qpn.to_bytes(3, "big")
        if psn is not None:
            data[AT + 9:AT + 12] = (psn & 0xFFFFFF).to_bytes(3, "big")
        if syndrome is not None:
            data[SYNDROME] = syndrome
        for old, new in swap:
            where = data.index(old)
            data[where:where + len(old)] = new
        data[ETHERNET + IP + 6:ETHERNET + IP + 8] = b"\0\0"  # no UDP checksum, as RoCEv2 has it
        data[ETHERNET + 10:ETHERNET + 12] = b"\0\0"
        struct.pack_into("!H", data, ETHERNET + 10, internet_checksum(data[ETHERNET:ETHERNET + IP]))
        struct.pack_into("<I", data, len(data) - 4, icrc_of(data[ETHERNET:]) ^ icrc)
        return Frame(data)

    @property
    def payload(self):
        """Of the UDP datagram."""
        return self.data[AT:]


class Forger:
    def __init__(self, interface):
        self.line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
        self.line.bind((interface, 0))

    def forgets(self):
        """What it has heard so far."""
        self.line.setblocking(False)
        try:
            while True:
                self.line.recv(65536)
        except BlockingIOError:
            pass

    def hears(self, wanted, seconds=10):
        """The next frame that this host sends to port 4791 and that is wanted."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.line.settimeout(max(until - time.monotonic(), 0.01))
            try:
                data, sender = self.line.recvfrom(65536)
            except TimeoutError:
                break
            if sender[2] != OUTGOING or data[12:14] != b"\x08\x00" or data[23] != socket.IPPROTO_UDP:
                continue
            frame = Frame(data[:ETHERNET + int.from_bytes(data[16:18], "big")])
            if frame.number(ETHERNET + IP + 2, 2) == PORT and len(frame.data) >= AT + BTH + 4 and wanted(frame):
                return frame
        return None

    def says(self, frame, times=1):
        for _ in range(times):
            self.line.send(frame.data)
