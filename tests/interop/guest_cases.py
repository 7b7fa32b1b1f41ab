"""What the kernel's soft NIC and weft do with each other (run_guest.py): a table of cases, and the file /cases that the guest runs.

A case is a server's and a client's command. Most are one program's on both sides, and each of these runs twice: the kernel serves, and
the kernel asks. K and W in a command stand for what chooses the device: rxe0 and its RoCE v2 GID, or weft's only one. N is how often.
"""
from dataclasses import dataclass

KERNEL, WEFT = "10.0.0.1", "10.0.0.2"
PROGRAMS = ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "rping", "ucmatose", "udaddy", "rdma_server",
            "rdma_client", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_send_bw", "ib_send_lat", "ib_atomic_bw", "ib_atomic_lat")


@dataclass(frozen=True)
class Case:
    name: str
    server: str  # SERVER in it is the server's address
    client: str = ""  # the server's command and its address, if left out
    repaired: bool = True  # a loss is made good: no datagrams, no unreliable connections
    asks: bool = True  # weft asks what the peer speaks: a reliable queue pair that is connected without a connection manager
    always: bool = True  # with an impaired network, too
    ready: str = ""  # what the server prints when a client may come; one that comes too early otherwise is told so, and comes again
    by: tuple = ("kernel", "weft")  # who may serve
    closes: bool = True  # its server closes the device, so that weft prints what it counted


def same(name, command, **how):
    return Case(name, command, f"{command} SERVER", **how)


CASES = (
    same("ibv_rc_pingpong", "ibv_rc_pingpong PINGPONG -n N -c"),
    same("ib_write_bw", "ib_write_bw PERFTEST -n N"),
    same("ib_write_lat", "ib_write_lat PERFTEST -n N"),
    same("ib_read_bw", "ib_read_bw PERFTEST -n N"),
    same("ib_read_lat", "ib_read_lat PERFTEST -n N"),
    same("ib_send_bw", "ib_send_bw PERFTEST -n N"),
    same("ib_send_lat", "ib_send_lat PERFTEST -n N"),
    same("ib_atomic_bw", "ib_atomic_bw PERFTEST -n N"),
    same("ib_atomic_lat", "ib_atomic_lat PERFTEST -n N", closes=False),
    same("ib_atomic_bw.swap", "ib_atomic_bw PERFTEST -n N -A CMP_AND_SWAP", always=False),
    same("ib_write_bw.many", "ib_write_bw PERFTEST -n N -q 4", always=False),
    same("ib_write_bw.both_ways", "ib_write_bw PERFTEST -n N -b"),
    same("ib_write_bw.large", "ib_write_bw PERFTEST -n 5 -s 1048576", always=False),
    same("ib_read_bw.odd", "ib_read_bw PERFTEST -n 5 -s 100001", always=False),
    same("ib_write_lat.inline", "ib_write_lat PERFTEST -n N -s 33 -I 64", always=False),
    same("ib_send_lat.events", "ib_send_lat PERFTEST -n N -e", always=False),
    same("ib_send_bw.shared_receives", "ib_send_bw PERFTEST -n N -q 4 --use-srq"),
    same("ib_send_bw.few_receives", "ib_send_bw PERFTEST -n N -r 4 -t 16"),
    same("ibv_srq_pingpong", "ibv_srq_pingpong PINGPONG -n N", always=False),
    Case("rping", "rping -s -a SERVER -C N -V", "rping -c -a SERVER -C N -V", asks=False),
    Case("ucmatose", "ucmatose -C 10 -c 4", "ucmatose -s SERVER -C 10 -c 4", asks=False),
    Case("rdma_client", "rdma_server", "rdma_client -s SERVER", asks=False, always=False),
    # Our own program above libibverbs: every operation, and faults at both ends. Its client connects a used queue pair again, at once; rxe keeps
    # the number of such a one, and a peer in time-wait refuses that.
    Case("conformance", "weft-port-party serve", "weft-port-party SERVER", asks=False, always=False, ready="listening", by=("kernel",)),
    same("ib_send_lat.ud", "ib_send_lat PERFTEST -n N -c UD", repaired=False, asks=False),
    same("ib_send_bw.ud", "ib_send_bw PERFTEST -n N -c UD -s 1024", repaired=False, asks=False),
    same("ibv_ud_pingpong", "ibv_ud_pingpong PINGPONG -n N", repaired=False, asks=False),
    Case("udaddy", "udaddy -C 10 -c 4", "udaddy -s SERVER -C 10 -c 4", repaired=False, asks=False),
    same("ib_write_bw.uc", "ib_write_bw PERFTEST -n N -c UC", repaired=False, asks=False),
    same("ibv_uc_pingpong", "ibv_uc_pingpong PINGPONG -n N", repaired=False, asks=False),
)
SIDES = {"kernel": {"PERFTEST": "-d rxe0 -x 1 -F", "PINGPONG": "-d rxe0 -g 1"}, "weft": {"PERFTEST": "-F", "PINGPONG": "-g 0"}}


def chosen(impaired):
    """The cases of a run, each with who serves."""
    return [(f"{c.name}.{who}_serves", c, who) for c in CASES for who in c.by if not impaired or (c.always and c.repaired)]


def plan(names, options, times, seconds, impaired):
    """The file /cases: those of the names."""
    def command(text, side, server):
        words = {**SIDES[side], "N": str(times), "SERVER": server}
        text = " ".join(words.get(word, word) for word in text.split())
        return text if side == "kernel" else f"/usr/bin/ip netns exec weft /weft/weft run --addr {WEFT} {options} -- {text}"

    lines = []
    for name, case, who in chosen(impaired):
        if name in names:
            other = "weft" if who == "kernel" else "kernel"
            at = KERNEL if who == "kernel" else WEFT
            lines.append(f"pair {name} {seconds} 'exec {command(case.server, who, at)}' 'exec {command(case.client, other, at)}' '{case.ready}'\n")
    return "".join(lines)


def mode_of(options):
    """A line @mode with what `weft stat` says of a queue pair that is connected to the kernel's."""
    return f"mode '/usr/bin/ip netns exec weft /weft/weft run --addr {WEFT} {options} --'\n"
