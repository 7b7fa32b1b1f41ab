#!/usr/bin/env python3
"""The Linux kernel's RoCE (rxe) as a peer: a guest with Debian's kernel on an emulated processor, in it rxe at one end of a virtual Ethernet
and weft at the other (guest_init.sh), and Debian's programs between them, both ways (guest_cases.py).

    run_guest.py KERNEL-FOLDER WEFT PARTY [--only WORD] [--impair "--loss in=1%,out=1%" --expect line_dropped,tx_retransmitted]

./dev setup --kernel installs what it needs. Without it the exit code is 77, with a sentence.

What is judged: both programs' exit codes; of `weft --stats on`, that each frame of the kernel's is a RoCE packet with a right ICRC, that what
--expect names happened, and that weft asked the kernel what it speaks no more than three times, and only where it has to ask; of `weft stat`
that the mode is roce then. The kernel checks our ICRCs: what it drops is missing.

A case in which the kernel asks may be tried twice: rxe's repetition after a time-out is wrong now and then (docs/INTEROP.md#what-rxe-repeats).

The guest's clock counts the processor's instructions (QEMU's -icount), so a busy machine makes a run longer and changes no time-out in it.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import guest_cases
from guest_image import Image, Kernel

SKIPPED = 77
QEMU = "qemu-system-x86_64"
MODULES = ("crc32_generic", "veth", "ib_uverbs", "rdma_rxe", "rdma_ucm")
# Frames that are no packets of the protocol. Impairments that flip bits make some, so --expect may name them.
NEVER = ("rx_icrc", "rx_short", "rx_opcode", "rx_mode", "rx_pad", "rx_payload", "raw_ip_checksum", "raw_udp_length", "raw_udp_checksum")


def missing(kernel):
    for program in (QEMU, "busybox"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if kernel.image is None:
        return f"there is no kernel in {kernel.folder}"
    return next((f"{p} is not installed" for p in ("ip", "rdma", *guest_cases.PROGRAMS) if shutil.which(p) is None), None)


def build(path, a, kernel, cases):
    here = pathlib.Path(__file__).parent
    weft = pathlib.Path(a.weft).resolve()
    image = Image(path)
    image.text("/init", (here / "guest_init.sh").read_text())
    image.text("/cases", cases)
    image.text("/mtu", f"{a.mtu}\n")
    image.copy(shutil.which("busybox"), "/bin/busybox")
    image.modules(kernel, MODULES)
    for program in ("ip", "rdma", *guest_cases.PROGRAMS):
        image.program(shutil.which(program), f"/usr/bin/{program}")
    image.program(weft, "/weft/weft")
    image.program(a.party, "/usr/bin/weft-port-party")
    for library in (weft.parent / "lib/weft").glob("lib*.so.1"):
        image.program(library, f"/weft/lib/weft/{library.name}")
    # The system's libibverbs finds what drives rxe by these.
    driver, = pathlib.Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so")
    image.program(driver)
    image.copy("/etc/libibverbs.d/rxe.driver")
    image.close()


def boot(a, kernel, folder, cases):
    """What the guest wrote on its two serial lines."""
    build(f"{folder}/initrd", a, kernel, cases)
    command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", "512", "-cpu", "max", "-accel", "tcg",
               "-icount", "shift=0,sleep=off", "-kernel", str(kernel.image), "-initrd", f"{folder}/initrd",
               "-append", "console=ttyS0 quiet panic=-1", "-serial", f"file:{folder}/console", "-serial", f"file:{folder}/results"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        process.wait(a.seconds)
    except subprocess.TimeoutExpired:
        print(f"the guest did not end in {a.seconds:.0f} seconds")
    finally:
        process.kill()
        process.wait()
    return tuple(pathlib.Path(f"{folder}/{name}").read_text(errors="replace").replace("\r", "") for name in ("console", "results"))


def counters(text):
    return {name: int(value) for name, value in re.findall(r"weft: (\w+) +(\d+) ", text)}


def judge(case, closes, codes, counted, expected):
    """What is wrong with a case, a sentence each."""
    wrong = [f"{who}'s exit code is {code}" for who, code in zip(("client", "server"), codes) if code != "0"]
    if not counted:
        return [*wrong, "weft counted nothing"] if closes else wrong
    wrong += [f"{name} {counted[name]}" for name in NEVER if counted.get(name) and name not in expected]
    asked = counted.get("cap_queries", 0)
    if case.asks and not 1 <= asked <= 3:
        wrong.append(f"weft asked {asked} times what the kernel speaks")
    if not case.asks and asked:
        wrong.append("weft asked without need what the kernel speaks")
    return wrong


def report(a, chosen, results, console, whole):
    """Prints a line for each case; the names of those that failed, and what is wrong besides, with a `whole` table."""
    told = {name: (body, codes.split()) for name, body, codes in
            re.findall(r"^@case (\S+)\n(.*?)^@ended \S+ ([^\n]*)$", results, re.MULTILINE | re.DOTALL)}
    total, failed = {}, []
    for name, case, who in chosen:
        body, codes = told.get(name, ("", ["missing", "missing", "0"]))
        counted = counters(body)
        for key, value in counted.items():
            total[key] = total.get(key, 0) + value
        wrong = judge(case, case.closes or who == "kernel", codes[:2], counted, a.expect)
        print(f"{'FAILED' if wrong else 'passed'}  {name:34} {codes[2]:>3} s of the guest  {'; '.join(wrong)}")
        if wrong:
            failed.append(name)
            print(body)
    problems = re.findall(r"^@trouble .*$", results, re.MULTILINE) + [f"{name} is 0" for name in a.expect if whole and not total.get(name)]
    if a.mode == "auto" and whole and not re.search(r"^@mode roce$", results, re.MULTILINE):
        problems.append("weft stat does not show the mode roce")
    if not re.search(r"^@done$", results, re.MULTILINE):
        problems.append(f"the guest did not reach its end; its console says:\n{console[-4000:]}")
    print(*problems, sep="\n")
    print("counted in all:", ", ".join(f"{name} {total[name]}" for name in sorted(total)))
    return failed, problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel", help="folder of an unpacked kernel package")
    parser.add_argument("weft")
    parser.add_argument("party", help="the program weft-port-party")
    parser.add_argument("--wire", default="packet")
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--impair", default="", help="options of weft run that make the network worse")
    parser.add_argument("--expect", default=[], type=lambda text: text.split(","), help="counters that must not stay 0")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--times", type=int, default=20, help="how often each program does what it does")
    parser.add_argument("--only", default="", help="cases whose names contain this pattern")
    parser.add_argument("--each", type=int, default=60, help="seconds of the guest that a case may take")
    parser.add_argument("--seconds", type=float, default=1100, help="seconds that everything may take")
    parser.add_argument("--keep", help="a folder for what the guest wrote")
    a = parser.parse_args()
    kernel = Kernel(a.kernel)
    reason = missing(kernel)
    if reason:
        print(f"skipped: {reason}; ./dev setup --kernel installs it")
        return SKIPPED
    chosen = [row for row in guest_cases.chosen(bool(a.impair)) if re.search(a.only, row[0])]
    options = f"--wire {a.wire} --mode {a.mode} {a.impair} --seed 7 --stats on"
    print(f"kernel {kernel.version}")
    for attempt in range(2):
        cases = guest_cases.plan([name for name, _, _ in chosen], options, a.times, a.each, bool(a.impair))
        if attempt == 0:
            cases += guest_cases.mode_of(options)
        with tempfile.TemporaryDirectory() as folder:
            console, results = boot(a, kernel, a.keep or folder, cases)
        failed, problems = report(a, chosen, results, console, attempt == 0)
        again = [row for row in chosen if row[0] in failed and row[2] == "weft"]
        if attempt == 1 or problems or len(again) != len(failed) or not failed:
            break
        print("once more, because rxe asked:", *failed)
        chosen = again
    return 1 if failed or problems else 0


if __name__ == "__main__":
    sys.exit(main())
