"""weft stat over real processes: heavy incast is visible (X-RDMA, Table II), a stopped process is shown, stale pages go."""
import os
import signal
import time

from stage import Actor, expect, pages, shm, until, weft


def channels(pid):
    return [c for p in pages(pid) if p["kind"] == "channels" for c in p["channel"]]


# Heavy incast: three hosts send to a program that takes nothing. Whose messages wait where is in two lists: at the
# receiver every channel has its whole window in the program's hands, and the senders wait with full windows.
with Actor("127.0.4.1", "hold", 60, "depth=8") as receiver:
    senders = [Actor(f"127.0.4.{i}", "send", "127.0.4.1", 60, 2, 20, "depth=8") for i in (2, 3, 4)]
    try:
        until("six channels hold eight messages", lambda: [c["held"] for c in channels(receiver.pid)] == [8] * 6)
        for s in senders:
            until("a sender waits", lambda s=s: [(c["in_flight"], c["queued"]) for c in channels(s.pid)] == [(8, 12)] * 2)
        peers = {c["peer"] for c in channels(receiver.pid)}
        expect(peers == {"127.0.4.2", "127.0.4.3", "127.0.4.4"}, peers)
        until("the NIC's page follows", lambda: weft("stat", "-q", "-H", "--pid", receiver.pid).count("RTS") == 6)
        page = weft("stat", "-p", "--pid", receiver.pid)
        expect(page.count("OPEN") == 6 and page.count(f"pid={receiver.pid}") >= 6, page)
        expect("RTS" in page and "Held" in page, page)
        expect("Held" not in weft("stat", "-q", "-H", "--pid", receiver.pid))
        expect("in use" in weft("stat", "-m", "-s", "--pid", receiver.pid))

        def page_of_nic():
            return next(p for p in pages(senders[0].pid) if p["kind"] == "nic")

        until("the NIC's page follows there", lambda: page_of_nic()["nic"][0]["qps"] == 2)
        nic = page_of_nic()
        expect(nic["title"] == "127.0.4.2" and nic["nic"][0]["qps"] == 2, nic)
        # Its queue pairs are those of the channels.
        expect({q["qpn"] for q in nic["qp"]} == {c["qpn"] for c in channels(senders[0].pid)}, nic)
        # Its completion queues and its memory are listed, as many as are counted; who may do what is said, keys are not.
        until("the NIC's page follows with its memory", lambda: sum(r["mrlen"] for r in page_of_nic()["mr"]) ==
              page_of_nic()["nic"][0]["region_bytes"] > 0)
        regions = page_of_nic()["mr"]
        expect(len(page_of_nic()["cq"]) == nic["nic"][0]["cqs"] > 0 and all(q["cqe"] > 0 for q in page_of_nic()["cq"]), nic)
        expect(all(set(r) == {"mrn", "mrlen", "access"} and len(r["access"]) == 5 and r["access"][0] == "l" for r in regions), regions)
        page = weft("stat", "-r", "-p", "--pid", senders[0].pid)
        expect("mrlen" in page and page.count(f"pid={senders[0].pid}") == len(regions) and "rqpn" not in page, page)
        page = weft("stat", "--cqs", "-H", "--pid", senders[0].pid)
        expect(len(page.splitlines()) == nic["nic"][0]["cqs"], page)
        expect(weft("stat", "-j", "-p", "--pid", senders[0].pid).count("\n") > 20, "-j -p is for people")
        until("packets are counted", lambda: page_of_nic()["nic"][0]["tx_packets"] >= 16)

        # A process that is stopped is shown as it was, with since when.
        os.kill(receiver.pid, signal.SIGSTOP)
        time.sleep(1.3)
        page = weft("stat", "--pid", receiver.pid)
        expect("it is stopped" in page and "has not polled for" in page and page.count("OPEN") == 6, page)
        expect(pages(receiver.pid)[0]["state"] == "T", "state")
        os.kill(receiver.pid, signal.SIGCONT)

        # It dies: its pages are recognised and go, if no program that began since has removed them; its peers are not taken for it.
        os.kill(receiver.pid, signal.SIGKILL)
        receiver.process.wait()
        expect(pages(receiver.pid) == [], "it is gone")
        expect(not shm(receiver.pid), "stale pages are removed")
        expect(shm(senders[0].pid), "others' are not")

        # Watching ends by itself when it is told how often.
        expect(weft("stat", "-j", "-w", 0.1, "-n", 3, "--pid", senders[0].pid).count("\n") == 3)
    finally:
        for s in senders:
            s.__exit__()

# A program that ended leaves nothing, before anybody looks; and a program that wants no pages has none.
with Actor("127.0.4.5", "serve", 1) as a:
    expect(len(shm(a.pid)) == 2, "a page of its NIC and one of its channels", shm(a.pid))
    a.finish()
    expect(not shm(a.pid), "pages of a program that ended", shm(a.pid))
    expect(pages(a.pid) == [], "it is gone")
os.environ["WEFT_STAT"] = "0"
with Actor("127.0.4.6", "serve", 30) as a:
    expect(not shm(a.pid), "pages that nobody wanted")
del os.environ["WEFT_STAT"]

# Jitter: a program that is elsewhere now and then is found by its log.
with Actor("127.0.4.7", "doze", 60, "polling_warn_cycle=5000") as dozer, \
        Actor("127.0.4.8", "call", "127.0.4.7", 60, "slow_threshold=5000", "trace_sample_mask=0xffffffffffffffff") as caller:
    until("the time between polls is logged", lambda: "polls took" in weft("stat", "--slow", "--pid", dozer.pid))
    until("a slow request is logged", lambda: "request took" in weft("stat", "--slow", "--pid", caller.pid))
    line = next(l for l in weft("stat", "--slow", "--pid", caller.pid).splitlines() if "request took" in l)
    # A message arrives when its program polls, so a peer that is elsewhere is a slow network until its own log is read.
    took, away = float(line.split(" took ")[1].split()[0]), float(line.split(", network ")[1].split(",")[0])
    expect(away > took / 2, "it was not this end: " + line)
print("as it should be")
