#!/usr/bin/env python3
"""Eight processes on one address, of which some are killed in random order while all of them move data.

    run_crowd.py WEFT --seed 3

Four pairs, each a server and a client: two of rping, which compares every byte (-V), and two of ib_write_bw. One pair of each
kind is killed, process by process, at random times. The others must not notice: ib_write_bw ends with exit code 0 and few
packets sent again, and rping goes on and has found no wrong byte. Then a new pair connects on the same address.

All of it is on loopback, on an address that is derived from this process.
"""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

SKIPPED = 77
SECONDS = 6
# Each death moves at most one other process's socket, which then misses what lies in the wrong one's queue for a moment: a
# window of one queue pair, which roce sends again as a whole.
MOST_RESENT_PER_DEATH = 1024


def start(weft, address, wire, mode, command):
    return subprocess.Popen([weft, "run", "--addr", address, "--wire", wire, "--mode", mode, "--stats", "on", "--", *command],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)


def kill(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def counter(text, name):
    found = re.search(rf"weft: {name} +(\d+) ", text)
    return int(found[1]) if found else 0


class Pair:
    def __init__(self, a, address, kind, mode, port):
        self.kind = kind
        if kind == "rping":
            base = ["rping", "-a", address, "-p", str(port), "-V", "-S", "4096", "-C", "100000000"]
            server, client = [*base, "-s"], [*base, "-c"]
        else:
            base = ["ib_write_bw", "-R", "-F", "-p", str(port), "-D", str(SECONDS)]
            server, client = base, [*base, address]
        self.server = start(a.weft, address, a.wire, mode, server)
        time.sleep(0.4)
        self.client = start(a.weft, address, a.wire, mode, client)
        self.processes = [self.server, self.client]


def crowd(a):
    chance = random.Random(a.seed)
    address = f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}.9"
    problems = []
    pairs = [Pair(a, address, kind, mode, 19000 + i)
             for i, (kind, mode) in enumerate([("rping", "irn"), ("rping", "roce"), ("perf", "roce"), ("perf", "irn")])]
    try:
        doomed = [pairs[chance.randrange(2)], pairs[2 + chance.randrange(2)]]
        rest = [p for p in pairs if p not in doomed]
        time.sleep(0.5)
        for pair in pairs:
            for process in pair.processes:
                if process.poll() is not None:
                    problems.append(f"{pair.kind} did not begin:\n{process.communicate()[0]}")
        if problems:
            return problems
        victims = [p for pair in doomed for p in pair.processes]
        chance.shuffle(victims)
        for victim in victims:
            time.sleep(chance.uniform(0.1, 0.8))
            kill(victim)
        for pair in rest:
            if pair.kind == "rping":
                continue
            for process in (pair.client, pair.server):
                try:
                    text = process.communicate(timeout=SECONDS + 20)[0]
                except subprocess.TimeoutExpired:
                    problems.append("ib_write_bw hung:\n" + kill(process))
                    continue
                resent = counter(text, "tx_retransmitted")
                print(f"ib_write_bw: sent {counter(text, 'tx_packets')}, again {resent}, handed over {counter(text, 'handed_over')}, "
                      f"taken over {counter(text, 'taken_over')}, of those for others lost {counter(text, 'handed_lost')}")
                if process.returncode != 0:
                    problems.append(f"ib_write_bw ended with {process.returncode}:\n{text}")
                elif resent > MOST_RESENT_PER_DEATH * len(victims):
                    problems.append(f"ib_write_bw sent {resent} packets again:\n{text}")
        for pair in rest:
            if pair.kind != "rping":
                continue
            ended = [p for p in pair.processes if p.poll() is not None]
            text = "".join(kill(p) for p in pair.processes)
            if ended or "mismatch" in text or "error" in text:
                problems.append(f"rping did not go on:\n{text[-3000:]}")
        late = Pair(a, address, "rping", "irn", 19100)
        pairs.append(late)
        time.sleep(1)
        if any(p.poll() is not None for p in late.processes):
            problems.append("a new pair did not connect:\n" + "".join(kill(p) for p in late.processes)[-3000:])
        return problems
    finally:
        for pair in pairs:
            for process in pair.processes:
                if process.poll() is None:
                    kill(process)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wire", default="auto")
    a = parser.parse_args()
    for program in ("rping", "ib_write_bw"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed; ./dev setup installs it")
            return SKIPPED
    problems = crowd(a)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
