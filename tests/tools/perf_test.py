"""weft perf over real processes: loops, flows, distributions, thresholds; a long tail (X-RDMA, Table II) is in its percentiles."""
import json
import subprocess

from stage import WEFT, expect, weft


class Agent:
    def __init__(self, address, *words):
        self.process = subprocess.Popen([WEFT, "perf", "--addr", address, "--serve", "--for", "60", *words], stdout=subprocess.PIPE, text=True)
        expect(self.process.stdout.readline().startswith("serving"), "an agent serves", address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def perf(*words, code=0):
    return json.loads(weft("perf", "--addr", "127.0.6.100", "-j", *([] if "-D" in words else ["-D", 0.5]), *words, code=code))


with Agent("127.0.6.1"):
    one = perf("127.0.6.1")
    flow = one["flows"][0]
    expect(one["loop"] == "closed" and flow["name"] == "all" and flow["requests"] > 10 and one["failed"] == 0, one)
    expect(flow["least_ns"] <= flow["p50_ns"] <= flow["p90_ns"] <= flow["p99_ns"] <= flow["most_ns"], flow)
    expect(flow["bytes"] == 64 * flow["requests"], flow)
    # An open loop keeps its rate.
    rate = perf("127.0.6.1", "--rate", 1000, "-q", 4, "--sizes", "google-rpc", "-D", 2)
    expect(1500 < rate["flows"][0]["requests"] + rate["overflown"] < 2500, rate)
    # Elephants and mice.
    both = perf("127.0.6.1", "-q", 5, "--elephants", 20)
    expect([f["name"] for f in both["flows"]] == ["mice", "elephants"], both)
    expect(both["flows"][1]["bytes"] == both["flows"][1]["requests"] * 1_000_000 and both["flows"][1]["requests"] > 0, both)
    # Many channels, thresholds, words.
    expect(perf("127.0.6.1", "-q", 200)["failed"] == 0)
    perf("127.0.6.1", "--max-p99", 0.001, code=3)
    perf("127.0.6.1", "--min-gbps", 1000, code=3)
    page = weft("perf", "--addr", "127.0.6.100", "127.0.6.1", "-D", 0.2)
    expect(page.splitlines()[0].split()[:3] == ["flow", "requests", "per"], page)
    for wrong in ([], ["nobody"], ["127.0.6.1", "--size", "x"], ["127.0.6.1", "--sizes", "none-such"], ["127.0.6.1", "--size", "1GB"], ["127.0.6.1", "-q", 0],
                  ["127.0.6.1", "-q", 4, "--elephants", 20], ["127.0.6.1", "--deny", "127.0.6.2"], ["127.0.6.1", "--rate", 10, "-t", 2]):
        weft("perf", "--addr", "127.0.6.100", *wrong, code=2)
    weft("perf", "--addr", "127.0.6.100", "127.0.6.1", "--service", 4791, code=1)

# A long tail: the far end holds each message up for 20 ms. The median says so, beside a far end that does not; and with an open
# loop, requests that wait behind a slow one are as slow as programs would find them.
with Agent("127.0.6.2", "--set", "filter_delay_us=20000"):
    tail = perf("127.0.6.2", "--rate", 100, "-D", 1.5)["flows"][0]
    expect(tail["p50_ns"] >= 20_000_000 and tail["p99_ns"] > 1.5 * 20_000_000, tail)
    expect(perf("127.0.6.2", "--rate", 20, "-D", 0.5)["unfinished"] == 0, "all ended after the end")

# A far end that takes far longer than there is time: what is unfinished is said, and is no success.
with Agent("127.0.6.3", "--set", "filter_delay_us=10000000"):
    late = perf("127.0.6.3", "--rate", 50, "-D", 0.5, code=1)
    expect(late["unfinished"] > 5, late)
    expect("unfinished" in weft("perf", "--addr", "127.0.6.100", "127.0.6.3", "--rate", 50, "-D", 0.5, code=1))
print("as it should be")
