#!/usr/bin/env python3
"""What a verbs program sees of faults that are not the network's losses, and that nothing of it hangs or is left behind.

    run_ends.py WEFT END FAULT [--mode roce] [--wire udp]

END is the program of end.cc. Each fault is a function here; its sentence says what has to be seen. Everything happens in network
namespaces of the test's own; where none may be made the exit code is 77.
"""
import argparse
import errno
import re
import resource
import signal
import subprocess
import sys
import time

from ends import Cable, Ends, Failed, pages_of
from namespaces import enter_namespaces, run

RNR_DELAY = 0.00128  # seconds: min_rnr_timer 14, as end.cc has it
EXCEEDED = "completed transport retry counter exceeded"
# A request fails after its first try and its retries, each at most four times the verbs time-out (4.096 us << code).
SHORT = {"timeout": 13, "retries": 2}
LONG = {"timeout": 19, "retries": 7}


def fails_after(terms):
    one = 4.096e-6 * 2 ** terms["timeout"]
    return one * (1 + terms["retries"])


def on_loopback(ends, a, *more):
    run("ip", "link", "set", "lo", "up")
    options = ["--mode", a.mode, "--wire", a.wire, *more]
    return ends.start("127.0.0.1", *options), ends.start("127.0.0.2", *options)


def start_only(command):
    """A command that reads nothing and ends by itself."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


def fails(end, terms):
    """Its request, in the time that its retries take and no earlier; the rest is a busy machine's."""
    since = time.monotonic()
    end.does("post write 1", "posted")
    end.does(f"poll {int(fails_after(terms) * 8000) + 10000}", EXCEEDED)
    took = time.monotonic() - since
    if took < fails_after(terms):
        raise Failed(f"{end.address}: its request failed after {took:.3f} s, within its {terms['retries']} retries")
    end.does("state", "ERR")


def never_posts(ends, a):
    """A receiver that never posts a receive: RNR_RETRY_EXC_ERR after rnr_retry delays; the receiver sees nothing."""
    sender, receiver = on_loopback(ends, a)
    ends.connect(sender, receiver, rnr_retries=3)
    since = time.monotonic()
    sender.does("post send 1", "posted")
    sender.does("poll 10000", "completed RNR retry counter exceeded")
    took = time.monotonic() - since
    if took < 3 * RNR_DELAY:
        raise Failed(f"it failed after {took * 1000:.1f} ms, within three delays")
    sender.does("state", "ERR")
    receiver.does("state", "RTS")
    receiver.does("event 0", "nothing")
    receiver.does("poll 0", "nothing")
    ends.close()
    sender.counted(nak_rnr=4)


def posts_late(ends, a):
    """rnr_retry 7: the request waits, a thousand delays and more, for a receive; then it succeeds."""
    sender, receiver = on_loopback(ends, a)
    ends.connect(sender, receiver, rnr_retries=7)
    sender.does("fill 0 77 32", "filled")
    sender.does("post send 1", "posted")
    sender.does("poll 1500", "nothing")
    sender.does("state", "RTS")
    receiver.does("receive 1", "posted")
    sender.succeeds()
    receiver.succeeds()
    receiver.does("look 4096 77 32", "same")
    ends.work(sender, receiver, 78)
    ends.close()
    sender.counted(nak_rnr=9)


def overrun(ends, a):
    """A receiver whose completion queue runs over: CQ_ERR and QP_FATAL there, what lies in the queue, and no more; the sender's
    requests time out."""
    run("ip", "link", "set", "lo", "up")
    options = ["--mode", a.mode, "--wire", a.wire]
    sender, receiver = ends.start("127.0.0.1", *options), ends.start("127.0.0.2", *options, entries=2)
    ends.connect(sender, receiver, **SHORT)
    receiver.does("receive 8", "posted")
    sender.does("post send 8", "posted")
    receiver.does("event 10000", "told CQ error")
    receiver.does("event 10000", "told local work queue catastrophic error")
    receiver.does("state", "ERR")
    receiver.succeeds(2)
    receiver.does("poll 0", "overrun")
    answers = [sender.ask("poll 20000") for _ in range(8)]
    good = answers.count("completed success")
    if good > 2 or answers[good] != EXCEEDED or set(answers[good + 1:]) - {"completed Work Request Flushed Error"}:
        raise Failed(f"the sender's requests: {answers}")
    ends.close()
    receiver.counted(cq_overflow=1)


def stopped(ends, a):
    """A peer that is stopped and goes on: requests take as long as that, and succeed."""
    x, y = on_loopback(ends, a)
    ends.connect(x, y, **LONG)
    ends.work(x, y, 1)
    y.process.send_signal(signal.SIGSTOP)
    x.does("post write 8", "posted")
    time.sleep(1)
    _, shown = start_only([a.weft, "stat", "-p"])
    y.process.send_signal(signal.SIGCONT)
    for end, stops in ((x, False), (y, True)):
        row = re.search(rf"\[{end.pid}\]: NIC {end.address},.*", shown)
        if row is None or row[0].endswith("; stopped") != stops:
            raise Failed(f"weft stat does not say who is stopped ({y.pid}):\n{shown}")
    x.succeeds(8)
    ends.work(x, y, 2)
    ends.close()


def killed(ends, a):
    """A peer that dies: RETRY_EXC_ERR; its names are free, and its successor at the same address can be connected to."""
    x, y = on_loopback(ends, a)
    ends.connect(x, y, **SHORT)
    ends.work(x, y, 1)
    y.process.kill()
    y.process.wait()
    fails(x, SHORT)
    next_one = ends.start(y.address, "--mode", a.mode, "--wire", a.wire)
    if pages_of(y.pid):
        raise Failed(f"whoever opens a device removes the pages of the dead, but not {pages_of(y.pid)}")
    x.does("close", "closed")
    x.open()
    ends.connect(x, next_one)
    ends.work(x, next_one, 2)
    ends.close(y)


def corrupted(ends, a):
    """One bit in every tenth frame flips, in both directions: no byte of any message is another, and no request fails."""
    x, y = on_loopback(ends, a, "--corrupt", "10%", "--seed", "3")
    ends.connect(x, y, timeout=17)
    for byte in range(1, 201):
        ends.work(x, y, byte)
    ends.close()
    for end in (x, y):
        end.counted(impaired_corrupted=20, rx_icrc=10, tx_retransmitted=1)


def down_and_up(ends, a):
    """An interface that goes down and comes up within the retries: requests of both sides wait, and succeed."""
    cable = Cable(ends, a, v6=a.v6)
    x, y = cable.x, cable.y
    ends.connect(x, y, **LONG)
    ends.work(x, y, 1)
    cable.set("down")
    for end in (x, y):
        end.does("fill 0 2 32", "filled")
        end.does("post write 8", "posted")
    before = [end.processor() for end in (x, y)]
    time.sleep(1)
    used = [end.processor() - b for end, b in zip((x, y), before)]
    if max(used) > 0.5:
        raise Failed(f"sleeping programs used {used} s of a second in which their interface was down")
    for end in (x, y):
        end.does("poll 0", "nothing")
        end.does("state", "RTS")
    cable.set("up")
    for end in (x, y):
        end.succeeds(8, 30000)
        end.does("look 4096 2 32", "same")
    ends.work(x, y, 3)
    ends.close()
    x.counted(send_failed=1, tx_retransmitted=1)
    y.counted(tx_retransmitted=1)


def down(ends, a):
    """An interface that stays down: RETRY_EXC_ERR at both sides; afterwards both connect anew in the same processes."""
    cable = Cable(ends, a, v6=a.v6)
    x, y = cable.x, cable.y
    ends.connect(x, y, **SHORT)
    ends.work(x, y, 1)
    cable.set("down")
    fails(x, SHORT)
    fails(y, SHORT)
    for end in (x, y):
        end.does("event 0", "nothing")
        end.closes()
    cable.set("up")
    for end in (x, y):
        end.open()
    ends.connect(x, y, **LONG)
    ends.work(x, y, 2)
    ends.close()
    x.counted(send_failed=1, retries_charged=1)
    y.counted(retries_charged=1)


def unmapped(ends, a):
    """Memory that is unmapped while it is registered: the peer's WRITE there is REM_OP_ERR and tells the owner QP_FATAL, the owner's
    own WRITE from there LOC_PROT_ERR. Nobody's process ends."""
    for owner_writes in (False, True):
        x, y = on_loopback(ends, a)
        ends.connect(x, y)
        ends.work(x, y, 1)
        y.does("unmap", "unmapped")
        if owner_writes:
            y.does("post write 1", "posted")
            y.does("poll 10000", "completed local protection error")
        else:
            x.does("post write 1", "posted")
            x.does("poll 10000", "completed remote operation error")
            y.does("event 10000", "told local work queue catastrophic error")
        y.does("state", "ERR")
        ends.close()
        ends.all.clear()


def no_descriptors(ends, a):
    """Two programs that have run out of descriptors once they are connected: what needs one fails with EMFILE, and the first train
    between them, which would want a ring in shared memory, goes by UDP."""
    x, y = on_loopback(ends, a)
    for end in (x, y):
        resource.prlimit(end.pid, resource.RLIMIT_NOFILE, (3, resource.prlimit(end.pid, resource.RLIMIT_NOFILE)[1]))
    ends.connect(x, y)
    ends.work(x, y, 1)
    for end in (x, y):
        end.does("channel", f"failed ibv_create_comp_channel errno {errno.EMFILE}")
        resource.prlimit(end.pid, resource.RLIMIT_NOFILE, (1024, resource.prlimit(end.pid, resource.RLIMIT_NOFILE)[1]))
        end.does("channel", "made")
    for byte in range(2, 22):  # a refused ring is asked for again after a while
        ends.work(x, y, byte)
        time.sleep(0.1)
    ends.close()
    if a.wire == "auto":
        x.counted(shared_sent=1)


MAY_LOCK_NOTHING = ["prlimit", "--memlock=0:0", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"]


def no_locked_memory(ends, a):
    """Programs that may lock no memory: registered memory is not locked, so nothing is refused. The wire xdp alone locks some, of its
    own: there `weft run` says how much, and starts nothing."""
    if a.wire == "xdp":
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "far")
        run("ip", "addr", "add", "10.0.0.1/24", "dev", "eth0")
        run("ip", "link", "set", "eth0", "up")
        code, text = start_only([*MAY_LOCK_NOTHING, a.weft, "run", "--addr", "10.0.0.1", "--wire", "xdp", "--", a.end])
        if code != 2 or not re.fullmatch(r"weft: interface eth0: [^\n]* 32768 KiB of locked memory[^\n]*ulimit -l[^\n]*\n", text):
            raise Failed(f"exit code {code}: {text}")
        return
    cable = Cable(ends, a, MAY_LOCK_NOTHING)
    ends.connect(cable.x, cable.y)
    ends.work(cable.x, cable.y, 1)
    ends.close()


def few_descriptors(ends, a):
    """A program that is started with too few descriptors for a device: a sentence, never a crash; with a few more it runs."""
    run("ip", "link", "set", "lo", "up")
    for most in range(3, 64):
        code, text = start_only(["prlimit", f"--nofile={most}:{most}", a.weft, "run", "--wire", a.wire, "--", "ibv_devinfo"])
        if code == 0 and "weft0" in text:
            if most < 10:
                raise Failed(f"{most} descriptors were enough, so this shows nothing")
            return
        if code < 0 or "oo many open files" not in text and "rror while loading shared libraries" not in text:
            raise Failed(f"with {most} descriptors: exit code {code}: {text}")
    raise Failed("64 descriptors are not enough")


FAULTS = {f.__name__: f for f in (never_posts, posts_late, overrun, stopped, killed, corrupted, unmapped, down_and_up, down, no_descriptors, few_descriptors, no_locked_memory)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("end")
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--mode", default="roce")
    parser.add_argument("--wire", default="udp")
    parser.add_argument("--v6", action="store_true", help="over IPv6, where there is a cable")
    a = parser.parse_args(enter_namespaces(__file__, sys.argv[1:]))
    try:
        with Ends(a.weft, a.end) as ends:
            FAULTS[a.fault](ends, a)
    except Failed as failed:
        print(f"{a.fault}, {a.mode}, {a.wire}: {failed}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
