"""Programs that serve on loopback, for the tests of weft monitor and weft adm: each ends with its `with` block."""
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import stage
from stage import WEFT, expect, until


def name_actors(folder):
    """From here on actors have a name of their own, so that others' on this host are not in their figures."""
    name = f"actor-{os.getpid()}"
    os.symlink(stage.ACTOR, f"{folder}/{name}")
    stage.ACTOR = f"{folder}/{name}"
    return name


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url, body=None, code=200):
    try:
        with urllib.request.urlopen(url, data=body, timeout=10) as answer:
            got, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as wrong:
        got, text = wrong.code, wrong.read().decode()
    expect(got == code, url, got, text)
    return text


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


def needed(program):
    """Where it is; without it the test is skipped, and says so."""
    found = shutil.which(program)
    if found is None:
        print(f"no {program}: ./dev setup --monitor installs it")
        sys.exit(77)
    return found


class Serving:
    def __init__(self, command, ready=None, **options):
        self.process = subprocess.Popen(list(map(str, command)), text=True, **options)
        if ready is not None:
            self.or_end(lambda: until(f"{command[0]} answers", lambda: self.alive() and answers(ready)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def alive(self):
        expect(self.process.poll() is None, self.process.args, "ended with", self.process.returncode)
        return True

    def or_end(self, begin):
        """Who never gets into the `with` block ends here."""
        try:
            begin()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def stop(self, code=None):
        self.process.terminate()
        got = self.process.wait(timeout=30)
        expect(code is None or got == code, self.process.args, "ended with", got)


class Monitor(Serving):
    """weft monitor on a port that is free; `base` is its address."""

    def __init__(self, *words):
        super().__init__([WEFT, "monitor", "--listen", "127.0.0.1:0", "--every", "0.1", *words], stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        self.or_end(lambda: expect(line.startswith("serving http://127.0.0.1:") and line.endswith("/metrics\n"), line))
        self.base = line.split()[1].removesuffix("/metrics")
        self.place = self.base.removeprefix("http://")

    def metrics(self):
        """Values by series."""
        lines = [l for l in fetch(self.base + "/metrics").splitlines() if not l.startswith("#")]
        return {l.rsplit(" ", 1)[0]: float(l.rsplit(" ", 1)[1]) for l in lines}

    def get(self, path, code=200):
        return json.loads(fetch(self.base + path, code=code))
