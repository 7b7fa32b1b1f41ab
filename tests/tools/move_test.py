"""Channels of running programs go over TCP and back by weft adm, while one calls the other; weft stat shows it."""
import os
import tempfile

from stage import Actor, expect, pages, until, weft


def channel(pid):
    rows = [c for p in pages(pid) if p["kind"] == "channels" for c in p["channel"]]
    return rows[0] if rows else {}


with tempfile.TemporaryDirectory() as folder:
    os.environ["WEFT_PARAMETERS"] = f"{folder}/parameters"
    both = ("reconnect_ms=20000",)
    with Actor("127.0.4.41", "serve", 100, *both, "tcp_port=4791") as server, Actor("127.0.4.42", "call", "127.0.4.41", 100, *both) as client:
        ends = (server.pid, client.pid)
        until("they talk", lambda: channel(client.pid).get("received", 0) > 10)
        expect(channel(client.pid)["carrier"] == "RDMA" and channel(client.pid)["opening"] == 1, channel(client.pid))
        for moves, (mock, carrier) in enumerate(((1, "TCP"), (0, "RDMA"), (1, "TCP")), 1):
            weft("adm", "set", f"mock={mock}", "--wait", 20)
            until(f"both are on {carrier}", lambda: [(c.get("state"), c.get("carrier"), c.get("moves")) for c in map(channel, ends)] == [("OPEN", carrier, moves)] * 2)
            before = channel(client.pid)["received"]
            until("they talk there", lambda: channel(client.pid).get("received", 0) > before + 10)
        page = weft("stat", "-c", "--pid", client.pid)
        expect("OPEN     TCP" in page, page)
        # However often its connection changed, it is the channel that was opened first.
        expect(channel(client.pid)["reconnects"] == 3 and channel(client.pid)["opening"] == 1, channel(client.pid))
        if "SHOW" in os.environ:
            print(weft("stat", "-p"))
