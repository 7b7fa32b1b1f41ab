"""weft adm over real processes: programs that run take parameters, one that sleeps and one that spins; what is refused is said."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile

from stage import WEFT, Actor, expect, pages, until, weft


def parameters(pid):
    return next(p for p in pages(pid) if p["kind"] == "channels")["parameter"][0]


def version(pid):
    return next(p for p in pages(pid) if p["kind"] == "channels")["context"][0]["adm_version"]


def refusal(*words):
    done = subprocess.run([WEFT, "adm", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    expect(done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, words, done)
    return done.stderr


with tempfile.TemporaryDirectory() as folder:
    os.environ["WEFT_PARAMETERS"] = f"{folder}/weft/parameters"  # neither file nor folder is there yet
    path = pathlib.Path(os.environ["WEFT_PARAMETERS"])

    # A sleeper waits in weft_wait until something happens, a spinner polls, and has a value of its own for one parameter.
    with Actor("127.0.4.21", "rest", 100) as sleeper, Actor("127.0.4.22", "doze", 100, "polling_warn_cycle=5000") as spinner:
        until("their pages are there", lambda: len(pages(sleeper.pid)) == 2 and len(pages(spinner.pid)) == 2)
        expect(version(sleeper.pid) == 0 and parameters(sleeper.pid)["slow_threshold"] == 0)
        name = pages(sleeper.pid)[0]["command"]

        expect(weft("adm", "set", "slow_threshold=1234", "polling_warn_cycle=0x10", "--wait", 20) == "version 1\n")
        for a in (sleeper, spinner):
            expect(parameters(a.pid)["slow_threshold"] == 1234, parameters(a.pid))
            expect(parameters(a.pid)["polling_warn_cycle"] == 16, parameters(a.pid))
        # For programs of one name alone, and before what is for all.
        weft("adm", "set", f"{name}/slow_threshold=99", "nobody/nop_us=77", "--wait", 20)
        for a in (sleeper, spinner):
            expect(parameters(a.pid)["slow_threshold"] == 99 and parameters(a.pid)["nop_us"] == 5000)
        # A program that begins later has them from the start.
        with Actor("127.0.4.23", "serve", 100, "nop_us=4000") as late:
            until("its page is there", lambda: len(pages(late.pid)) == 2)
            until("it has them", lambda: version(late.pid) == 2)
            expect(parameters(late.pid)["slow_threshold"] == 99 and parameters(late.pid)["nop_us"] == 4000)
        # What is no longer set goes back to what the program chose itself.
        weft("adm", "unset", "polling_warn_cycle", f"{name}/slow_threshold", "--wait", 20)
        expect(parameters(spinner.pid)["polling_warn_cycle"] == 5000 and parameters(sleeper.pid)["polling_warn_cycle"] == 0)
        expect(parameters(sleeper.pid)["slow_threshold"] == 1234)

        # What cannot be is one sentence, and changes nothing.
        expect("depth is fixed when a context is made" in refusal("set", "nop_us=1", "depth=8"))
        expect("the nearest is 'slow_threshold'" in refusal("set", "slow_treshold=1"))
        expect("it must be a whole number" in refusal("set", "nop_us=soon"))
        expect("it must be more than zero" in refusal("set", "nop_us=0"))
        expect("is not set" in refusal("unset", "nop_us"))
        expect(json.loads(weft("adm", "get", "-j"))["version"] == 3)

        # A file that is wrong, or that others may write, changes nothing either; its next change counts.
        path.write_text("weft parameters 1\nversion 9\nnop_us=soon\n")
        os.chmod(path, 0o666)
        path.write_text("weft parameters 1\nversion 10\nnop_us=1\n")
        expect("others may write it" in refusal("set", "nop_us=5"))
        path.unlink()
        until("without a file it has its own", lambda: parameters(sleeper.pid)["slow_threshold"] == 0)
        # An offline parameter, or one of another version, that somebody wrote there himself: the rest is taken.
        path.write_text("weft parameters 1\nversion 11\ndepth=8\nnot_yet=1\nnop_us=6000\nack_delay_us=99999999999\n")
        until("the sound line is taken", lambda: parameters(sleeper.pid)["nop_us"] == 6000)
        expect(parameters(sleeper.pid)["depth"] == 32 and parameters(sleeper.pid)["ack_delay_us"] == 50)
        mine = next(p for p in json.loads(weft("adm", "get", "-j"))["programs"] if p["pid"] == sleeper.pid)
        expect(mine["refused"] == 2 and mine["version"] == 11, mine)
        expect(f"{name}[{sleeper.pid}]: version 11, refused 2\n  nop_us=6000\n" in weft("adm", "get", "nop_us"))

        # watch tells what is set now, and each change.
        with subprocess.Popen([WEFT, "adm", "watch", "-j", "-n", "2"], stdout=subprocess.PIPE, text=True) as watch:
            expect(json.loads(watch.stdout.readline())["version"] == 11)
            weft("adm", "unset", "nop_us")
            expect("nop_us" not in json.loads(watch.stdout.readline())["settings"])
            expect(watch.wait(timeout=20) == 0)

        # A program that is stopped has not taken it: set says so, and it takes it when it goes on.
        os.kill(sleeper.pid, signal.SIGSTOP)
        weft("adm", "set", "nop_us=7000", "--wait", 0.3, code=1)
        expect("has not taken the newest" in weft("adm", "get"))
        os.kill(sleeper.pid, signal.SIGCONT)
        until("it goes on", lambda: parameters(sleeper.pid)["nop_us"] == 7000)

    # A program that nobody is to administer.
    os.environ["WEFT_PARAMETERS"] = "0"
    with Actor("127.0.4.24", "serve", 100) as own:
        os.environ["WEFT_PARAMETERS"] = str(path)
        until("its page is there", lambda: len(pages(own.pid)) == 2)
        expect(version(own.pid) == 0 and parameters(own.pid)["nop_us"] == 5000)
print("as it should be")
