"""Each row of words.toml is broken once, with a near miss that is legal. A row without an example fails."""
import unittest

import check_words
from planted import PlantedTree

# (path, line that is refused, line that is not, part of the advice)
EXAMPLES = [
    ("src/core/base/a.cc", "auto t = std::chrono::steady_clock::now();", "// no steady_clock here", "time is a parameter"),
    ("src/sim/world/a.cc", "clock_gettime(CLOCK_MONOTONIC, &t);", "my_clock_gettime_count(t);", "time is a parameter"),
    ("src/live/wires/a.cc", "std::random_device seed;", "int random_devices = 0;", "Prng"),
    ("src/cli/a.cc", "int x = rand();", "int operand(0);", "Prng"),
    ("tests/a.cc", "std::uniform_int_distribution<int> d;", "flow_size_distribution d;", "differ between libraries"),
    ("src/core/base/a.h", "std::function<void()> f;", "function<void()> f;", "template parameter"),
    ("src/sim/fabric/a.cc", "  static int calls = 0;", "  static constexpr int kCalls = 0;", "a member"),
    ("src/sim/fabric/a.cc", "int f() { static int calls = 0; return ++calls; }", "int f() { static_assert(true); return 1; }", "a member"),
    ("src/sim/fabric/a.cc", "static std::vector<int> seen;", "static std::vector<int> seen(int n);", "a member"),
    ("src/sim/fabric/a.cc", "thread_local Buffer buffer{};", "static const Row kRows[] = {", "a member"),
    ("src/sim/fabric/a.h", "using namespace std;", "using std::vector;", "namespace out"),
    ("src/sim/fabric/a_test.cc", "#define private public", "#define public_private", "through the interface"),
    ("docs/a.md", "TODO write this", "TODO(ann): until this is written nobody can replay a seed.", "do it now"),
    ("src/live/wires/a.cc", "// FIXME", "// prefixme", "do it now"),
    ("src/sim/a.cc", "class QueueManager {", "class Queue {", "noun of the paper"),
    ("cmake/a.cmake", "add_compile_options(-march=native)", "add_compile_options(-march=x86-64-v2)", "other machines"),
    ("docs/a.md", "look in /home/ann/weft", "a/home/run and https://x.y/home/z", "one machine"),
    ("dev", "cd /work/tree", "cd build/work/tree", "one machine"),
    ("dev", "curl https://registry.npmjs.org/x", "the registry. Another sentence", "not the hosts"),
    ("src/core/base/a_test.cc", "TEST(Seq, wraps_around) {", "TEST_P(SeqTest, WrapsAroundAt16) {", "CamelCase"),
    ("src/core/base/a_test.cc", "TEST_F(SeqTest, Wraps_At16) {", "TEST(Seq, Wraps) {", "CamelCase"),
    ("README.md", "see ../shared/notes.md", "see docs/shared.md", "document of this tree"),
]
NAMES = [("src/sim/queue_manager.cc", "src/sim/managed_queue.cc"), ("src/util/a.cc", "src/futile/a.cc"), ("tools/helpers.py", "tools/help.py")]


class Words(PlantedTree):
    def found(self):
        return check_words.check(self.root)

    def test_every_example_is_found_once_with_its_advice_and_its_near_miss_is_not(self):
        for path, bad, good, advice in EXAMPLES:
            with self.subTest(bad):
                self.plant(path, f"first line\n{bad}\n")
                self.assert_found(self.found(), f"{path}:2", advice)
                self.plant(path, f"first line\n{good}\n")
                self.assertEqual(self.found(), [])
                (self.root / path).unlink()

    def test_file_names_without_a_noun_are_refused(self):
        for bad, good in NAMES:
            with self.subTest(bad):
                self.plant(good, "\n")
                self.assertEqual(self.found(), [])
                self.plant(bad, "\n")
                self.assert_found(self.found(), bad, "after the thing in it")
                (self.root / bad).unlink()

    def test_every_row_has_an_example_above(self):
        words = check_words.load()
        for word in words:
            with self.subTest(word["find"]):
                if word["where"] == "name":
                    self.assertTrue(any(word["pattern"].search(bad) for bad, _ in NAMES))
                else:
                    self.assertTrue(any(word["pattern"].search(bad) for _, bad, _, _ in EXAMPLES))

    def test_comments_and_strings_are_no_use_of_a_thing(self):
        self.plant("src/core/base/a.cc", '/* rand()\n rand() */ const char* s = "rand()"; // rand()\nauto r = R"x(rand())x";\n')
        self.assertEqual(self.found(), [])
        self.plant("src/core/base/a.cc", "/* one */ int x = rand(); // two\n")
        self.assert_found(self.found(), ":1", "rand")

    def test_digit_separators_do_not_hide_the_code_behind_them(self):
        self.plant("src/core/base/a.cc", "int n = 1'000'000 + rand();\n")
        self.assert_found(self.found(), "rand")

    def test_live_may_read_a_clock(self):
        self.plant("src/live/engine/a.cc", "steady_clock::now();\n")
        self.assertEqual(self.found(), [])


if __name__ == "__main__":
    unittest.main()
