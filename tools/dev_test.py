"""./dev with a system of stubs around it: what it installs, what it refuses, and where its CI stops."""
import os
import re
import subprocess
import tomllib
import unittest
from pathlib import Path

from planted import PlantedTree

DEV = Path(__file__).resolve().parent.parent / "dev"


class Dev(PlantedTree):
    def setUp(self):
        super().setUp()
        self.script = DEV.read_text(encoding="utf-8")
        self.bin = self.root / "bin"
        # Every package but those named in MISSING is installed; apt-get says what it was asked.
        self.stub("dpkg-query", 'for p in "$@"; do case " $MISSING " in *" $p "*) ;; *) echo "ii $p";; esac; done')
        self.stub("apt-get", 'echo "apt-get $*"')
        self.stub("id", 'echo "$WHO"')

    def stub(self, name, body):
        self.plant(f"bin/{name}", f"#!/bin/bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    def stages(self, *stages):
        listed = "STAGES=(\n" + "".join(f'  "{stage}"\n' for stage in stages) + ")\n"
        self.script = re.sub(r"^STAGES=\(\n.*?^\)\n", lambda _: listed, self.script, flags=re.S | re.M)

    def dev(self, *arguments, missing="", who="0", path=None):
        self.plant("dev", self.script)
        environment = {"PATH": path or f"{self.bin}:{os.environ['PATH']}", "MISSING": missing, "WHO": who}
        return subprocess.run(["bash", str(self.root / "dev"), *arguments], capture_output=True, text=True, check=False,
                              env=environment, stdin=subprocess.DEVNULL)

    def assert_refused(self, result, *parts):
        self.assertEqual(result.returncode, 2, result)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("dev: ") and result.stderr.endswith(".\n"), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_set_up_installs_what_is_missing_by_name_and_says_so(self):
        result = self.dev("setup", missing="ninja-build mold")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("dev: installing 2 Debian packages: mold ninja-build", result.stdout)
        self.assertRegex(result.stdout, r"apt-get install .* mold ninja-build\n")

    def test_set_up_leaves_the_system_alone_when_all_is_there(self):
        result = self.dev("setup")
        self.assertEqual(result.returncode, 0, result)
        self.assertNotIn("apt-get", result.stdout)

    def test_print_lists_packages_and_does_nothing(self):
        result = self.dev("setup", "--print", missing="mold")
        self.assertEqual(result.returncode, 0, result)
        self.assertNotIn("apt-get", result.stdout)
        self.assertIn("libisal-dev\n", result.stdout)

    def test_without_root_it_asks_sudo_and_without_sudo_it_says_so(self):
        self.stub("sudo", 'echo "sudo $*"')
        result = self.dev("setup", missing="mold", who="1000")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("sudo apt-get update", result.stdout)
        self.assertNotIn("\napt-get", result.stdout)
        # A path that has the tools that set-up uses, and no sudo.
        (self.bin / "sudo").unlink()
        for tool in ("bash", "sed", "sort", "comm", "wc", "nproc", "dirname", "readlink", "env"):
            (self.bin / tool).symlink_to(subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip())
        self.assert_refused(self.dev("setup", missing="mold", who="1000", path=str(self.bin)), "needs root", "no sudo")

    def test_what_cannot_be_is_refused_in_one_sentence(self):
        for arguments, part in ((["frobnicate"], "frobnicate"), (["setup", "--all"], "--all"), (["bench"], "name a benchmark"),
                                (["fuzz", "--seconds", "0"], "from 1 to"), (["ci", "nostage"], "nostage"), (["fmt", "--fix"], "--fix"),
                                (["install", "--prefix"], "--prefix"), (["install", "--prefix="], "--prefix needs a folder"),
                                (["install", "--prefix", ""], "--prefix needs a folder"), (["test", "--bogus"], "--bogus"),
                                (["test", "-R"], "-R needs a value"), (["test", "wire"], "not 'wire'"), (["install", "--to", "x"], "--to"), (["mutants"], "mutants")):
            with self.subTest(arguments):
                self.assert_refused(self.dev(*arguments), part)

    def test_help_has_an_example_for_every_verb(self):
        shown = self.dev("help").stdout
        verbs = re.findall(r"^verb_(\w+)\(\)", self.script, flags=re.M)
        self.assertGreaterEqual(len(verbs), 12)
        for verb in verbs:
            self.assertRegex(shown, rf"(?m)^  {verb} .*\./dev {verb}")

    def test_every_verb_explains_itself_and_does_nothing_else(self):
        self.plant("tests/bench/live.py", "")
        self.plant("tests/bench/wire_bench.cc", "")
        self.plant("tests/fuzz/decode_fuzz.cc", "")
        for verb in re.findall(r"^verb_(\w+)\(\)", self.script, flags=re.M):
            for arguments in ([verb, "--help"], [verb, "-h"], ["help", verb]):
                with self.subTest(arguments):
                    result = self.dev(*arguments, missing="ninja-build")
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    if verb != "help" or arguments == ["help", "help"]:
                        self.assertTrue(result.stdout.startswith(f"{verb} "), result.stdout)
                    self.assertNotIn("apt-get", result.stdout)
                    if verb != "help":
                        self.assertGreaterEqual(result.stdout.count("\n"), 2, "its line, and more")
        self.assertIn("There are: live wire.", self.dev("bench", "--help").stdout)
        self.assertIn("decode, each", self.dev("fuzz", "--help").stdout)
        self.assertIn("./dev swarm", self.dev("ci", "--help").stdout)
        self.assert_refused(self.dev("help", "frobnicate"), "frobnicate")

    def test_what_is_not_there_is_refused_with_what_is_before_anything_is_built(self):
        self.plant("tests/bench/live.py", "")
        self.plant("tests/bench/wire_bench.cc", "")
        self.plant("tests/fuzz/decode_fuzz.cc", "")
        self.assert_refused(self.dev("bench", "tcp"), "no benchmark 'tcp'; there are: live wire.")
        self.assert_refused(self.dev("bench"), "there are: live wire.")
        self.assert_refused(self.dev("fuzz", "encode", missing="ninja-build"), "no fuzz target 'encode'; there are: decode.")

    def test_a_build_before_a_run_is_said_when_it_takes_long(self):
        self.plant("build/build.ninja", "")
        self.stub("ninja", "exit 0")
        self.plant("build/weft-swarm", "#!/bin/bash\necho ran $*\n")
        (self.root / "build/weft-swarm").chmod(0o755)
        for seconds, said in (("1.5", r"dev: building weft-swarm .*\n"), ("0", "")):
            self.stub("cmake", f"sleep {seconds}")
            result = self.dev("swarm", "--seeds", "3")
            self.assertEqual(result.stdout, "ran --seeds 3\n")
            self.assertRegex(result.stderr, f"^{said}$")

    def test_ci_ends_with_the_count_of_the_test_stage(self):
        self.plant("closing", "50% tests passed\n100% tests passed, 0 tests failed out of 7\n\nTotal Test time\n")
        self.stages("one true", "test cat closing", "two true")
        result = self.dev("ci")
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"one +\d+ s\n  test +\d+ s\n  two +\d+ s\n")
        self.assertTrue(result.stdout.endswith("\n100% tests passed, 0 tests failed out of 7\n"), result.stdout)

    def test_ci_stops_at_the_first_stage_that_fails_and_names_its_command(self):
        self.stages("one true", "two ls /no/such/file", "three true")
        result = self.dev("ci")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("FAILED", result.stdout)
        self.assertNotIn("stage three", result.stdout)
        self.assertTrue(result.stdout.endswith("dev: stage 'two' failed; 'ls /no/such/file' reproduces it.\n"), result.stdout)

    def test_a_test_stage_without_a_count_fails_ci(self):
        self.stages("test true")
        result = self.dev("ci")
        self.assertEqual(result.returncode, 1)
        self.assertIn("counted no test", result.stdout)

    def test_the_thread_sanitizer_looks_at_every_part_that_may_have_threads(self):
        listed = re.search(r"^    targets=(\(live_.*\))$", self.script, re.M)[1]
        targets = subprocess.run(["bash", "-c", f'list={listed}; echo "${{list[*]}}"'], capture_output=True, text=True, check=True).stdout.split()
        layers = tomllib.loads((DEV.parent / "tools/layers.toml").read_text(encoding="utf-8"))["folder"]
        threaded = {name.replace("/", "_") for name, layer in layers.items() if "thread" in layer.get("system", [])}
        self.assertIn("live_engine", threaded)
        self.assertLessEqual(threaded, set(targets))


if __name__ == "__main__":
    unittest.main()
