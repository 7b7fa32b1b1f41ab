"""Every command with an output that cannot be written: it says so in one sentence and ends with exit code 1.

A table of commands, walked once for a full standard output, once for a closed one, and once with files that may not
grow, as on a full disk (a limit on file sizes acts alike and needs no rights). A command of `weft --help` that is
not in the table fails the test.
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
from tiny import beginning  # noqa: E402

WEFT, SWARM, FABRICS, EXAMPLES = sys.argv[1:5]
SCENARIO = f"{EXAMPLES}/two-hosts.toml"
SHORT = ["--set", "flow.count=20"]
PAIR = ["pair", "--modes", "irn", "--loss", "0", "--count", "20"]

# What prints something, by command; `weft run` becomes the program that it runs, and prints only its help.
SWEEP = ["nic", "sweep", "srnic", "--qps", "1,4", "--messages", "50"]
PRINTING = {
    "run": [["run", "--help"]],
    "sim": [["sim", "--help"], ["sim", "--list"], ["sim", SCENARIO, *SHORT], ["sim", SCENARIO, *SHORT, "--json"]],
    "pair": [PAIR, [*PAIR, "--json"]],
    "lab": [["lab", "list"], ["lab", "list", "--json"], ["lab", "show", "--quick", "computed", "--out", "{tmp}"],
            ["lab", "run", "--quick", "tiny", "--out", "{tmp}/out"],
            ["lab", "compare", "{tmp}/done/lab.db", "{tmp}/done/lab.db"],
            ["lab", "report", "{tmp}/page.html", "tiny", "--out", "{tmp}/done"]],
    "nic": [["nic", "memory", "srnic"], ["nic", "memory", "srnic", "-j"], ["nic", "explain", "srnic"], SWEEP, [*SWEEP, "-j"]],
    "wan": [["wan", "plan"], ["wan", "plan", "--table"], ["wan", "plan", "-j"]],
    "replay": [["replay", "1"], ["replay", "1", "--quiet"]],
    "ping": [["ping", "--help"]],
    "perf": [["perf", "--help"]],
    "bench": [["bench", "--help"], ["bench", "channel", "--help"]],
    "stat": [["stat"], ["stat", "-j"]],
    "monitor": [["monitor", "--once"]],
    "adm": [["adm", "list"], ["adm", "list", "-j"], ["adm", "get"], ["adm", "get", "-j"]],
    "doctor": [["doctor"], ["doctor", "-j"]],
}
PROGRAMS = [[WEFT, "--help"], [WEFT, "--version"], [SWARM, "--seeds", "3"], [SWARM, "--help"], [FABRICS, "--print", "1"],
            [FABRICS, "--seeds", "2"]]
# What writes files, and which.
WRITING = [
    (["sim", SCENARIO, "--set", "flow.count=4000", "--out", "{tmp}/x"], ["x/summary.json", "x/flows.csv", "x/ports.csv"]),
    (["sim", SCENARIO, *SHORT, "--trace", "{tmp}/t.pcapng"], ["t.pcapng"]),
    (["sim", SCENARIO, *SHORT, "--db", "{tmp}/new.db"], []),
    (["replay", "1", "--quiet", "--trace", "{tmp}/t.pcapng"], ["t.pcapng"]),
    ([*PAIR, "--plot", "{tmp}/p.svg"], ["p.svg"]),
    (["nic", "explain", "srnic", "--svg", "{tmp}/e.svg"], ["e.svg"]),
    ([*SWEEP, "--svg", "{tmp}/s.svg"], ["s.svg", "s.csv"]),
    (["wan", "plan", "--svg", "{tmp}/w.svg"], ["w.svg", "w.csv"]),
    (["lab", "run", "--quick", "tiny", "--out", "{tmp}/done", "--fresh"], []),
    (["lab", "report", "{tmp}/r.html", "tiny", "--out", "{tmp}/done"], ["r.html", "r.json"]),
]
SCENARIO_TEXT = "hosts = 2\n[network]\nrate = '100Gbps'\n[[flow]]\nfrom = 0\nto = 1\ncount = 20\n"
TINY = beginning("Tiny", 1, "tiny") + """
[[variant]]
name = 'irn'
set = ['transport.mode=irn']
[[claim]]
id = 'c'
statement = 's'
paper = 'p'
reproduced = '> 0'
[[claim.measure]]
metric = 'goodput'
of = 'irn'
[[plot]]
name = 'goodput'
metrics = ["goodput"]
"""
COMPUTED = """title = 'Numbers'
group = 'numbers'
[[claim]]
id = 'bdp'
statement = 's'
paper = 'p'
[[claim.measure]]
account = 'irn-bdp'
reproduced = [118, 122]
"""


# The address sanitizer reserves more memory than any limit leaves, and sets none itself.
SANITIZED = b"__asan_init" in Path(WEFT).read_bytes()


def small_files(most):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write then fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    return limit


class Output(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)
        (self.tmp / "lab/scenarios").mkdir(parents=True)
        (self.tmp / "lab/tiny.toml").write_text(TINY)
        (self.tmp / "lab/computed.toml").write_text(COMPUTED)
        (self.tmp / "lab/scenarios/pair.toml").write_text(SCENARIO_TEXT)
        self.assertEqual(self.run_weft(["lab", "run", "--quick", "tiny", "--out", "{tmp}/done"]).returncode, 0)

    def command(self, arguments):
        all_ = [WEFT, *(a.replace("{tmp}", str(self.tmp)) for a in arguments)]
        return [*all_, "--dir", str(self.tmp / "lab")] if arguments[0] == "lab" else all_

    def run_weft(self, arguments, **how):
        return subprocess.run(self.command(arguments), capture_output=True, text=True, check=False, timeout=60, **how)

    def assert_said(self, done, *parts, code=1):
        self.assertEqual(done.returncode, code, (done.args, done.stderr))
        said = [line for line in done.stderr.splitlines() if " runs executed in " not in line and not line.startswith("weft: [")]
        self.assertEqual(len(said), 1, (done.args, done.stderr))
        self.assertRegex(said[0], r"^weft[a-z-]*: .*\.$")
        for part in parts:
            self.assertIn(part, said[0])

    def printing(self):
        yield from PROGRAMS
        for commands in PRINTING.values():
            yield from (self.command(c) for c in commands)

    def test_every_command_is_in_the_table(self):
        shown = self.run_weft(["--help"]).stdout
        self.assertEqual(set(re.findall(r"(?m)^  ([a-z]+) {2,}\S", shown[shown.index("Subcommands:"):])), set(PRINTING))

    def test_a_full_standard_output_is_said(self):
        for command in self.printing():
            with self.subTest(command), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
                self.assert_said(done, "standard output could not be written to its end: No space left on device")

    def test_a_closed_standard_output_is_said_and_no_file_takes_its_place(self):
        commands = [*self.printing(), self.command(["sim", SCENARIO, *SHORT, "--trace", "{tmp}/t.pcapng"])]
        for command in commands:
            with self.subTest(command):
                done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True,
                                      check=False, timeout=60)
                self.assert_said(done, "standard output could not be written to its end: Bad file descriptor")
        self.assertEqual((self.tmp / "t.pcapng").read_bytes()[:4], b"\x0a\x0d\x0d\x0a")
        self.assertNotIn(b"Gb/s", (self.tmp / "t.pcapng").read_bytes())

    def test_a_full_disk_is_said_and_leaves_nothing_that_looks_whole(self):
        for arguments, files in WRITING:
            with self.subTest(arguments):
                for f in files:
                    (self.tmp / f).parent.mkdir(exist_ok=True)
                    (self.tmp / f).write_text("of an older run")
                code = 2 if arguments[-1].endswith("new.db") else 1  # a record is made before anything runs
                self.assert_said(self.run_weft(arguments, preexec_fn=small_files(300), restore_signals=False), code=code)
                for f in files:
                    if (self.tmp / f).exists():
                        self.assertEqual((self.tmp / f).read_text(), "of an older run")
                self.assertEqual([p for p in self.tmp.rglob("*.part")], [])
        self.assertFalse((self.tmp / "x/summary.json").exists(), "an older summary beside what?")

    def test_with_room_the_same_commands_write_their_files(self):
        for arguments, files in WRITING:
            with self.subTest(arguments):
                done = self.run_weft(arguments)
                self.assertEqual(done.returncode, 0, done.stderr)
                for f in files:
                    self.assertGreater((self.tmp / f).stat().st_size, 60, f)
                self.assertEqual([p for p in self.tmp.rglob("*.part")], [])

    def test_a_file_that_takes_nothing_is_said(self):
        for arguments in (["sim", SCENARIO, *SHORT, "--trace", "/dev/full"], ["replay", "1", "--quiet", "--trace", "/dev/full"]):
            self.assert_said(self.run_weft(arguments), "--trace: '/dev/full' could not be written to its end: No space")
        self.assertEqual(self.run_weft(["sim", SCENARIO, *SHORT, "--trace", "/dev/null"]).returncode, 0)

    def test_an_interrupted_run_leaves_no_older_summary(self):
        self.assertEqual(self.run_weft(["sim", SCENARIO, *SHORT, "--out", "{tmp}/x"]).returncode, 0)
        long = self.command(["sim", SCENARIO, "--set", "flow.count=100000000", "--out", "{tmp}/x"])
        with subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            until = time.monotonic() + 20
            while (self.tmp / "x/summary.json").exists() and child.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            child.kill()
        self.assertFalse((self.tmp / "x/summary.json").exists())
        self.assertTrue((self.tmp / "x/flows.csv.part").exists())

    def test_a_link_stays_a_link(self):
        (self.tmp / "real").write_text("old")
        (self.tmp / "link").symlink_to(self.tmp / "real")
        self.assertEqual(self.run_weft(["replay", "1", "--quiet", "--trace", "{tmp}/link"]).returncode, 0)
        self.assertTrue((self.tmp / "link").is_symlink())
        self.assertGreater((self.tmp / "real").stat().st_size, 100)

    def test_an_input_without_an_end_is_refused(self):
        traffic = "hosts=16\n[topology]\nkind='fat-tree'\nk=4\n[[traffic]]\npattern='trace'\ntrace='/dev/zero'\n"
        (self.tmp / "endless.toml").write_text(traffic)
        self.assert_said(self.run_weft(["sim", "/dev/zero"]), "'/dev/zero' is longer than", code=2)
        self.assert_said(self.run_weft(["sim", "{tmp}/endless.toml"]), "'/dev/zero' cannot be read", code=2)

    @unittest.skipIf(SANITIZED, "the address sanitizer needs more memory than the limit")
    def test_memory_that_is_not_there_is_a_sentence(self):
        def little():
            resource.setrlimit(resource.RLIMIT_DATA, (48 << 20, 48 << 20))
        for arguments in (["sim", SCENARIO, "--set", "flow.count=100000000"], ["pair", "--count", "100000000", "--size", "1"]):
            self.assert_said(self.run_weft(arguments, preexec_fn=little), "out of memory")

    @unittest.skipIf(SANITIZED, "no limit is set under the address sanitizer")
    @unittest.skipUnless(os.path.exists("/proc/self/limits"), "limits are read from /proc")
    def test_a_run_may_take_what_the_machine_has_free_and_no_more(self):
        long = self.command(["sim", SCENARIO, "--set", "flow.count=100000000"])
        with subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            limit = "unlimited"
            until = time.monotonic() + 20
            while limit == "unlimited" and child.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
                limits = Path(f"/proc/{child.pid}/limits").read_text(encoding="utf-8")
                limit = re.search(r"Max data size +(\S+)", limits).group(1)
            child.kill()
        self.assertNotEqual(limit, "unlimited")
        total = int(re.search(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8")).group(1))
        self.assertLess(int(limit), 2 * 1024 * total)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
