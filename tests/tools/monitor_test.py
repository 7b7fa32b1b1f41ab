"""weft monitor over real processes: what it serves, remembers and pulls from its peers."""
import contextlib
import json
import pathlib
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import urllib.parse

from serving import Monitor, answers, fetch, name_actors
from stage import WEFT, Actor, expect, until, weft


def refusal(*words):
    done = subprocess.run([WEFT, "monitor", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    expect(done.returncode == 2 and done.stderr.count("\n") == 1, words, done)
    return done.stderr


def said(m, question):
    """What it answers to these bytes until it closes the connection."""
    with socket.create_connection(m.place.split(":"), timeout=20) as s:
        got = b""
        try:
            s.sendall(question)
            while piece := s.recv(65536):
                got += piece
        except ConnectionError:
            pass
        return got


@contextlib.contextmanager
def dripping(m):
    """Five clients that send a byte now and then, and never end."""
    clients = [socket.create_connection(m.place.split(":"), timeout=20) for _ in range(5)]
    end = threading.Event()
    def drip():
        while not end.wait(0.2):
            for c in clients:
                with contextlib.suppress(OSError):
                    c.send(b"G")
    thread = threading.Thread(target=drip)
    thread.start()
    time.sleep(0.5)
    try:
        yield
    finally:
        end.set()
        thread.join()
        for c in clients:
            c.close()


def peer(behave):
    """The place of a server that takes a question and then does as it likes."""
    listening = socket.create_server(("127.0.0.1", 0))
    def one(client):
        with client, contextlib.suppress(OSError):
            client.recv(65536)
            behave(client)
    def serve():
        while True:
            threading.Thread(target=one, args=(listening.accept()[0],), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return "127.0.0.1:%d" % listening.getsockname()[1]


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
        # Nothing can be changed, and a question is short, comes in time and is answered once.
        expect(said(m, b"POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n").startswith(b"HTTP/1.1 405 "))
        expect(said(m, b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").startswith(b"HTTP/1.1 400 "))
        many = said(m, b"GET /metrics HTTP/1.1\r\nRange: bytes=" + b",".join([b"0-"] * 1000) + b"\r\n\r\n")
        expect(many.startswith(b"HTTP/1.1 400 ") and len(many) < 1000, len(many), many[:200])
        expect(said(m, b"GET /" + b"x" * 100000) == b"", "a line without an end")
        expect(said(m, b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 20000).split(b"\r\n")[0] in (b"", b"HTTP/1.1 400 Bad Request"), "headers without an end")
        begin = time.monotonic()
        with dripping(m):
            until("a question that drips is given up", lambda: answers(m.base + "/healthz"))
        expect(time.monotonic() - begin < 15, "five dripping clients hold four threads for one patience")

        # A matrix of weft ping is served as it is; half a file is not.
        pathlib.Path(mesh).write_text('{"hosts": ["a", "b"]}')
        until("the matrix is served", lambda: answers(m.base + "/v1/mesh"))
        expect(m.get("/v1/mesh") == {"hosts": ["a", "b"]})
        pathlib.Path(mesh).write_text('{"hosts": ["a", ')
        until("half a matrix is not", lambda: not answers(m.base + "/v1/mesh"))
        with dripping(m):
            begin = time.monotonic()
            m.stop(code=0)
            expect(time.monotonic() - begin < 3, "clients hold up its end")

    # Peers that answer without end, or what nobody should build in memory, are down.
    def forever(client):
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n{")
        while True:
            client.sendall(b" ")
            time.sleep(0.2)
    def deep(client):
        text = b'{"processes":' + b"[" * 3000000 + b"]" * 3000000 + b"}"
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    def right(client):
        text = b'{"processes":[], "x":"y"}'
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    with Monitor("--peer", peer(forever), "--peer", peer(deep), "--peer", peer(right)) as m:
        until("the third is reached", lambda: [h["up"] for h in m.get("/v1/cluster")["hosts"]] == [False, False, True])
        expect(m.get("/v1/cluster")["hosts"][2]["state"] == {"processes": [], "x": "y"})
        begin = time.monotonic()
        m.stop(code=0)
        expect(time.monotonic() - begin < 1.5, "a peer holds up its end")

    # It goes on with what it remembered.
    ended = time.time()
    with Monitor("--history", history) as again:
        expect(again.get("/v1/history?series=weft_host_roce_sockets")[0][0] <= ended, "samples of the monitor before")

expect("ADDRESS:PORT" in refusal("--listen", "here"))
expect("HOST:PORT" in refusal("--listen", "127.0.0.1:0", "--peer", "there"))
expect("the history" in refusal("--listen", "127.0.0.1:0", "--history", "/no/such/folder/h.db"))
expect("requires" in refusal("--keep-rows", "1000"))
print("as it should be")
