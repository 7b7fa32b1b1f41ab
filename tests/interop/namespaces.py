"""Network namespaces of a test's own: whether they may be made here, a program run inside one, and one held open as a place for others."""
import os
import shutil
import subprocess
import sys
import time

SKIPPED = 77


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout.strip()}")
    return done.stdout


def namespaces_refused():
    """The way to make them ([] as root), or a sentence that says why there is none."""
    reason = ""
    for way in ([], ["--user", "--map-root-user"]):
        try:
            done = subprocess.run(["unshare", *way, "--net", "ip", "link", "add", "probe", "type", "veth"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except FileNotFoundError:
            return None, "unshare is not installed"
        if done.returncode == 0:
            return way, None
        reason = done.stdout.strip()
    return None, reason


def enter_namespaces(script, arguments, programs=()):
    """Runs `script` again in a namespace of its own; returns only inside it. Where that may not be: ends with SKIPPED."""
    if "--inside" in arguments:
        return [a for a in arguments if a != "--inside"]
    for program in (*programs, "unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed; ./dev setup installs it")
            sys.exit(SKIPPED)
    way, reason = namespaces_refused()
    if way is None:
        print(f"skipped: network namespaces may not be made here ({reason})")
        sys.exit(SKIPPED)
    sys.exit(subprocess.call(["unshare", *way, "--net", sys.executable, script, "--inside", *arguments]))


class Place:
    """A namespace, held open by a process that reads from us and so ends with us."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            if self.holder.poll() is not None:
                sys.exit("unshare --net failed")
            time.sleep(0.01)
        self.ip("link", "set", "lo", "up")

    def inside(self, *command):
        return ["nsenter", "--net", "-t", str(self.holder.pid), "--", *map(str, command)]

    def ip(self, *arguments):
        return run(*self.inside("ip", *arguments))

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdin.close()
