"""What two hosts really sent, judged by others than us: every frame is captured as it leaves its host, dissected by tshark, and its
ICRC computed anew with zlib's CRC-32 from the bytes of the frame (docs/protocol/icrc.md#what-is-covered).

    captures = [Capture(host, folder) for host in hosts]     ... traffic ...
    problems = [p for c in captures for p in c.finish()]
"""
import shutil
import signal
import struct
import subprocess
import time
import zlib

PORT = 4791
PROGRAMS = ("dumpcap", "tshark")


def missing():
    return next((p for p in PROGRAMS if shutil.which(p) is None), None)


def icrc_of(ip):
    """Of a packet from its IP header on, without its last four bytes."""
    masked = bytearray(ip[:-4])
    if ip[0] >> 4 == 6:
        header = 40
        masked[0] |= 0x0F  # traffic class, flow label
        masked[1] = masked[2] = masked[3] = masked[7] = 0xFF  # their rest, hop limit
    else:
        header = (ip[0] & 15) * 4
        masked[1] = masked[8] = masked[10] = masked[11] = 0xFF  # DSCP and ECN, TTL, checksum
    masked[header + 6] = masked[header + 7] = 0xFF  # UDP's checksum
    masked[header + 8 + 4] = 0xFF  # the BTH's congestion bits
    return zlib.crc32(bytes(masked), zlib.crc32(b"\xff" * 8))


def frames_of(path):
    """The frames of a pcap file."""
    with open(path, "rb") as f:
        data = f.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        length, = struct.unpack(order + "8xI4x", data[at:at + 16])
        yield data[at + 16:at + 16 + length]
        at += 16 + length


class Capture:
    def __init__(self, host, folder, address=None):
        self.host = host
        self.address = address or host.address
        self.path = f"{folder}/{host.address}.pcap"
        self.process = subprocess.Popen(
            host.inside("dumpcap", "-q", "-P", "-i", "eth0", "-B", "64", "-f", f"udp port {PORT} and src host {self.address}", "-w", self.path),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # It says so when it listens.
        for line in self.process.stderr:
            if line.startswith("File:"):
                break

    def finish(self):
        """What is wrong with what the host sent, a sentence each."""
        time.sleep(0.5)
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        frames = list(frames_of(self.path))
        wrong = [n for n, f in enumerate(frames) if not self.right(f)]
        problems = [f"{self.address}: {len(wrong)} of {len(frames)} frames have a wrong ICRC, the first is number {wrong[0] + 1}"] if wrong else []
        dissected = subprocess.run(["tshark", "-r", self.path, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-e", "infiniband.bth.opcode",
                                    "-e", "_ws.malformed", "-e", "ip.checksum.status"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, check=True).stdout.splitlines()
        rows = [line.split("\t") for line in dissected]
        if len(rows) != len(frames):
            problems.append(f"{self.address}: tshark sees {len(rows)} of {len(frames)} frames")
        for text, bad in (("are malformed", [r for r in rows if len(r) > 1 and r[1]]), ("are no RoCEv2", [r for r in rows if not r[0]]),
                          ("have a wrong IP checksum", [r for r in rows if len(r) > 2 and r[2] not in ("1", "")])):
            if bad:
                problems.append(f"{self.address}: {len(bad)} frames {text}")
        if not frames:
            problems.append(f"{self.address}: nothing was captured")
        print(f"captured: {self.address} sent {len(frames)} frames, {len(wrong)} with a wrong ICRC")
        return problems

    @staticmethod
    def right(frame):
        if frame[12:14] == b"\x86\xdd":
            total = 40 + struct.unpack("!H", frame[18:20])[0]
        else:
            total, = struct.unpack("!H", frame[16:18])
        ip = frame[14:14 + total]
        return len(ip) == total and struct.pack("<I", icrc_of(ip)) == ip[-4:]
