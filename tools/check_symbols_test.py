"""Compiles small objects that break a rule of the symbol gate each, and some that come close and may."""
import platform
import shutil
import subprocess
import unittest

import check_symbols
from planted import PlantedTree


@unittest.skipUnless(shutil.which("g++") and shutil.which("objdump"), "no g++ or objdump")
class Symbols(PlantedTree):
    def found(self, source, name="a.cc"):
        self.plant(name, source)
        built = self.root / (name + ".o")
        subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", "-c", str(self.root / name), "-o", str(built)], check=True)
        return check_symbols.judge(check_symbols.Rules(), check_symbols.objdump(built), "planted")

    def test_each_kind_of_symbol_is_refused_with_its_reason(self):
        for kind, headers, call, symbol in (
            ("clock", "chrono", "return (int)std::chrono::steady_clock::now().time_since_epoch().count();", "steady_clock"),
            ("clock", "ctime", "return (int)std::time(nullptr);", "time"),
            ("socket", "sys/socket.h", "return socket(2, 2, 0);", "socket"),
            ("file", "cstdio", "return std::fopen(\"x\", \"r\") != nullptr;", "fopen"),
            ("file", "cstdlib", "return std::getenv(\"x\") != nullptr;", "getenv"),
            ("thread", "pthread.h", "pthread_mutex_t m; return pthread_mutex_lock(&m);", "pthread_mutex_lock"),
            ("thread", "unistd.h", "return fork();", "fork"),
            ("random", "cstdlib", "return std::rand();", "rand"),
            ("process", "cstdlib", "std::abort();", "abort"),
            ("table", "cmath", "volatile double x = 2; return (int)std::log(x);", "log"),
        ):
            with self.subTest(symbol):
                self.assert_found(self.found(f"#include <{headers}>\nint f() {{ {call} }}\n"), symbol, f"a {kind} symbol")

    def test_a_random_device_is_refused(self):
        findings = self.found("#include <random>\nunsigned f() { std::random_device d; return d(); }\n")
        self.assertTrue(any("a random symbol" in finding for finding in findings), findings)

    def test_an_unknown_symbol_is_a_decision(self):
        self.assert_found(self.found("extern \"C\" int novel();\nint f() { return novel(); }\n"), "novel", "a decision")

    def test_core_may_not_ask_for_a_world(self):
        self.assert_found(self.found("namespace weft::live { int now(); }\nint f() { return weft::live::now(); }\n"), "weft::live::now", "a decision")

    def test_a_variable_is_refused_wherever_it_hides(self):
        for source in ("int calls = 7; int f() { return ++calls; }", "int calls; int f() { return ++calls; }",
                       "int f() { static int calls = 0; return ++calls; }", "thread_local int calls = 1; int f() { return ++calls; }"):
            with self.subTest(source):
                findings = self.found(source + "\n")
                self.assertTrue(any("calls" in finding and "static storage" in finding for finding in findings), findings)

    def test_constants_even_those_that_hold_pointers_are_none(self):
        self.assertEqual(self.found("int g(int);\nstruct Row { const char* name; int (*f)(int); };\nextern const Row kRows[];\n"
                                    "namespace weft { int h(int); }\nconst Row kRows[] = {{\"h\", weft::h}};\n"), [])

    def test_memory_and_containers_are_allowed(self):
        self.assertEqual(self.found("#include <vector>\n#include <string>\n#include <map>\n"
                                    "std::map<int, std::string> f(int n) { std::map<int, std::string> m; m[n] = std::string(99, 'x'); return m; }\n"), [])

    def test_check_may_print_and_abort_and_nobody_else(self):
        source = "#include <cstdio>\n#include <cstdlib>\nvoid f(int n) { std::fprintf(stderr, \"%d\", n); std::abort(); }\n"
        self.assertEqual(self.found(source, "check.cc"), [])
        self.assertEqual(len(self.found(source, "a.cc")), 3)

    def test_a_gate_that_finds_no_objects_says_so(self):
        findings = check_symbols.check(self.root)
        self.assertEqual(len(findings), 5)
        self.assertIn("build first", findings[0])

    def locked(self, source, *options):
        self.plant("b.cc", source)
        built = self.root / "libb.so"
        subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", *options, str(self.root / "b.cc"), "-o", str(built)], check=True)
        return check_symbols.locks_of(check_symbols.Rules(), built, "planted")

    @unittest.skipUnless(platform.machine() == "x86_64", "other instructions")
    def test_a_lock_is_refused_however_it_is_written(self):
        for source, why in (
            ("#include <atomic>\nvoid f(std::atomic<int>& n) { n.fetch_add(1, std::memory_order_relaxed); }", "lock"),
            ("#include <atomic>\nint f(std::atomic<int>& n) { return n.exchange(1); }", "xchg"),
            ("#include <atomic>\nvoid f(std::atomic<int>& n) { n.store(1); }", "xchg"),
            ("#include <atomic>\nbool f(std::atomic<bool>& n) { bool no = false; return n.compare_exchange_strong(no, true); }", "lock cmpxchg"),
            ("#include <atomic>\nvoid f() { std::atomic_thread_fence(std::memory_order_seq_cst); }", "lock or"),
            ("void f() { asm volatile(\"mfence\"); }", "mfence"),
            ("#include <memory>\nvoid f(std::shared_ptr<int>& to, const std::shared_ptr<int>& from) { to = from; }", "lock"),
            ("#include <mutex>\nvoid f(std::mutex& m) { std::lock_guard held(m); }", "pthread_mutex_lock"),
            ("#include <condition_variable>\nvoid f(std::condition_variable& c) { c.notify_one(); }", "std::condition_variable::notify_one"),
            ("#include <semaphore.h>\nint f(sem_t* s) { return sem_post(s); }", "sem_post"),
            ("#include <unistd.h>\nlong f() { return syscall(39); }", "syscall"),
            ("long f() { long a = 39; asm volatile(\"syscall\" : \"+a\"(a) : : \"rcx\", \"r11\"); return a; }", "syscall"),
        ):
            with self.subTest(source):
                findings = self.locked(source + "\n")
                self.assertTrue(any(why in finding for finding in findings), findings)

    @unittest.skipUnless(platform.machine() == "x86_64", "other instructions")
    def test_what_needs_no_lock_is_none(self):
        self.assertEqual(self.locked("#include <atomic>\n#include <memory>\n#include <vector>\n"
                                     "int load(std::atomic<int>& n) { return n.load(); }\n"
                                     "void store(std::atomic<int>& n) { n.store(1, std::memory_order_release); }\n"
                                     "int swap(int* a, int* b) { int c = *a; *a = *b; *b = c; return c; }\n"
                                     "std::unique_ptr<std::vector<int>> make() { return std::make_unique<std::vector<int>>(9); }\n"), [])

    @unittest.skipUnless(platform.machine() == "x86_64", "other instructions")
    def test_a_function_that_may_lock_is_named(self):
        source = "#include <atomic>\nnamespace weft::page { int %s(int place) { static std::atomic<int> n; return n.exchange(place); } }\n"
        self.assertEqual(self.locked(source % "let_go"), [])
        self.assert_found(self.locked(source % "let_stay"), "weft::page::let_stay(int)", "xchg")

    def test_instructions_that_nobody_knows_are_a_finding(self):
        listing = "b.so:     file format elf64-littleaarch64\n\n0000000000000000 <f>:\n   0:\tldaxr w0, [x1]\n"
        self.assertEqual(len(check_symbols.judge_locks(check_symbols.Rules(), "", listing, "planted")), 1)
        empty = "b.so:     file format elf64-x86-64\n"
        self.assertEqual(len(check_symbols.judge_locks(check_symbols.Rules(), "", empty, "planted")), 1)


if __name__ == "__main__":
    unittest.main()
