"""A bug that is hard to reproduce (X-RDMA, Table II): a program forgets requests that had no answer. Where none is lost it runs for ever; the
filter, switched on while it runs, loses some, and weft stat says what became of it."""
import os
import re
import tempfile
import time

from stage import Actor, expect, pages, until, weft


def page(pid, kind="channels"):
    return next(p for p in pages(pid) if p["kind"] == kind)


def answered(pid):
    return sum(c["received"] for c in page(pid)["channel"])


def goes_on(pid, seconds=1.0):
    """Whether it had answers within so long."""
    before = answered(pid)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answered(pid) > before:
            return True
        time.sleep(0.05)
    return False


with tempfile.TemporaryDirectory() as folder:
    os.environ["WEFT_PARAMETERS"] = f"{folder}/weft/parameters"
    with Actor("127.0.4.61", "rest", 100) as server, Actor("127.0.4.62", "forget", "127.0.4.61", 100, "keepalive_intv_ms=600000") as forgetful, \
            Actor("127.0.4.63", "mend", "127.0.4.61", 100) as careful:
        until("their pages are there", lambda: all(len(pages(a.pid)) == 2 for a in (server, forgetful, careful)))
        name = page(server.pid)["command"]
        # Thousands of requests, and nothing to be seen: both programs do the same.
        until("both had many answers", lambda: min(answered(forgetful.pid), answered(careful.pid)) > 2000, 60)
        expect(page(server.pid)["context"][0]["dropped"] == 0)

        # One message in fifty is dropped, at all ends, by a command and without a restart.
        weft("adm", "set", f"{name}/filter_drop_ppm=20000", "--wait", 20)
        until("the forgetful one stands still", lambda: not goes_on(forgetful.pid), 60)
        expect(page(server.pid)["context"][0]["dropped"] >= 1, page(server.pid)["context"])
        expect(goes_on(careful.pid, 5), "the careful one bears the same faults")

        # It stands still without the filter, too: the bug is its own. weft stat shows what it does: it polls, its channel is open, it
        # waits for nobody, and nothing is on its way.
        weft("adm", "unset", f"{name}/filter_drop_ppm", "--wait", 20)
        expect(not goes_on(forgetful.pid) and goes_on(careful.pid, 5), "after the filter")
        row = page(forgetful.pid)["channel"][0]
        expect(row["state"] == "OPEN" and (row["in_flight"], row["queued"]) == (0, 0), row)
        # Requests whose time is over are no longer under way, although nothing came that says so.
        until("it waits for no answer", lambda: page(forgetful.pid)["channel"][0]["calls"] == 0, 5)
        shown = weft("stat", "-c", "--pid", forgetful.pid)
        expect(re.search(r"^OPEN +RDMA +0/32 +0 +0 +0 127\.0\.4\.61:4711", shown, re.M), shown)
        polls = page(forgetful.pid)["context"][0]["polls"]
        until("it polls", lambda: page(forgetful.pid)["context"][0]["polls"] > polls)
print("as it should be")
