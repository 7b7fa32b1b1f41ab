"""What a benchmark spends itself is not held against the machine, what others spend is."""
import subprocess
import sys
import unittest

from busy import MOST, Busy

SPIN = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"


class BusyTest(unittest.TestCase):
    def test_a_child_that_was_waited_for_adds_nothing_to_what_others_had(self):
        # A machine that others use anyway says nothing here: so the same second without the child is the yardstick.
        def measured(words):
            busy = Busy()
            subprocess.run([sys.executable, "-c", words], check=True)
            return busy.share()
        others = min(measured("import time; time.sleep(1.5)") for _ in range(2))
        self.assertLess(min(measured(SPIN) for _ in range(3)), others + 0.15)

    def test_a_program_that_nobody_waited_for_is_another_ones(self):
        other = subprocess.Popen([sys.executable, "-c", SPIN + "\ntime.sleep(60)"])
        try:
            busy = Busy()
            subprocess.run([sys.executable, "-c", "import time; time.sleep(1.5)"], check=True)
            self.assertGreater(busy.share(), MOST)
        finally:
            other.kill()
            other.wait()


if __name__ == "__main__":
    unittest.main()
