"""The two sides of the conformance program, each in a process of its own with libibverbs over the soft NIC."""
import subprocess
import sys

WEFT, PARTY = sys.argv[1:3]
SERVER, CLIENT = "127.26.3.1", "127.26.3.2"


def start(address, mode, who):
    return subprocess.Popen([WEFT, "run", "--addr", address, "--mode", mode, "--", PARTY, who], stdout=subprocess.PIPE, text=True)


for mode in ("roce", "irn", "srnic"):
    server = start(SERVER, mode, "serve")
    if server.stdout.readline() != "listening\n":
        sys.exit(f"{mode}: the server did not begin")
    client = start(CLIENT, mode, SERVER)
    codes = client.wait(30), server.wait(30)
    print(mode, codes)
    if codes != (0, 0):
        sys.exit(1)
