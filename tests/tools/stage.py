"""What the tests of the tools share: actors under `weft run` on loopback addresses, and `weft` itself."""
import json
import pathlib
import subprocess
import sys
import time

WEFT, ACTOR = sys.argv[1:3]


class Actor:
    """An actor that is ready; it ends with the `with` block."""

    def __init__(self, address, *words, options=()):
        self.process = subprocess.Popen([WEFT, "run", "--addr", address, *options, "--", ACTOR, *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.pid = self.process.pid  # weft run becomes the program
        first = self.process.stdout.readline()
        if first != "ready\n":
            self.process.kill()
            sys.exit(f"actor {words}: {first!r} {self.process.stdout.read()!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def finish(self):
        out, _ = self.process.communicate(timeout=60)
        return out


def weft(*words, code=0, options=(), seconds=60):
    done = subprocess.run([WEFT, *options, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds)
    if done.returncode not in (code if isinstance(code, tuple) else (code,)):
        sys.exit(f"weft {words}: code {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def pages(pid):
    return json.loads(weft("stat", "-j", "--pid", pid))["processes"]


def until(what, see, seconds=20):
    """Waits for something to be true; says what when it is not."""
    end = time.monotonic() + seconds
    while not see():
        if time.monotonic() > end:
            sys.exit(f"it never happened: {what}")
        time.sleep(0.05)


def expect(condition, *what):
    if not condition:
        sys.exit("not so: " + " ".join(map(str, what)))


def shm(pid):
    return list(pathlib.Path("/dev/shm").glob(f"weft-*-{pid}-*"))
