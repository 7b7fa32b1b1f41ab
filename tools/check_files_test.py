"""Each rule of check_files.py is broken once."""
import unittest

import check_files
from planted import PlantedTree


class Files(PlantedTree):
    def test_a_file_past_a_thousand_lines_is_refused_and_one_past_five_hundred_is_noted(self):
        self.plant("src/a.cc", "// Prose.\n" * 1001)
        self.plant("src/b.cc", "// Prose.\n" * 1000)
        self.plant("src/c.cc", "// Prose.\n" * 500)
        notes = []
        self.assert_found(check_files.check(self.root, notes), "src/a.cc", "1001 lines")
        self.assert_found(notes, "src/b.cc", "seam")

    def test_a_file_opens_with_prose(self):
        self.plant("src/a.h", "#pragma once\n")
        self.assert_found(check_files.check(self.root), "src/a.h", "without prose")
        self.plant("src/a.h", "// What it is.\n#pragma once\n")
        self.assertEqual(check_files.check(self.root), [])

    def test_a_source_leaves_the_prose_to_its_header(self):
        self.plant("src/a.cc", '#include "a.h"\n')
        self.assert_found(check_files.check(self.root), "src/a.cc", "without prose")
        self.plant("src/a.h", "// What it is.\n#pragma once\n")
        self.assertEqual(check_files.check(self.root), [])

    def test_a_header_is_guarded(self):
        self.plant("src/a.h", "// What it is.\n")
        self.assert_found(check_files.check(self.root), "#pragma once")


if __name__ == "__main__":
    unittest.main()
