"""What the swarms tell the people who start them: help, mistakes, and how far they are."""
import os
import pty
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:3]


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


class Shell(unittest.TestCase):
    def test_help_names_every_option_with_an_example(self):
        for program in PROGRAMS:
            for help_ in ("--help", "-h"):
                done = run(program, help_)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for part in ("--seeds", "--start", "--jobs", "Example: "):
                    self.assertIn(part, done.stdout)
        self.assertIn("--print", run(PROGRAMS[1], "--help").stdout)

    def test_a_mistake_is_one_sentence(self):
        for program in PROGRAMS:
            for arguments, part in ((["--seed", "7"], "--seed is not --seeds"), (["--seeds"], "a number is missing"),
                                    (["--seeds", "-5"], "'-5' is not a whole number")):
                done = run(program, *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_terminal_is_told_how_far_it_is(self):
        for program, seeds in zip(PROGRAMS, ("600", "120")):  # a second or so
            ours, theirs = pty.openpty()
            with subprocess.Popen([program, "--seeds", seeds], stdout=subprocess.DEVNULL, stderr=theirs) as child:
                os.close(theirs)
                said = b""
                while True:
                    try:
                        piece = os.read(ours, 4096)
                    except OSError:  # its end is closed
                        break
                    if not piece:
                        break
                    said += piece
                self.assertEqual(child.wait(), 0)
            os.close(ours)
            self.assertRegex(said.decode(), rf"swarm: \d+ of {seeds} worlds")

    def test_a_log_of_a_short_run_is_not(self):
        self.assertEqual(run(PROGRAMS[0], "--seeds", "50").stderr, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
