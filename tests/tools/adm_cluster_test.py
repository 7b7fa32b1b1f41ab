"""weft adm over etcd: parameters reach the programs of a host, etcd is lost and comes back, and nobody loses what he has."""
import base64
import json
import os
import subprocess
import tempfile

from serving import Serving, fetch, free_port, needed
from stage import WEFT, Actor, expect, pages, until, weft

ETCD = needed("etcd")


def parameter(actor, name):
    return next(p for p in pages(actor.pid) if p["kind"] == "channels")["parameter"][0][name]


def refusal(code, *words):
    done = subprocess.run([WEFT, "adm", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    expect(done.returncode == code and done.stderr.count("\n") == 1, words, done)
    return done.stderr


def etcd(folder, port, peers):
    here = f"http://127.0.0.1:{port}"
    return Serving([ETCD, "--name", "one", "--data-dir", f"{folder}/etcd", "--listen-client-urls", here, "--advertise-client-urls", here,
                    "--listen-peer-urls", f"http://127.0.0.1:{peers}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}",
                    "--initial-cluster", f"one=http://127.0.0.1:{peers}"], here + "/health",
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def put(here, key, value):
    def b64(text):
        return base64.b64encode(text.encode()).decode()
    fetch(here + "/v3/kv/put", json.dumps({"key": b64(key), "value": b64(value)}).encode())


with tempfile.TemporaryDirectory() as folder:
    port, peers = free_port(), free_port()
    here = f"http://127.0.0.1:{port}"
    os.environ["WEFT_PARAMETERS"] = f"{folder}/weft/parameters"
    log = open(f"{folder}/agent.log", "w+")

    def said():
        return open(log.name).read()

    server = etcd(folder, port, peers)
    try:
        weft("adm", "set", "--etcd", here, "slow_threshold=1000")
        # The agent asks a member that is not there first.
        with Actor("127.0.4.41", "rest", 100) as program, \
                Serving([WEFT, "adm", "agent", "--etcd", f"http://127.0.0.1:{free_port()}", "--etcd", here], stdout=log, stderr=log) as agent:
            until("what was set before reaches the program", lambda: parameter(program, "slow_threshold") == 1000)
            weft("adm", "set", "--etcd", here, "nop_us=4000", "weft_tools_acto/slow_threshold=2000")
            until("a change, too", lambda: (parameter(program, "nop_us"), parameter(program, "slow_threshold")) == (4000, 2000))
            got = json.loads(weft("adm", "get", "-j", "--etcd", here))
            expect(got["settings"] == {"nop_us": 4000, "slow_threshold": 1000, "weft_tools_acto/slow_threshold": 2000}, got)
            weft("adm", "unset", "--etcd", here, "weft_tools_acto/slow_threshold")
            until("one that is unset", lambda: parameter(program, "slow_threshold") == 1000)
            # What cannot be does not get into etcd, and one who puts it there by other means is told by the agent.
            expect("depth is fixed" in refusal(2, "set", "--etcd", here, "depth=8"))
            expect("is not set" in refusal(2, "unset", "--etcd", here, "ack_delay_us"))
            put(here, "weft/parameters/slow_treshold", "1")
            put(here, "weft/parameters/keepalive_intv_ms", "2000")
            put(here, "weft/other", "1")
            until("the sound one arrives", lambda: parameter(program, "keepalive_intv_ms") == 2000)
            until("the other is named", lambda: said().count("etcd's key 'slow_treshold'") == 1)
            # The file is the agent's.
            expect("an agent keeps the parameters" in refusal(2, "set", "nop_us=1"))
            expect("another weft adm agent" in refusal(2, "agent", "--etcd", here))
            expect("kept by an agent" in weft("adm", "get"))
            watch = subprocess.Popen([WEFT, "adm", "watch", "-j", "-n", "2", "--etcd", here], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            expect(json.loads(watch.stdout.readline())["settings"]["nop_us"] == 4000)

            # etcd is lost: the agent says so once, and the program keeps what it has.
            server.process.kill()
            server.process.wait()
            until("the agent notices", lambda: "programs keep what they have" in said())
            expect("nobody answers" in refusal(1, "set", "--etcd", here, "nop_us=5000"))
            expect(parameter(program, "nop_us") == 4000)
            # It comes back: what is set then arrives, at whoever watches, too.
            server = etcd(folder, port, peers)
            weft("adm", "set", "--etcd", here, "nop_us=6000")
            until("the program catches up", lambda: parameter(program, "nop_us") == 6000)
            until("the agent says so", lambda: "answers again" in said())
            expect(said().count("programs keep what they have") == 1, said())
            expect(json.loads(watch.stdout.readline())["settings"]["nop_us"] == 6000)
            expect(watch.wait(timeout=30) == 0)

            # Without its agent the file stays, and is anybody's to change who may.
            agent.process.kill()
            agent.process.wait()
            expect(parameter(program, "nop_us") == 6000)
            weft("adm", "set", "nop_us=7000", "--wait", 20)
    finally:
        server.stop()
expect("write http://HOST:PORT" in refusal(2, "get", "--etcd", "ftp://x"))
print("as it should be")
