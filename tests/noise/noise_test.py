"""The shim of ./dev noise: every call that it knows naps, a seed makes the same choices again, and it leaves alone what it is told to.

    noise_test.py SHIM CALLS [unittest's options]
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SHIM, CALLS = sys.argv[1:3]
SOURCE = (Path(__file__).parent / "noise.cc").read_text(encoding="utf-8")
KNOWN = [*re.findall(r"^NOISE_CALL\([\w ]+, (\w+),", SOURCE, flags=re.M), "futex"]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run  # noqa: E402


class Shim(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def calls(self, call, count=40, fork=False, **knobs):
        """What naps `count` of a call made, and how many microseconds they took."""
        log = Path(self.folder.name) / "log"
        log.unlink(missing_ok=True)
        settings = {f"NOISE_{name.upper()}": str(value) for name, value in knobs.items()}
        done = subprocess.run([CALLS, call, str(count), *(["fork"] if fork else [])], capture_output=True, text=True, check=False,
                              env={**os.environ, "LD_PRELOAD": SHIM, "NOISE_LOG": str(log), **settings})
        self.assertEqual(done.returncode, 0, f"{call}: {done}")
        name, took = done.stdout.split()
        self.assertEqual(name, call)
        return log.read_text().splitlines() if log.exists() else [], int(took)

    def test_every_call_naps_before_and_after_and_keeps_its_errno(self):
        self.assertGreaterEqual(len(KNOWN), 20)
        for call in KNOWN:
            with self.subTest(call):
                naps, took = self.calls(call, one_in=1, nap=1000, seed=3)
                ours = [line for line in naps if line.endswith(f" {call}")]
                where = collections.Counter(line.split()[-2] for line in ours)
                self.assertGreaterEqual(where["before"], 40)
                self.assertGreaterEqual(where["after"], 40)
                told = sum(int(line.split()[4]) for line in ours)
                self.assertGreaterEqual(took, told * 0.9, "it says that it slept, and did not")

    def test_a_seed_makes_the_same_choices_again_and_another_one_others(self):
        first, _ = self.calls("read", 2000, one_in=50, nap=200, seed=7)
        self.assertTrue(30 < len(first) < 160, first)
        self.assertEqual(self.calls("read", 2000, one_in=50, nap=200, seed=7)[0], first)
        self.assertNotEqual(self.calls("read", 2000, one_in=50, nap=200, seed=8)[0], first)

    def test_a_forked_child_naps_by_choices_of_its_own(self):
        naps, _ = self.calls("read", 500, one_in=10, nap=100, seed=7)
        child, _ = self.calls("read", 500, fork=True, one_in=10, nap=100, seed=7)
        self.assertGreater(len(child), 20)
        self.assertNotEqual(child, naps)

    def test_no_nap_is_longer_than_it_may_be(self):
        naps, _ = self.calls("poll", 300, one_in=1, nap=50)
        self.assertLessEqual(max(int(line.split()[4]) for line in naps), 50)

    def test_what_it_is_told_to_leave_alone_does_not_nap(self):
        for leave, some in ((f"sh,{Path(CALLS).name}", False), ("sh,weft-noise", True)):
            naps, _ = self.calls("read", one_in=1, nap=10, leave=leave)
            self.assertEqual(bool(naps), some, leave)

    def test_a_knob_that_is_no_number_is_refused(self):
        done = subprocess.run([CALLS, "read", "1"], capture_output=True, text=True, check=False,
                              env={**os.environ, "LD_PRELOAD": SHIM, "NOISE_NAP": "5ms"})
        self.assertEqual((done.returncode, done.stderr), (2, "noise: NOISE_NAP=5ms is no number\n"))


class Runner(unittest.TestCase):
    def test_what_is_left_out_has_a_reason_and_is_left_out(self):
        names = ["interop.rping.irn.loss_0", "interop.veth.mtu_9000", "live_engine.Context.Anything", "transport.Device.Anything"]
        chosen, without = run.choose(names, run.DEFAULT, 5000, 50)
        self.assertEqual(chosen, ["interop.rping.irn.loss_0", "live_engine.Context.Anything"])
        self.assertEqual([name for name, _ in without], ["interop.veth.mtu_9000"])
        for _, reason in run.LEFT_OUT:
            self.assertGreater(len(reason.split()), 3)

    def test_a_test_of_many_calls_is_left_out_where_its_naps_are_too_long(self):
        name = "live_wires.Shm.NoBellIsMissed"
        self.assertEqual(run.choose([name], run.DEFAULT, 3000, 10), ([name], []))
        chosen, without = run.choose([name], run.DEFAULT, 30000, 10)
        self.assertEqual((chosen, [left for left, _ in without]), ([], [name]))

    def a_folder(self, program):
        """Of one test: in the folder of the tests that run now a second ctest would take the first one's log away."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "CTestTestfile.cmake").write_text(f"add_test([=[live_noise]=] sh -c [==[{program}]==])\n")
        return str(folder)

    def test_what_cannot_be_is_refused_in_one_sentence(self):
        folder = self.a_folder("true")
        for arguments, part in ((["--nap", "0"], "--nap"), (["--one-in", "x"], "--one-in"), (["--times", "0"], "--times"), (["-R", "("], "-R"),
                                (["--frob"], "--frob"), (["-R", "no_such_test_at_all"], "no_such_test_at_all")):
            with self.subTest(arguments):
                done = subprocess.run([sys.executable, "-B", str(HERE / "run.py"), folder, "--shim", str(Path(SHIM).resolve()), *arguments],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done)
                self.assertIn(part, done.stderr)

    def test_a_test_that_fails_under_naps_is_shown_with_its_output_and_its_seed(self):
        """ctest over a folder with one test, which fails where naps are long."""
        folder = self.a_folder(f'grep -q {Path(SHIM).name} /proc/self/maps && echo "it has $NOISE_SEED" && test $NOISE_NAP = 1')
        for nap, code in ((1, 0), (3000, 1)):
            done = subprocess.run([sys.executable, "-B", str(HERE / "run.py"), folder, "--shim", str(Path(SHIM).resolve()), "--nap", str(nap),
                                   "--one-in", "2", "--seed", "9", "--times", "2", "-R", "live_"], capture_output=True, text=True, check=False)
            if "namespaces may not be made" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, code, done)
        for seed in (9, 10):
            self.assertIn(f"it has {seed}\n", done.stdout)
            self.assertIn(f"./dev noise -R '^live_noise$' --nap 3000 --one-in 2 --seed {seed}\n", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
