"""weft monitor over real processes: what it serves, remembers and pulls from its peers."""
import json
import pathlib
import sqlite3
import subprocess
import tempfile
import time
import urllib.parse

from serving import Monitor, answers, fetch, name_actors
from stage import WEFT, Actor, expect, until, weft


def refusal(*words):
    done = subprocess.run([WEFT, "monitor", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    expect(done.returncode == 2 and done.stderr.count("\n") == 1, words, done)
    return done.stderr


with tempfile.TemporaryDirectory() as folder:
    name = name_actors(folder)
    PROGRAM = f'program="{name}"'
    history, mesh = f"{folder}/h.db", f"{folder}/mesh.json"
    with Monitor("--history", history, "--history-every", "0.1", "--keep-rows", "1000", "--mesh", mesh) as m:
        expect(fetch(m.base + "/healthz") == "ok\n")
        begin = time.time()
        fetch(m.base + "/v1/mesh", code=404)
        with Actor("127.0.4.31", "hold", 100, "depth=8") as holder, Actor("127.0.4.32", "send", "127.0.4.31", 100, 2, 20, "depth=8"):
            def full():
                v = m.metrics()
                return (v.get(f"weft_channels_held_full{{{PROGRAM}}}"), v.get(f"weft_channels_full{{{PROGRAM}}}"),
                        v.get(f"weft_messages_queued{{{PROGRAM}}}"), v.get(f"weft_contexts{{{PROGRAM}}}"))
            until("two channels are held full, and their senders wait", lambda: full() == (2, 2, 24, 2))
            until("the NICs' pages follow", lambda: m.metrics().get(f"weft_queue_pairs{{{PROGRAM}}}") == 4)
            until("packets are counted", lambda: m.metrics()[f"weft_nic_tx_packets_total{{{PROGRAM}}}"] >= 16)
            values = m.metrics()
            expect(values["weft_host_roce_sockets"] >= 2, values)
            expect('weft_host_interface_drops_total{interface="lo",counter="rx_dropped"}' in values, values)
            # The same as weft stat -j.
            state = m.get("/v1/state")
            expect({p["pid"] for p in state["processes"]} >= {holder.pid}, state)
            mine = [p for p in state["processes"] if p["command"] == name]
            expect(len(mine) == 4 and sum(len(p.get("channel", [])) for p in mine) == 4, state)
            # Printed once, as from the server.
            once = weft("monitor", "--once")
            expect(f"weft_channels_held_full{{{PROGRAM}}} 2\n" in once, once)
            sent = m.metrics()[f"weft_messages_sent_total{{{PROGRAM}}}"]
            expect(sent == 16, sent)
            # A second monitor pulls from the first, and from one that is not there.
            with Monitor("--peer", m.place, "--peer", "127.0.0.1:1") as other:
                until("it has pulled", lambda: [h["up"] for h in other.get("/v1/cluster")["hosts"]] == [True, False])
                hosts = other.get("/v1/cluster")["hosts"]
                expect(sum(p["command"] == name for p in hosts[0]["state"]["processes"]) == 4 and hosts[0]["age_seconds"] is not None, hosts[0])
                expect(hosts[1]["state"] is None and hosts[1]["age_seconds"] is None, hosts[1])
                up = other.metrics()
                expect(up[f'weft_peer_up{{peer="{m.place}"}}'] == 1 and up['weft_peer_up{peer="127.0.0.1:1"}'] == 0, up)
                other.get("/v1/history?series=x", code=404)  # it has no history
                expect("cannot be had" in refusal("--listen", other.place))
                other.stop(code=0)

        # Programs that ended leave their counts, and no gauges.
        until("their gauges go", lambda: f"weft_contexts{{{PROGRAM}}}" not in m.metrics())
        expect(m.metrics()[f"weft_messages_sent_total{{{PROGRAM}}}"] == sent)

        # What it remembers: samples of a series, slow lines, and no more than it was told to keep.
        with Actor("127.0.4.33", "doze", 100, "polling_warn_cycle=5000"):
            until("a slow line is remembered", lambda: any(s["what"] == "polls" for s in m.get(f"/v1/slow?since={int(begin)}")))
        series = f"weft_channels_held_full{{{PROGRAM}}}"
        until("a thousand rows have been written", lambda: sqlite3.connect(history).execute("SELECT max(number) FROM sample").fetchone()[0] > 2000)
        expect(sqlite3.connect(history).execute("SELECT count(*) FROM sample").fetchone()[0] <= 1000)
        expect(series in m.get("/v1/series"))
        samples = m.get("/v1/history?series=weft_host_roce_sockets&since=" + str(int(begin)))
        expect(len(samples) > 1 and all(begin - 1 <= at <= time.time() + 1 for at, _ in samples), samples)
        expect(m.get("/v1/history?series=" + urllib.parse.quote(series) + f"&since={int(time.time()) + 1000}") == [])
        expect("Unix time" in m.get("/v1/history?series=x&since=soon", code=400)["error"])
        expect("name one of" in m.get("/v1/history", code=400)["error"])
        fetch(m.base + "/nothing", code=404)
        fetch(m.base + "/metrics", body=b"x", code=404)  # nothing can be changed

        # A matrix of weft ping is served as it is; half a file is not.
        pathlib.Path(mesh).write_text('{"hosts": ["a", "b"]}')
        until("the matrix is served", lambda: answers(m.base + "/v1/mesh"))
        expect(m.get("/v1/mesh") == {"hosts": ["a", "b"]})
        pathlib.Path(mesh).write_text('{"hosts": ["a", ')
        until("half a matrix is not", lambda: not answers(m.base + "/v1/mesh"))
        m.stop(code=0)

    # It goes on with what it remembered.
    ended = time.time()
    with Monitor("--history", history) as again:
        expect(again.get("/v1/history?series=weft_host_roce_sockets")[0][0] <= ended, "samples of the monitor before")

expect("ADDRESS:PORT" in refusal("--listen", "here"))
expect("HOST:PORT" in refusal("--listen", "127.0.0.1:0", "--peer", "there"))
expect("the history" in refusal("--listen", "127.0.0.1:0", "--history", "/no/such/folder/h.db"))
expect("requires" in refusal("--keep-rows", "1000"))
print("as it should be")
