#!/usr/bin/env python3
"""Who gets a second try from ./dev test, seen over small folders of tests that ctest runs for real."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/second_try.py"


class SecondTry(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_of(self, **commands):
        """Tests by name, each with its shell command; a name that begins with live_ has the machine to itself."""
        text = ""
        for name, command in commands.items():
            (self.folder / f"{name}.sh").write_text(command)
            text += f"add_test({name} sh {self.folder}/{name}.sh)\n"
            if name.startswith("live_"):
                text += f"set_tests_properties({name} PROPERTIES RUN_SERIAL TRUE)\n"
        (self.folder / "CTestTestfile.cmake").write_text(text)
        run = subprocess.run(["ctest", "--test-dir", self.folder], capture_output=True, check=False)
        self.assertNotEqual(run.returncode, 0, "a test was to fail")
        return subprocess.run([sys.executable, "-B", TOOL, self.folder], capture_output=True, text=True, timeout=60, check=False)

    def passes_later(self, name):
        return f"echo first words of {name}; cd {self.folder}; test -e {name}.ran && exit 0; touch {name}.ran; exit 1"

    def test_a_live_test_that_passes_at_the_second_try_is_named_and_its_output_shown(self):
        run = self.run_of(live_a=self.passes_later("live_a"), other="exit 0")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("first words of live_a", run.stdout)
        self.assertIn("Passed at the second try only: live_a.", run.stdout)
        self.assertEqual(run.stdout.splitlines()[-1], "100% tests passed, 0 tests failed out of 2")

    def test_without_the_log_there_is_no_second_try(self):
        self.run_of(live_a="exit 1", other="exit 0")
        (self.folder / "live_a.sh").write_text("exit 0")
        (self.folder / "Testing/Temporary/LastTest.log").write_text("")
        (self.folder / "Testing/Temporary/LastTestsFailed.log").write_text("1:live_a\n")
        run = subprocess.run([sys.executable, "-B", TOOL, self.folder], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("live_a failed. The log is lost", run.stdout)
        self.assertNotIn("tests passed", run.stdout)

    def test_a_live_test_that_fails_twice_has_failed(self):
        run = self.run_of(live_a="echo no; exit 1")
        self.assertEqual(run.returncode, 1)
        self.assertNotIn("Passed at the second try", run.stdout)

    def test_a_test_of_state_machines_has_no_second_try(self):
        run = self.run_of(logic=self.passes_later("logic"), live_a=self.passes_later("live_a"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("first words of logic", run.stdout)
        self.assertNotIn("a second try for", run.stdout)

    def test_four_live_ones_are_no_accident(self):
        run = self.run_of(**{f"live_{i}": self.passes_later(f"live_{i}") for i in range(4)})
        self.assertEqual(run.returncode, 1)
        self.assertNotIn("a second try for", run.stdout)

    def test_a_long_output_is_cut_to_its_end(self):
        run = self.run_of(logic="seq 1 500; exit 1")
        self.assertIn("\n500\n", run.stdout)
        self.assertNotIn("\n440\n", run.stdout)


if __name__ == "__main__":
    unittest.main()
