"""The library as it is installed: the examples are built with pkg-config alone and run over the soft NIC."""
import os
import pathlib
import subprocess
import sys
import tempfile

WEFT, BUILD, SOURCE = sys.argv[1:4]
EXAMPLES = pathlib.Path(SOURCE, "examples/channel")


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, timeout=100, **more)


def start(address, *program):
    return subprocess.Popen([WEFT, "run", "--addr", address, "--", *program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def say(process, wanted, code=0):
    out, _ = process.communicate(timeout=60)
    if process.returncode != code or wanted not in out:
        sys.exit(f"{process.args}: code {process.returncode}, it said {out!r}, not {wanted!r}")


with tempfile.TemporaryDirectory(prefix="weft-installed-") as prefix:
    run("cmake", "--install", BUILD, "--component", "channel", "--prefix", prefix, stdout=subprocess.DEVNULL)
    env = dict(os.environ, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    flags = run("pkg-config", "--cflags", "--libs", "weft-channel", env=env, stdout=subprocess.PIPE).stdout.split()
    # The interface is C, so a C compiler reads it.
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"{EXAMPLES}/pingpong.c", "-o", f"{prefix}/pingpong", *flags, f"-Wl,-rpath,{prefix}/lib")
    run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"{EXAMPLES}/replication.cc", "-o", f"{prefix}/replication", *flags, f"-Wl,-rpath,{prefix}/lib")
    if len((EXAMPLES / "pingpong.c").read_text().splitlines()) > 50:
        sys.exit("ping-pong is longer than 50 lines")

    server = start("127.25.1.1", f"{prefix}/pingpong")
    if server.stdout.readline() != "listening\n":
        sys.exit("the server did not begin")
    say(start("127.25.1.2", f"{prefix}/pingpong", "127.25.1.1", "200"), "200 rounds")
    say(server, "the peer closed it")

    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"{SOURCE}/tests/channel/report.c", "-o", f"{prefix}/report", *flags, f"-Wl,-rpath,{prefix}/lib")
    server = start("127.25.1.1", f"{prefix}/pingpong")
    if server.stdout.readline() != "listening\n":
        sys.exit("the server did not begin")
    say(start("127.25.1.2", f"{prefix}/report", "127.25.1.1"), "127.25.1.1:4711")
    say(server, "the peer closed it")

    servers = [start(f"127.25.1.{i}", f"{prefix}/replication") for i in (11, 12, 13)]
    for s in servers:
        if s.stdout.readline() != "listening\n":
            sys.exit("a chunk server did not begin")
    say(start("127.25.1.14", f"{prefix}/replication", "127.25.1.11", "127.25.1.12", "127.25.1.13"), "64 blocks, 3 copies each")
    for s in servers:
        say(s, "64 blocks")

    # Nobody is there.
    say(start("127.25.1.2", f"{prefix}/pingpong", "127.25.1.1", "1"), "nothing came of it in time", code=1)
