"""Two sites and a long line between them, in network namespaces: what the interop test, the demo and the benchmark of boxes use.

    host 0 --- box 0 --- line --- box 1 --- host 1          Sites(weft, boxes=True)
    host 0 ------------- line ------------- host 1          Sites(weft, boxes=False)
    host 0 --- box 0 ------------ box 1 --- host 1          Sites(weft, boxes=True, line=False)

Every --- is a virtual Ethernet. The namespaces have no names and end with the process that made them; every program that is
started here is ended by close(). Run inside a namespace of one's own (enter_namespaces).
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from namespaces import SKIPPED, Place, enter_namespaces, run  # noqa: F401

MTU = 4200  # a path MTU of 4096 and all headers


class Sites:
    ADDRESSES = ("10.0.0.1", "10.0.0.2")

    def __init__(self, weft, boxes=True, delay="5ms", rate="10Gbps", loss="0", seed=1, queue="16MB", near_options=(), line=True,
                 forwarder=None, start=True, mode="roce", mtu=MTU):
        self.weft, self.boxed, self.started = str(weft), boxes, []
        self.folder = tempfile.TemporaryDirectory(prefix="weft-wan-")
        self.status = pathlib.Path(self.folder.name)
        self.secret = self.status / "secret"
        self.secret.write_bytes(os.urandom(32))
        self.secret.chmod(0o600)
        self.hosts = [Place(), Place()]
        self.line_place = Place()
        self.box_places = [Place(), Place()] if boxes else []
        self.boxes = [None, None]
        self.options = list(near_options)
        self.rate = rate
        self.mode = mode
        self.mtu = mtu
        for i, host in enumerate(self.hosts):
            end = (self.line_place, f"end{i}")
            if boxes:
                self.cable((host, "eth0"), (self.box_places[i], "near"))
                if line:
                    self.cable((self.box_places[i], "far"), end)
            else:
                self.cable((host, "eth0"), end)
            host.ip("addr", "add", f"{self.ADDRESSES[i]}/24", "dev", "eth0")
        self.line = None
        if boxes and not line:
            self.cable(*((place, "far") for place in self.box_places))
        if forwarder:
            self.boxes = [self.start(place, forwarder, "near", "far") for place in self.box_places]
            return
        if line:
            self.line = self.start(self.line_place, self.weft, "wan", "link", "--between", "end0", "end1", "--delay", delay, "--rate", rate,
                                   "--loss", loss, "--seed", seed, "--queue", queue, "--json", errors=subprocess.DEVNULL)
        if boxes and start:
            for i in range(2):
                self.start_box(i)

    def cable(self, a, b):
        run("ip", "link", "add", "left", "type", "veth", "peer", "name", "right")
        for (place, name), temporary in ((a, "left"), (b, "right")):
            run("ip", "link", "set", temporary, "netns", str(place.holder.pid))
            place.ip("link", "set", temporary, "name", name)
            place.ip("link", "set", name, "mtu", str(self.mtu), "up")

    def start(self, place, *command, errors=subprocess.STDOUT, environment=None):
        p = subprocess.Popen(place.inside(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                             start_new_session=True, env={**os.environ, **(environment or {})})
        self.started.append(p)
        return p

    def start_box(self, i, may_fail=False):
        """None, or with may_fail what it said instead of starting."""
        rate = ["--rate", self.rate]
        self.boxes[i] = self.start(self.box_places[i], self.weft, "wan", "box", "--near", "near", "--far", "far", "--partner-secret",
                                   self.secret, "--status", self.status, *rate, *self.options)
        # It stands when it has written its status.
        deadline = time.monotonic() + 10
        while not (self.status / f"box-{self.boxes[i].pid}.json").exists():
            if self.boxes[i].poll() is not None and may_fail:
                return self.boxes[i].stdout.read()
            if self.boxes[i].poll() is not None or time.monotonic() > deadline:
                sys.exit(f"box {i} did not start: {self.boxes[i].stdout.read()}")
            time.sleep(0.02)
        return None

    def stat(self, i):
        """What box `i` said last."""
        return json.loads((self.status / f"box-{self.boxes[i].pid}.json").read_text())

    def verbs(self, i, command, options=()):
        """A verbs program at site `i`."""
        return self.start(self.hosts[i], self.weft, "run", "--addr", self.ADDRESSES[i], "--mode", self.mode, *options, "--", *command)

    def end(self, p, how=signal.SIGTERM, seconds=15):
        """Its output and exit code."""
        if p.poll() is None:
            p.send_signal(how)
        return finish(p, seconds)

    def pair(self, command, seconds, tries=1):
        """A server at site 0, the same command with its address at site 1: (exit codes are 0, output of both)."""
        deadline = time.monotonic() + seconds
        server = self.verbs(0, command)
        while True:
            time.sleep(0.2)
            client = self.verbs(1, [*command, self.ADDRESSES[0]])
            text, code = finish(client, deadline - time.monotonic())
            early = "onnection refused" in text or "Couldn't connect" in text
            if code == 0 or not early or server.poll() is not None or time.monotonic() > deadline:
                break
        server_text, server_code = finish(server, min(5.0, max(0.5, deadline - time.monotonic())))
        return code == 0 and server_code == 0, f"client, exit code {code}:\n{text}\nserver, exit code {server_code}:\n{server_text}"

    def close(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()
            if p.stdout:
                p.stdout.close()
        for place in (*self.hosts, self.line_place, *self.box_places):
            place.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def finish(process, seconds):
    """Its output; a process that outlives its time is killed and reported as such."""
    try:
        return process.communicate(timeout=max(seconds, 0.1))[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + "\nkilled: it did not end in time\n", -1


def goodput(text, size):
    """Gb/s of a perftest bandwidth program with --report_gbits, or None."""
    found = re.search(rf"^\s*{size}\s+\d+\s+[\d.]+\s+([\d.]+)\s", text, re.MULTILINE)
    return float(found[1]) if found else None
