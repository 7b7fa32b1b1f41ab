#!/usr/bin/env python3
"""Two unmodified verbs programs over weft: a server on 127.0.0.1, its client on 127.0.0.2.

    run_pair.py WEFT --mode irn --loss 1% -- ib_write_bw -n 500
    run_pair.py WEFT -- rping -s -a @SERVER :: rping -c -a @SERVER

Behind `::` stands what the client runs, if it is not the server's command and its address; @SERVER is that address.

With --one-address both have the server's. With --over v6 that is ::1, and with --over both the NIC has 127.0.0.1 and ::1, while a
program's own TCP, and so @SERVER, stays IPv4.

Both must end with exit code 0 within the time limit. What the client prints is shown on failure, and a
table of `weft --stats on` with it. The impairments' seed is fixed, so that a failure repeats as far as
the machine's own timing lets it.

--device-files is weft run's.

--tries is for streams over UC and UD: nobody tells the sender that the receiver has no time just now, so on a busy
machine its socket may overflow, and perftest then waits for ever for what was lost.
"""
import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

SERVER, CLIENT = "127.0.0.1", "127.0.0.2"


V6 = "::1"


def start(weft, options, address, command):
    return subprocess.Popen(
        [weft, "run", "--addr", address, "--stats", "on", *options, "--", *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True)


def finish(process, seconds):
    """Its output; a process that outlives its time is killed and reported as such."""
    try:
        return process.communicate(timeout=max(seconds, 0.1))[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + "\nkilled: it did not end in time\n", -1


# Groups and the connection manager's messages go by UDP, and these send nothing else.
BY_UDP = {"mckey", "cmtime"}


def commands(words):
    """What server and client run."""
    words = [word.replace("@SERVER", SERVER) for word in words]
    if "::" not in words:
        return words, [*words, SERVER]
    at = words.index("::")
    return words[:at], words[at + 1:]


def run_once(a, command):
    serve, ask = commands(command)
    options = ["--mode", a.mode, "--loss", a.loss, "--wire", a.wire, "--seed", "7", *(["--shards", a.shards] if a.shards else []), *(["--device-files"] if a.device_files else [])]
    deadline = time.monotonic() + a.seconds
    serving = {"v4": SERVER, "v6": V6, "both": f"{SERVER},{V6}"}[a.over]
    server = start(a.weft, options, serving, serve)
    # The server listens on a TCP port before it does anything that takes long; a client that comes too
    # early is refused at once and tries again.
    while True:
        time.sleep(0.2)
        client = start(a.weft, options, serving if a.one_address or a.over != "v4" else CLIENT, ask)
        text, code = finish(client, deadline - time.monotonic())
        early = "onnection refused" in text or "Couldn't connect" in text or re.search(r"REJECTED[,;] error:? 8", text)
        if code == 0 or not early or server.poll() is not None or time.monotonic() > deadline:
            break
    if a.server_stays and code == 0:
        still_there = server.poll() is None
        os.killpg(server.pid, signal.SIGTERM)
        server_text = server.communicate()[0]
        server_code = 0 if still_there else server.returncode
    else:
        server_text, server_code = finish(server, min(5.0, deadline - time.monotonic()))
    if code == 0 and server_code == 0 and not a.keeps_device and a.loss not in ("0", "0%") and "impaired_frames" not in text:
        print(f"--stats does not say what the impairments did:\n{text}")
        return False
    shares = a.wire == "shm" or (a.wire == "auto" and a.over != "both" and not BY_UDP & set(ask))
    if code == 0 and shares and not a.keeps_device and not re.search(r"shared_sent +[1-9]", text):
        print(f"--stats does not say that anything went through shared memory:\n{text}")
        return False
    if code == 0 and server_code == 0:
        print(text)
        return True
    print(f"client, exit code {code}:\n{text}\nserver, exit code {server_code}:\n{server_text}")
    return False


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind((V6, 0))
    except OSError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("--mode", default="roce")
    parser.add_argument("--loss", default="0")
    parser.add_argument("--wire", default="auto")
    parser.add_argument("--shards", help="of both ends")
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--server-stays", action="store_true", help="the server serves for ever")
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--keeps-device", action="store_true", help="it never closes its device, so there is no table")
    parser.add_argument("--device-files", action="store_true", help="show both /dev/infiniband")
    parser.add_argument("--over", choices=("v4", "v6", "both"), default="v4", help="the families of the NICs' addresses")
    parser.add_argument("--one-address", action="store_true", help="two processes of one address")
    split = sys.argv.index("--")
    a = parser.parse_args(sys.argv[1:split])
    command = sys.argv[split + 1:]
    while command[0] in ("--server-stays", "--one-address", "--device-files", "--keeps-device"):
        vars(a)[command[0][2:].replace("-", "_")] = True
        del command[0]
    program = next(word for word in command if word != "env" and "=" not in word)
    if shutil.which(program) is None:
        print(f"skipped: {program} is not installed; ./dev setup installs it")
        return 77
    if a.over != "v4" and not has_ipv6():
        print("skipped: this machine has no IPv6 on its loopback interface")
        return 77
    return 0 if any(run_once(a, command) for _ in range(a.tries)) else 1


if __name__ == "__main__":
    sys.exit(main())
