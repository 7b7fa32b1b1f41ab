"""The programs that the soft NIC is tried with, as Debian packages them, and what each is asked for.

A client has variants: what its server's end runs, and what its client's. One row of the matrix is a client, a variant, and one
value of each factor: the mode, the loss in percent, the wire, the number of shards. Some rows make no sense (nothing repairs a
datagram), and clients say so by the values that they leave out.
"""
import dataclasses
import itertools

MODES = ("roce", "irn", "srnic")
LOSSES = ("0", "1")
WIRES = ("auto", "udp")  # auto is shared memory where both ends are of one host
SHARDS = ("1", "2")
PLAIN = "plain"


@dataclasses.dataclass(frozen=True)
class Row:
    client: str
    variant: str
    mode: str
    loss: str
    wire: str
    shards: str

    @property
    def name(self):
        program = self.client if self.variant == PLAIN else f"{self.client}.{self.variant}"
        return f"{program}.{self.mode}.loss_{self.loss}.{self.wire}" + ("" if self.shards == "1" else ".two_shards")


@dataclasses.dataclass(frozen=True)
class Client:
    name: str
    variants: dict  # what the server runs, and what the client does
    modes: tuple = MODES
    losses: tuple = LOSSES
    wires: tuple = WIRES
    flags: tuple = ()  # of what runs it
    harness: str = "pair"  # run_pair.py on loopback; veth: run_veth.py between two namespaces; alone: it starts both ends itself
    covered: bool = True  # False: not part of the cover, for it takes long or is not always there
    unrepaired: tuple = ()  # variants over UC and UD: there is no mode to choose, and nothing may be lost

    def rows(self):
        for variant in self.variants:
            modes, losses = (("roce",), ("0",)) if variant in self.unrepaired else (self.modes, self.losses)
            for values in itertools.product(modes, losses, self.wires, SHARDS if self.covered else SHARDS[:1]):
                yield Row(self.name, variant, *values)


def alike(words):
    """Both ends run the same, the client with the server's address."""
    return words, f"{words} @SERVER"


def one(name, serve, ask, **limits):
    return Client(name, {PLAIN: (serve, ask)}, **limits)


def perftest(name, *variants):
    words = {
        PLAIN: "-n 200",
        "all_sizes": "-a -n 5",
        "cm": "-R -n 200",
        "events": "-e -n 200",
        "64_pairs": "-q 64 -n 5",
        "both_ways": "-b -n 200",
        "shared_receives": "--use-srq -n 200" + (" -q 4" if name.endswith("bw") else ""),
        "compare_and_swap": "-A CMP_AND_SWAP -n 200",
        "uc": "-c UC -n 200",
        "ud": "-c UD -n 200",
    }
    return Client(name, {variant: alike(f"{name} {words[variant]}") for variant in (PLAIN, *variants)}, unrepaired=("uc", "ud"))


def fio(verb, depth):
    # Its sender retries no refusal, so its receiver posts as much as it may.
    words = f"fio --name=x --ioengine=rdma --port=18700 --bs=64k --size=16m --verb={verb}"
    return f"{words} --rw=read --iodepth={depth}", f"{words} --rw=write --iodepth=8 --hostname=@SERVER"


def ucx(transports, test):
    start = f"env UCX_TLS={transports},self UCX_NET_DEVICES=weft0:1 ucx_perftest -p 13400"
    return start, f"{start} @SERVER -t {test}"


def ranks(launcher):
    """What mpiexec of one MPI starts; both of Debian's run over UCX, and would share memory of their own if they were let."""
    return f"env UCX_TLS={RC_OVER_UCX},self UCX_NET_DEVICES=weft0:1 MPIR_CVAR_NOLOCAL=1 {launcher} -n 3 @RANKS"


RC_OVER_UCX = "rc_verbs,ud_verbs:aux"
STREAM = "-S 20000 -C 20 -I 20 -T v"
# It watches the last byte of its memory, so it wants WRITEs to arrive in order.
IOSTREAM = "env WEFT_WRITE_ORDER=strict riostream -S 20000 -C 5 -I 20 -T v"
UNREPAIRED = {"modes": ("roce",), "losses": ("0",)}
SERVES_ON = ("--server-stays",)

CLIENTS = (
    one("ibv_rc_pingpong", *alike("ibv_rc_pingpong -g 0 -c -n 300")),
    one("ibv_srq_pingpong", *alike("ibv_srq_pingpong -g 0 -n 300")),
    one("ibv_uc_pingpong", *alike("ibv_uc_pingpong -g 0 -c -n 300"), **UNREPAIRED),
    one("ibv_ud_pingpong", *alike("ibv_ud_pingpong -g 0 -c -n 300"), **UNREPAIRED),
    perftest("ib_send_bw", "all_sizes", "cm", "events", "64_pairs", "both_ways", "shared_receives"),
    perftest("ib_send_lat", "all_sizes", "cm", "events", "shared_receives", "ud"),
    perftest("ib_write_bw", "all_sizes", "cm", "64_pairs", "both_ways", "uc"),
    perftest("ib_write_lat", "all_sizes", "cm"),
    perftest("ib_read_bw", "all_sizes", "cm", "events", "64_pairs", "both_ways"),
    perftest("ib_read_lat", "all_sizes", "cm", "events"),
    perftest("ib_atomic_bw", "compare_and_swap", "cm", "events", "64_pairs", "both_ways"),
    perftest("ib_atomic_lat", "cm", "events"),
    one("rping", "rping -s -a @SERVER -C 20 -V", "rping -c -a @SERVER -C 20 -V"),
    one("ucmatose", "ucmatose -C 10 -c 8", "ucmatose -s @SERVER -C 10 -c 8"),
    one("udaddy", "udaddy -C 10 -c 4", "udaddy -s @SERVER -C 10 -c 4", **UNREPAIRED),
    # Groups go by UDP, and the connection manager's messages do too.
    one("mckey", "mckey -m 239.255.77.1 -c 2 -C 20", "mckey -m 239.255.77.1 -c 2 -C 20 -s", wires=("udp",), **UNREPAIRED),
    one("cmtime", "cmtime -c 100", "cmtime -s @SERVER -c 100", wires=("udp",), flags=SERVES_ON),
    one("rdma_client", "rdma_server", "rdma_client -s @SERVER"),
    one("rstream", f"rstream -b @SERVER {STREAM}", f"rstream -s @SERVER {STREAM}"),
    one("riostream", f"{IOSTREAM} -b @SERVER", f"{IOSTREAM} -s @SERVER"),
    one("rcopy", "rcopy", "sh -c 'rcopy @THIS @SERVER:@SCRATCH && cmp @THIS @SCRATCH'", flags=SERVES_ON),
    one("udpong", "udpong -b @SERVER -S 1000 -C 1000", "udpong -s @SERVER -S 1000 -C 1000", modes=("roce",), flags=SERVES_ON),
    # Without -cm it names its peer by LID, which RoCE has none of.
    one("qperf", "qperf", "qperf @SERVER -cm 1 -t 1 rc_lat rc_rdma_read_bw", flags=SERVES_ON),
    Client("fio", {"write": fio("write", 8), "read": fio("read", 8), "send": fio("send", 512)}, flags=("--keeps-device",)),
    Client("ucx_perftest", {
        "ud_tag_lat": ucx("ud_verbs", "tag_lat -n 200"),
        "rc_tag_bw": ucx(RC_OVER_UCX, "tag_bw -n 1000 -s 4096"),
        "rc_get": ucx(RC_OVER_UCX, "ucp_get -n 100 -s 262144"),
        "rc_put_lat": ucx(RC_OVER_UCX, "ucp_put_lat -n 200"),
        "rc_fetch_add": ucx(RC_OVER_UCX, "ucp_fadd -n 200"),
    }, flags=("--device-files",)),
    # It passes over loopback addresses.
    Client("fi_pingpong", {
        "msg": alike("fi_pingpong -p verbs -e msg -I 50"),
        "rdm": alike("fi_pingpong -p 'verbs;ofi_rxm' -e rdm -I 50"),
        "dgram": alike("fi_pingpong -p verbs -e dgram -I 50"),
    }, wires=("udp",), unrepaired=("dgram",), harness="veth", covered=False),
    Client("mpi", {PLAIN: (ranks("mpiexec.openmpi --allow-run-as-root --oversubscribe --mca pml ucx --mca osc ucx"), "")},
           flags=("--device-files",), harness="alone", covered=False),
    Client("mpich", {PLAIN: (ranks("mpiexec.mpich"), "")}, flags=("--device-files",), harness="alone", covered=False),
)
# What CI runs of clients that are not in the cover.
SAMPLES = ("fi_pingpong.msg.irn.loss_0.udp", "fi_pingpong.rdm.roce.loss_1.udp", "fi_pingpong.dgram.roce.loss_0.udp",
           "mpi.roce.loss_1.auto", "mpi.irn.loss_1.udp", "mpich.roce.loss_1.udp", "mpich.irn.loss_1.auto")


def rows():
    """The whole matrix."""
    return [row for client in CLIENTS for row in client.rows()]
