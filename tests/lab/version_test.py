#!/usr/bin/env python3
"""What a recorded run is named by: the code that made it, and neither its comments nor its tests."""
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake/version.cmake"
CODE = """// What this file is.
#include <string>

// Why.
int f(int x) {
  const char* at = "http://a";  // where; [it] goes
  return x + 1;
}
"""


class Version(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.write("sim/a.cc", CODE)

    def write(self, name, text):
        path = self.folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def simulator(self):
        out = self.folder / "version.h"
        subprocess.run(["cmake", f"-DSOURCE={self.folder}", f"-DOUT={out}", "-DPROJECT_VERSION=1", "-P", SCRIPT], check=True)
        return re.search(r'WEFT_SIMULATOR "([0-9a-f]{12})"', out.read_text())[1]

    def test_comments_and_tests_name_no_other_simulator(self):
        before = self.simulator()
        self.write("sim/a.cc", "// More.\n" + CODE.replace("// Why.", "// Why so,\n// and not otherwise").replace("  // where; [it] goes", ""))
        self.write("sim/a_test.cc", "int main() {}\n")
        self.assertEqual(self.simulator(), before)

    def test_no_text_of_a_program_looks_like_a_comment(self):
        """The digest finds comments by their layout; a text that had it could change without a new name."""
        for path in sorted(p for p in (SCRIPT.parents[1] / "src").rglob("*") if p.suffix in (".cc", ".h") and "_test" not in p.name):
            text = path.read_text(encoding="utf-8")
            for raw in re.findall(r'R"\((.*?)\)"', text, re.S):
                self.assertNotIn("//", raw, path)
            for line in text.splitlines():
                code, comment, _ = line.partition("  //")
                if comment and not line.lstrip().startswith("//"):
                    quotes = re.findall(r'(?<!\\)"', code.replace("'\"'", ""))
                    self.assertEqual(len(quotes) % 2, 0, f"{path}: {line}")

    def test_every_change_of_the_code_names_another(self):
        seen = {self.simulator()}
        for change in [("x + 1", "x + 2"), ("http://a", "http://b"), ("return x", "// return x"), ("int f", "long f")]:
            self.write("sim/a.cc", CODE.replace(*change))
            seen.add(self.simulator())
        self.assertEqual(len(seen), 5)
        self.write("sim/a.cc", CODE)
        self.write("sim/b.cc", "")
        self.assertNotIn(self.simulator(), seen)


if __name__ == "__main__":
    unittest.main()
