"""Two programs of end.cc that a test holds by their pipes, and what it looks for afterwards: descriptors, threads, pages in
/dev/shm and names in the register of processes (docs/ARCHITECTURE.md#several-processes-on-one-address) that nobody gave back.

    with Ends(weft, program) as ends:
        a, b = ends.start("127.0.0.1"), ends.start("127.0.0.2")
        ends.connect(a, b)
        a.does("post write 1", "posted")
        a.does("poll 1000", "completed success")
        ends.close()                       # and judges what is left
"""
import os
import re
import select
import subprocess
import tempfile
import time

from namespaces import Place, run

PATIENCE = 30  # seconds for an answer beyond what the command itself waits


class Failed(Exception):
    """What was not as it should be, in a sentence."""


class End:
    def __init__(self, weft, program, address, options=(), inside=None):
        self.address = address
        self.log = tempfile.TemporaryFile("w+")
        command = [weft, "run", "--addr", address, "--stats", "on", *options, "--", program]
        self.process = subprocess.Popen(inside(*command) if inside else command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, start_new_session=True)
        self.pid = self.process.pid
        self.said = b""
        self.number = None
        self.does("nothing", "failed")  # it runs, and is no longer the command that starts it
        self.at_first = self.has()

    def say(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, command, seconds=PATIENCE):
        until = time.monotonic() + seconds
        while b"\n" not in self.said:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not more:
                raise Failed(f"{self.address}: '{command}': " + ("it has ended" if ready else "no answer"))
            self.said += more
        line, self.said = self.said.split(b"\n", 1)
        return line.decode()

    def ask(self, command):
        waits = re.match(r"(?:poll|event) (\d+)", command)
        self.say(command)
        return self.hear(command, PATIENCE + (int(waits[1]) / 1000 if waits else 0))

    def does(self, command, answer):
        """It answers with these words, or what begins with them."""
        heard = self.ask(command)
        if not heard.startswith(answer):
            raise Failed(f"{self.address}: '{command}': {heard}; expected: {answer}")
        return heard

    def succeeds(self, count=1, milliseconds=10000):
        for _ in range(count):
            self.does(f"poll {milliseconds}", "completed success")

    def open(self, entries=64):
        words = self.does(f"open {entries}", "open").split()
        self.number, self.gid, self.key, self.place = int(words[1]), words[2], int(words[3]), int(words[4])

    def has(self):
        """Its descriptors, by what they lead to; its threads; its pages."""
        folder = f"/proc/{self.pid}"
        open_files = []
        for fd in os.listdir(f"{folder}/fd"):
            try:
                open_files.append(re.sub(r"\[\d+\]", "", os.readlink(f"{folder}/fd/{fd}")))
            except FileNotFoundError:
                pass
        return {"descriptors": sorted(open_files), "threads": len(os.listdir(f"{folder}/task")), "pages": pages_of(self.pid)}

    def processor(self):
        """Seconds that it has used."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def closes(self):
        """The device."""
        self.does("close", "closed")
        self.gives_back()

    def gives_back(self):
        """It has what it had before it opened the device."""
        until = time.monotonic() + 5
        while self.has() != self.at_first and time.monotonic() < until:
            time.sleep(0.05)
        if self.has() != self.at_first:
            raise Failed(f"{self.address}: before it opened the device it had {self.at_first}, and after it closed it {self.has()}")

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def counters(self):
        """The sums over all devices that it has closed."""
        sums = {}
        for name, value in re.findall(r"^weft: (\w+) +(\d+) ", self.text(), re.MULTILINE):
            sums[name] = sums.get(name, 0) + int(value)
        return sums

    def counted(self, **least):
        """At least so many of each."""
        got = self.counters()
        few = {name: got.get(name, 0) for name, count in least.items() if got.get(name, 0) < count}
        if few:
            raise Failed(f"{self.address} counted {few}, and not at least {({name: least[name] for name in few})}")


def pages_of(pid):
    return sorted(n for n in os.listdir("/dev/shm") if n.startswith("weft-") and re.search(rf"\b{pid}\b", n))


def names_in(pid):
    """What processes of the network namespace of this one are called in the register, our devices' names only."""
    with open(f"/proc/{pid}/net/unix", encoding="ascii", errors="replace") as f:
        return sorted(set(re.findall(r"@(weft/\S+/slot/\d+)", f.read())))


class Ends:
    def __init__(self, weft, program):
        self.weft, self.program = weft, program
        self.all = []

    def __enter__(self):
        return self

    def __exit__(self, kind, what, trace):
        for end in self.all:
            if kind is not None:
                end.process.kill()
                end.process.wait()
                print(f"--- {end.address}:\n{end.text()}")
        return False

    def start(self, address, *options, inside=None, entries=64):
        end = End(self.weft, self.program, address, options, inside)
        self.all.append(end)
        end.open(entries)
        return end

    @staticmethod
    def connect(a, b, timeout=14, retries=7, rnr_retries=7):
        """Their numbers begin at 0x1000 and 0x2000."""
        for x, y, psn, peers in ((a, b, 0x1000, 0x2000), (b, a, 0x2000, 0x1000)):
            x.does(f"connect {y.number} {y.gid} {y.key} {y.place} {psn} {peers} {timeout} {retries} {rnr_retries}", "connected")

    @staticmethod
    def work(a, b, byte):
        """A WRITE each way arrives."""
        for x, y in ((a, b), (b, a)):
            x.does(f"fill 0 {byte} 32", "filled")
            x.does("post write 1", "posted")
            x.succeeds()
            y.does(f"look 4096 {byte} 32", "same")

    def close(self, *but):
        """All but those that are gone; nothing of anybody is left."""
        for end in self.all:
            if end not in but:
                end.closes()
        names = {name for end in self.all if end not in but for name in names_in(end.pid)}
        for end in self.all:
            end.process.stdin.close()
            code = end.process.wait(PATIENCE)
            if code != 0 and end not in but:
                raise Failed(f"{end.address}: it ended with {code}")
            if pages_of(end.pid) and end not in but:
                raise Failed(f"{end.address}: it left {pages_of(end.pid)} in /dev/shm")
        if names:
            raise Failed(f"in the register are still {sorted(names)}")


class Cable:
    """Two hosts and a virtual Ethernet between them: x on this namespace's eth0, y in another one."""

    def __init__(self, ends, a, under=(), v6=False):
        """`under`: a command that starts both programs."""
        self.place = Place()
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "far")
        run("ip", "link", "set", "far", "netns", str(self.place.holder.pid))
        self.place.ip("link", "set", "far", "name", "eth0")
        self.prefix, self.rest = ("fd00::", ["/64", "nodad"]) if v6 else ("10.0.0.", ["/24"])
        self.set("up")
        self.place.ip("addr", "add", f"{self.prefix}2{self.rest[0]}", "dev", "eth0", *self.rest[1:])
        self.place.ip("link", "set", "eth0", "up")
        options = ["--mode", a.mode, "--wire", a.wire]
        self.x = ends.start(f"{self.prefix}1", *options, inside=lambda *command: [*under, *command])
        self.y = ends.start(f"{self.prefix}2", *options, inside=lambda *command: self.place.inside(*under, *command))

    def set(self, state):
        """Our interface; the system takes an address of IPv6 from one that goes down, so who brings it up gives it again."""
        run("ip", "link", "set", "eth0", state)
        if state == "up":
            run("ip", "addr", "replace", f"{self.prefix}1{self.rest[0]}", "dev", "eth0", *self.rest[1:])
