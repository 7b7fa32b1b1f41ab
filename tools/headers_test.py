"""Builds a project of one header with cmake/headers.cmake: the good one passes, the bad ones do not."""
import shutil
import subprocess
import unittest
from pathlib import Path

from planted import PlantedTree

CMAKE = Path(__file__).resolve().parent.parent / "cmake"
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(planted LANGUAGES CXX)
add_library(weft_flags INTERFACE)
target_compile_features(weft_flags INTERFACE cxx_std_20)
include("{CMAKE.as_posix()}/headers.cmake")
weft_headers_alone(TARGET alone HEADERS src/a.h OPTIONS -fno-exceptions)
"""


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "no cmake or ninja")
class Headers(PlantedTree):
    def build(self, header):
        self.plant("CMakeLists.txt", PROJECT)
        self.plant("src/a.h", header)
        out = self.root / "build"
        subprocess.run(["cmake", "-S", self.root, "-B", out, "-G", "Ninja"], check=True, capture_output=True)
        return subprocess.run(["cmake", "--build", out, "--target", "alone"], capture_output=True, text=True, check=False)

    def test_only_a_header_that_includes_what_it_uses_and_is_guarded_compiles_alone(self):
        self.assertEqual(self.build("#pragma once\n#include <vector>\nstruct A { std::vector<int> v; };\n").returncode, 0)
        lacking = self.build("#pragma once\nstruct A { std::vector<int> v; };\n")
        self.assertNotEqual(lacking.returncode, 0)
        self.assertIn("vector", lacking.stdout)
        unguarded = self.build("struct A {};\n")
        self.assertNotEqual(unguarded.returncode, 0)
        self.assertIn("redefinition", unguarded.stdout)

    def test_the_options_of_the_folder_apply(self):
        self.assertNotEqual(self.build("#pragma once\ninline void f() { throw 1; }\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()
