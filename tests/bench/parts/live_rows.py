"""What `./dev bench live` measures: each row a function that runs two programs, one pinned to each core, and gives one number or several."""
import json
import pathlib
import re
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
WEFT = BUILD / "weft"
RAW = next(iter(BUILD.rglob("weft-raw-udp")), None)
PAIRS = next(iter(BUILD.rglob("weft-many-pairs")), None)
ONE_BY_ONE = next(iter(BUILD.rglob("weft-one-by-one")), None)
SECONDS = "1"
SERVER, CLIENT = "127.0.0.1", "127.0.0.2"


def raw(kind):
    return float(subprocess.run([RAW, kind, SECONDS], check=True, capture_output=True, text=True).stdout)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pair(serve, ask, stays=False):
    """What the client of two programs prints. One that comes before its server listens is tried again."""
    server = subprocess.Popen(["taskset", "-c", "1", *map(str, serve)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL)
    try:
        for _ in range(50):
            time.sleep(0.2)
            client = subprocess.run(["taskset", "-c", "0", *map(str, ask)], capture_output=True, text=True, timeout=120,
                                    stdin=subprocess.DEVNULL)
            if client.returncode == 0 or server.poll() is not None:
                break
        if not stays:
            server.wait(timeout=20)
    finally:
        server.kill()
        server.wait()
    if client.returncode != 0:
        sys.exit(f"bench live: {' '.join(map(str, ask))} failed:\n{client.stdout}{client.stderr}")
    return client.stdout


def number(pattern, text, what):
    found = re.search(pattern, text)
    if found is None:
        sys.exit(f"bench live: {what} printed no number where one was looked for:\n{text}")
    return float(found.group(1).replace(",", ""))


def qperf(*test):
    """TCP between two processes: microseconds or Gb/s."""
    text = pair(["qperf"], ["qperf", "-t", SECONDS, "-u", SERVER, *test], stays=True)
    unit = re.search(r"=\s+[\d.,]+\s+(\S+)", text).group(1)
    scale = {"ns": 1e-3, "us": 1, "ms": 1e3, "bytes/sec": 8e-9, "KB/sec": 8e-6, "MB/sec": 8e-3, "GB/sec": 8}
    return number(r"=\s+([\d.,]+)", text, "qperf") * scale[unit]


def ucx_number(text, test):
    """Its last row: iterations, microseconds (median, average, overall), MiB/s and messages a second (average, overall)."""
    words = text.rstrip("\n").split("\n")[-1].split()
    if len(words) < 8 or not all(re.fullmatch(r"[\d.]+", word) for word in words[-8:]):
        sys.exit(f"bench live: ucx_perftest printed no row of numbers:\n{text}")
    _, _, average_us, _, mib_per_second, _, _, _ = map(float, words[-8:])
    return average_us if test.endswith("lat") else mib_per_second * 8 * 1.048576e-3


def ucx(transport, test, size, count):
    """UCX without verbs: microseconds half a round trip, or Gb/s."""
    start = ["env", f"UCX_TLS={transport},self", "ucx_perftest", "-p", "13400"]
    return ucx_number(pair(start, [*start, SERVER, "-t", test, "-s", size, "-n", count, "-f"]), test)


def weft(address, command, options=()):
    mode = [] if "--mode" in options else ["--mode", "roce"]
    wire = [] if "--wire" in options else ["--wire", "udp"]  # through the kernel, as all that is measured beside it
    return [WEFT, "run", "--addr", address, *mode, *wire, *options, "--", *command]


def perftest(command, column, options=()):
    """One number of a perftest program's last row."""
    text = pair(weft(SERVER, command, options), weft(CLIENT, [*command, SERVER], options))
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]+\s", line)]
    if not rows:
        sys.exit(f"bench live: {' '.join(command)} printed no row of numbers:\n{text}")
    return float(rows[-1][column])


def processor_seconds_a_gigabyte(move):
    """Of both programs and the kernel under them, for what one call of `move` says that it moves in SECONDS."""
    before = processor_seconds()
    gigabits = move()
    return (processor_seconds() - before) / (gigabits / 8 * float(SECONDS))


def many_pairs(count, options=()):
    text = pair(weft(SERVER, [PAIRS, "serve"], options), weft(CLIENT, [PAIRS, "write", SERVER, count, 10000, SECONDS], options))
    return json.loads(text.splitlines()[-1])


def cm_steps(text):
    """Milliseconds of each step until connections stand."""
    steps = ("resolve addr", "resolve route", "create qp", "connect")
    return {step: number(rf"{step}\s*:\s+([\d.]+)", text, "cmtime") for step in steps}


def cmtime(count):
    return cm_steps(pair(weft(SERVER, ["cmtime", "-c", str(count)]), weft(CLIENT, ["cmtime", "-s", SERVER, "-c", str(count)]), stays=True))


LATENCY = ["-s", "64", "-n", "20000"]
LARGE = ["-s", "1048576", "-D", SECONDS, "--report_gbits"]
SMALL = ["-s", "64", "-D", SECONDS, "-t", "128", "--cq-mod", "64"]
SHARED = ["--wire", "shm"]
WRITE = ["ib_write_bw", *LARGE]


def tcp_stream():
    return qperf("-m", "1M", "tcp_bw")


def write_stream():
    return perftest(WRITE, 3)


def pairs_rows():
    few, many = many_pairs(128), many_pairs(10000)
    return {"weft_128_pairs_gbps": few["gbps"], "weft_10000_pairs_gbps": many["gbps"],
            "weft_memory_a_pair_bytes": many["bytes_a_pair"], "weft_setup_a_pair_us": many["setup_us"]}


def cm_rows():
    text = pair(weft(SERVER, [ONE_BY_ONE, "serve", SERVER]), weft(CLIENT, [ONE_BY_ONE, "connect", SERVER, "100"]), stays=True)
    one = json.loads(text.splitlines()[-1])
    return {"weft_cm_4096_connections_s": sum(cmtime(4096).values()) / 1e3,
            "weft_cm_first_connection_us": one["first_us"], "weft_cm_one_connection_us": one["us"]}


ROWS = {
    "raw_udp_spinning_us": lambda: raw("spinning"),
    "raw_udp_blocking_us": lambda: raw("blocking"),
    "tcp_lat_us": lambda: qperf("-m", "64", "tcp_lat"),
    "ucx_tcp_lat_us": lambda: ucx("tcp", "tag_lat", 64, 20000),
    "weft_send_lat_us": lambda: perftest(["ib_send_lat", *LATENCY], 4),
    # perftest halves the time of a SEND and its answer; a READ is not over before a whole round trip is.
    "raw_udp_round_trip_us": lambda: 2 * raw("spinning"),
    "weft_read_lat_us": lambda: perftest(["ib_read_lat", *LATENCY], 4),
    "weft_write_lat_us": lambda: perftest(["ib_write_lat", "-s", "64", "-n", "1000"], 4),
    "raw_udp_stream_gbps": lambda: raw("stream"),
    "tcp_bw_gbps": tcp_stream,
    "ucx_tcp_bw_gbps": lambda: ucx("tcp", "tag_bw", 1048576, 4000),
    "weft_write_1m_gbps": write_stream,
    "weft_write_1m_irn_gbps": lambda: perftest(WRITE, 3, ["--mode", "irn"]),
    "weft_write_1m_irn_1_percent_gbps": lambda: perftest(WRITE, 3, ["--mode", "irn", "--loss", "1%"]),
    "weft_write_1m_no_icrc_gbps": lambda: perftest(WRITE, 3, ["--icrc", "off"]),
    "tcp_processor_s_a_gb": lambda: processor_seconds_a_gigabyte(tcp_stream),
    "weft_processor_s_a_gb": lambda: processor_seconds_a_gigabyte(write_stream),
    "ucx_shm_lat_us": lambda: ucx("posix", "tag_lat", 64, 100000),
    "weft_shm_send_lat_us": lambda: perftest(["ib_send_lat", *LATENCY], 4, SHARED),
    "ucx_shm_bw_gbps": lambda: ucx("posix", "tag_bw", 1048576, 10000),
    "weft_shm_write_1m_gbps": lambda: perftest(WRITE, 3, SHARED),
    "weft_shm_write_64_mpps": lambda: perftest(["ib_write_bw", *SMALL], 4, SHARED),
    "weft_write_64_mpps": lambda: perftest(["ib_write_bw", *SMALL], 4),
    "weft_write_64_list_32_mpps": lambda: perftest(["ib_write_bw", "-s", "64", "-n", "1000000", "-t", "128", "--cq-mod",
                                                    "32", "-l", "32"], 4),
    "many pairs": pairs_rows,
    "connections": cm_rows,
}
RATIOS = {  # name, row, to row, budget
    "send latency / spinning UDP": ("weft_send_lat_us", "raw_udp_spinning_us", "<= 1.35"),
    "read latency / round trip of spinning UDP": ("weft_read_lat_us", "raw_udp_round_trip_us", "<= 1.35"),
    "send latency / TCP": ("weft_send_lat_us", "tcp_lat_us", "< 1"),
    "send latency / UCX over TCP": ("weft_send_lat_us", "ucx_tcp_lat_us", "< 1"),
    "write latency / blocking UDP": ("weft_write_lat_us", "raw_udp_blocking_us", "<= 1.35"),
    "1 MB WRITE / UDP stream": ("weft_write_1m_gbps", "raw_udp_stream_gbps", ">= 0.55"),
    "1 MB WRITE / TCP": ("weft_write_1m_gbps", "tcp_bw_gbps", ">= 1.1"),
    "1 MB WRITE / UCX over TCP": ("weft_write_1m_gbps", "ucx_tcp_bw_gbps", ">= 1.1"),
    "1 MB WRITE without ICRC / UDP stream": ("weft_write_1m_no_icrc_gbps", "raw_udp_stream_gbps", ">= 0.7"),
    "1 MB WRITE without ICRC / TCP": ("weft_write_1m_no_icrc_gbps", "tcp_bw_gbps", ">= 1.3"),
    "processor time a GB / TCP": ("weft_processor_s_a_gb", "tcp_processor_s_a_gb", "none"),
    "irn with 1 % loss / irn without": ("weft_write_1m_irn_1_percent_gbps", "weft_write_1m_irn_gbps", ">= 0.77"),
    "10 000 queue pairs / 128": ("weft_10000_pairs_gbps", "weft_128_pairs_gbps", ">= 0.95"),
    "shared memory, send latency / UCX": ("weft_shm_send_lat_us", "ucx_shm_lat_us", "<= 1.5"),
    "shared memory, 1 MB WRITE / UCX": ("weft_shm_write_1m_gbps", "ucx_shm_bw_gbps", ">= 0.8"),
}
LIMITS = {  # row, budget
    "weft_write_64_mpps": (6.6, "at least"),
    "weft_write_64_list_32_mpps": (6.6, "at least"),
    "weft_cm_4096_connections_s": (3, "at most"),
    "weft_cm_one_connection_us": (200, "at most"),
}
