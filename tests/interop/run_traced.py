#!/usr/bin/env python3
"""The packet trace of a soft NIC (`weft run --trace`), judged by others than us: tshark dissects it, and each frame's ICRC is
computed anew with zlib's CRC-32 (captured.py).

    run_traced.py WEFT CASE

    counts     as many packets each way as the NIC counts, every ICRC right, nothing malformed, the two ends' traces agree
    loss       what the impairments dropped is there and says so
    directions what is impaired at one end in one direction is lost there, and nowhere else
    rate       no more leaves than the rate allows, by the times in the trace and by what perftest measures
    snap       packets are cut, and their lengths are whole
    killed     a program that is killed leaves a file of whole blocks
    full       a file that cannot grow does not stop the program, which says what is missing
    processes  each process has a file for itself
"""
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from captured import Capture

SERVER, CLIENT = "127.41.0.1", "127.41.0.2"
IN, OUT = 1, 2
SECONDS = 25
WEFT = sys.argv[1]


def packets_of(path):
    """(direction, original length, kept bytes, comment) of each; fails where the file does not consist of whole blocks."""
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0 and at + length <= len(data), f"{path}: a block is cut at {at}"
        assert struct.unpack_from("<I", data, at + length - 4)[0] == length, f"{path}: a block's lengths differ at {at}"
        if kind == 6:
            kept, original = struct.unpack_from("<II", data, at + 20)
            option, direction, comment = at + 28 + (kept + 3) // 4 * 4, 0, ""
            while option < at + length - 4:
                code, size = struct.unpack_from("<HH", data, option)
                value = data[option + 4:option + 4 + size]
                direction = value[0] & 3 if code == 2 else direction
                comment = value.decode() if code == 1 else comment
                option += 4 + (size + 3) // 4 * 4
            yield direction, original, data[at + 28:at + 28 + kept], comment
        at += length


def dissected(path, *fields):
    done = subprocess.run(["tshark", "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields",
                           *(word for f in fields for word in ("-e", f))], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "cut short" not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def counters(text):
    return {name: int(n) for name, n in re.findall(r"(?m)^weft: (\w+) +(\d+)  ", text)}


def start(address, options, command, **how):
    return subprocess.Popen([WEFT, "run", "--addr", address, "--stats", "on", *options, "--", *command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **how)


def finish(process):
    try:
        return process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"it did not end in time:\n{process.communicate()[0]}") from None


def pair(folder, command, options=(), client_options=(), **how):
    """Both ends' outputs; both traced."""
    server = start(SERVER, ["--trace", f"{folder}/server.pcapng", *options], command)
    try:
        for _ in range(100):
            time.sleep(0.2)
            client = start(CLIENT, ["--trace", f"{folder}/client.pcapng", *options, *client_options], [*command, SERVER], **how)
            text = finish(client)
            if client.returncode == 0 or server.poll() is not None or "Couldn't connect" not in text:
                break
        assert client.returncode == 0, text
        server_text = finish(server)
        assert server.returncode == 0, server_text
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
    return text, server_text


def counts(folder):
    texts = pair(folder, ["ib_write_bw", "-p", "18780", "-n", "100", "-s", "10000"])
    seen = {}
    for name, text in zip(("client", "server"), texts):
        path, said = f"{folder}/{name}.pcapng", counters(text)
        packets = list(packets_of(path))
        ways = Counter(direction for direction, *_ in packets)
        assert ways == {IN: said["rx_frames"], OUT: said["frames_sent"]}, (ways, said)
        assert all(original == len(frame) and not comment for _, original, frame, comment in packets)
        assert all(Capture.right(frame) for _, _, frame, _ in packets), f"{name}: a wrong ICRC"
        rows = dissected(path, "infiniband.bth.opcode", "_ws.malformed", "ip.checksum.status", "udp.checksum.status",
                         "frame.packet_flags_direction")
        assert len(rows) == len(packets)
        for row in rows:
            assert row[0] and not row[1] and row[2:4] == ["1", "1"] and int(row[4], 0) in (IN, OUT), row
        times = [float(row[0]) for row in dissected(path, "frame.time_epoch")]
        assert times == sorted(times) and abs(times[-1] - time.time()) < 600, times[-1]
        seen[name] = {way: Counter(frame[42:] for d, _, frame, _ in packets if d == way) for way in (IN, OUT)}
        print(f"{name}: {dict(ways)}")
    # What one receives the other has sent. The last answers come when nobody is there to receive them.
    for one, other in (("client", "server"), ("server", "client")):
        assert not seen[one][IN] - seen[other][OUT]
        assert (seen[other][OUT] - seen[one][IN]).total() <= 8


def loss(folder):
    texts = pair(folder, ["ib_write_bw", "-p", "18781", "-n", "200", "-s", "10000"], ["--loss", "2%", "--seed", "7"])
    dropped = 0
    for name, text in zip(("client", "server"), texts):
        said = counters(text)
        comments = Counter(comment for d, _, _, comment in packets_of(f"{folder}/{name}.pcapng") if d == IN)
        assert set(comments) <= {"", "dropped by --loss"}, comments
        assert comments["dropped by --loss"] == said.get("impaired_dropped", 0) and comments[""] == said["rx_frames"], (comments, said)
        dropped += comments["dropped by --loss"]
    assert dropped != 0


def directions(folder):
    command = ["ib_write_bw", "-p", "18785", "-n", "200", "-s", "10000"]
    client, server = (counters(text) for text in pair(folder, command, client_options=["--loss", "out=3%", "--seed", "7"]))
    # The server loses nothing of what it sends or receives; what the client loses on its way out never comes in.
    assert client["line_dropped"] != 0 and "line_dropped" not in server, (client, server)
    assert not {"impaired_dropped"} & (client.keys() | server.keys())
    comments = Counter((d, comment) for d, _, _, comment in packets_of(f"{folder}/client.pcapng"))
    assert comments[OUT, "dropped by --loss out"] == client["line_dropped"], (comments, client)
    assert comments[OUT, ""] + client["line_dropped"] == client["frames_sent"] == client["line_frames"]
    assert server["rx_frames"] <= comments[OUT, ""]
    assert all(Capture.right(frame) for _, _, frame, comment in packets_of(f"{folder}/client.pcapng") if not comment)


def rate(folder):
    most = 200e6 / 8  # bytes a second
    texts = pair(folder, ["ib_write_bw", "-p", "18786", "-n", "200", "-s", "65536", "--report_gbits"], client_options=["--rate", "200Mbps"])
    said = counters(texts[0])
    assert said["line_frames"] == said["frames_sent"], said
    lengths = [original if not comment else 0 for d, original, _, comment in packets_of(f"{folder}/client.pcapng") if d == OUT]
    times = [float(row[0]) for row in dissected(f"{folder}/client.pcapng", "frame.time_relative", "frame.packet_flags_direction")
             if int(row[1], 0) == OUT]
    assert len(times) == len(lengths) and sum(lengths) > 200 * 65536
    overflow = sum("--rate was full" in comment for *_, comment in packets_of(f"{folder}/client.pcapng"))
    assert overflow == said.get("line_overflow", 0), (overflow, said)
    sent, burst = 0, 256 << 10
    for now, length in zip(times, lengths):
        sent += length
        assert sent <= most * (now - times[0]) + burst, f"{sent} bytes had left after {now - times[0]:.6f} s"
    average = float(re.search(r"(?m)^ 65536 +200 +\S+ +(\S+)", texts[0])[1])
    print(f"{average} Gb/s")
    assert average <= 0.2 * 1.02


def snap(folder):
    pair(folder, ["ib_write_bw", "-p", "18782", "-n", "20", "-s", "10000"], ["--trace-snap", "128"])
    packets = list(packets_of(f"{folder}/client.pcapng"))
    assert max(original for _, original, *_ in packets) > 1000
    assert all(len(frame) == min(128, original) for _, original, frame, _ in packets)
    assert all(row[0] for row in dissected(f"{folder}/client.pcapng", "infiniband.bth.opcode"))


def killed(folder):
    server = start(SERVER, ["--trace", f"{folder}/server.pcapng"], ["ib_write_bw", "-p", "18783", "-D", "20", "-s", "4096"])
    client = None
    path, end = Path(folder, "client.pcapng"), time.monotonic() + SECONDS
    try:
        while (not path.exists() or path.stat().st_size < 1_000_000) and time.monotonic() < end:
            if client is None or client.poll() is not None:
                client = start(CLIENT, ["--trace", str(path), "--trace-snap", "128"], ["ib_write_bw", "-p", "18783", "-D", "20", "-s", "4096", SERVER])
            time.sleep(0.1)
    finally:
        for process in (client, server):
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert path.stat().st_size >= 1_000_000
    # A kill may strike in the middle of a write: all but the last block are whole.
    data = path.read_bytes()
    at = 0
    while at + 8 <= len(data) and at + struct.unpack_from("<I", data, at + 4)[0] <= len(data):
        at += struct.unpack_from("<I", data, at + 4)[0]
    path.write_bytes(data[:at])
    print(f"{len(list(packets_of(path)))} packets, {len(data) - at} bytes of a block that was cut")


def full(folder):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))  # the default action of its signal would end the program
    text, _ = pair(folder, ["ib_write_bw", "-p", "18784", "-n", "100", "-s", "10000"], preexec_fn=small_files)
    path = f"{folder}/client.pcapng"
    kept, said = len(list(packets_of(path))), counters(text)
    assert Path(path).stat().st_size <= 300_000 and kept != 0
    assert "client.pcapng: File too large; the program goes on, and its packets are no longer recorded." in text, text
    found = re.search(r"client.pcapng has (\d+) packets; (\d+) more are missing, because File too large\.", text)
    assert found and int(found[1]) == kept and kept + int(found[2]) == said["rx_frames"] + said["frames_sent"], (text, kept)
    print(found[0])


def processes(folder):
    path = f"{folder}/both.pcapng"
    done = subprocess.run([WEFT, "run", "--trace", path, "--", "sh", "-c", "ibv_devinfo -v && ibv_devinfo -v"], capture_output=True, text=True,
                          check=True, timeout=SECONDS)
    said = re.findall(r"weft: the packets of process (\d+) are in (\S+), because (\S+) is another's\.", done.stderr)
    files = sorted(p.name for p in Path(folder).iterdir())
    assert len(said) == 1 and said[0][1:] == (f"{folder}/both.{said[0][0]}.pcapng", path), done.stderr
    assert files == sorted(["both.pcapng", f"both.{said[0][0]}.pcapng"]), files
    for name in files:
        assert list(packets_of(f"{folder}/{name}")) == [] and dissected(f"{folder}/{name}", "frame.number") == []


if __name__ == "__main__":
    for program in ("tshark", "ib_write_bw", "ibv_devinfo"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed; ./dev setup installs it")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as place:
        {"counts": counts, "loss": loss, "directions": directions, "rate": rate, "snap": snap, "killed": killed, "full": full, "processes": processes}[sys.argv[2]](place)
