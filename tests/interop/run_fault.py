#!/usr/bin/env python3
"""What an unmodified program sees of a peer that stops or dies in the middle of its traffic, and of a network that loses
three packets in ten.

    run_fault.py WEFT --fault stopped|killed|heavy_loss --mode roce|irn|srnic

stopped     the server is stopped for a second (SIGSTOP) and goes on: both programs end as if nothing had happened, for the
            verbs time-out is longer than that.
killed      the server is killed: the client reports a failed completion and ends by itself, within the time that its
            retries may take, and leaves no page of statistics behind.
heavy_loss  30 % in both directions, as both programs' counters say: every message arrives.
"""
import argparse
import os
import re
import shutil
import signal
import sys
import time

from run_pair import CLIENT, SERVER, finish, start

PORT = "18716"
SECONDS = "3"  # of traffic
# Code 20: 4.3 s before a retry is counted; 13: 34 ms; 16: 268 ms, in which a packet is sent again many times.
COMMANDS = {
    "stopped": ["ib_send_bw", "-p", PORT, "-D", SECONDS, "-u", "20"],
    "killed": ["ib_send_bw", "-p", PORT, "-D", SECONDS, "-u", "13"],
    "heavy_loss": ["ib_write_bw", "-p", PORT, "-s", "16384", "-n", "20", "-u", "16"],
}
FIRST = 1.5   # of these seconds have passed when the fault strikes
STOPPED = 1.0
NEVER_ENDED = -1  # as finish() has it
DROPPED = re.compile(r"impaired_dropped +[1-9]")
FAILED = re.compile(r"[Cc]ompletion with error|Failed status 12|transport retry counter exceeded")


def run(a, address, extra):
    loss = ["--loss", "30%", "--seed", "1"] if a.fault == "heavy_loss" else []
    return start(a.weft, ["--mode", a.mode, "--wire", "udp", *loss], address, [*COMMANDS[a.fault], *extra])


def page_of(pid):
    return [name for name in os.listdir("/dev/shm") if name.startswith("weft-") and re.search(rf"\b{pid}\b", name)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("--fault", choices=COMMANDS, required=True)
    parser.add_argument("--mode", default="roce")
    a = parser.parse_args()
    program = COMMANDS[a.fault][0]
    if shutil.which(program) is None:
        print(f"{program} is not installed; ./dev setup installs it")
        return 77
    server = run(a, SERVER, [])
    time.sleep(0.5)
    client = run(a, CLIENT, [SERVER])
    try:
        if a.fault != "heavy_loss":
            time.sleep(FIRST)
            if client.poll() is not None:
                print(f"the client had ended before the fault:\n{client.communicate()[0]}")
                return 1
        if a.fault == "stopped":
            server.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED)
            server.send_signal(signal.SIGCONT)
        if a.fault == "killed":
            server.kill()
        text, code = finish(client, 40)
        server_text, server_code = finish(server, 20)
    finally:
        for process in (server, client):
            process.kill()
    if a.fault == "killed":
        good = code not in (0, NEVER_ENDED) and FAILED.search(text)
    else:
        good = code == 0 and server_code == 0
    if a.fault == "heavy_loss":
        good = good and all(DROPPED.search(end) for end in (text, server_text))
    left = page_of(client.pid)
    if good and not left:
        return 0
    print(f"{a.fault}, {a.mode}: client {code}, server {server_code}, left in /dev/shm: {left}\n{text}\n--- server\n{server_text}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
