"""Each rule of the include check is broken once, and kept once where a near miss is legal."""
import unittest

import check_includes
from planted import PlantedTree


class Includes(PlantedTree):
    def found(self):
        return check_includes.check(self.root)

    def include(self, path, *headers):
        self.plant(path, "".join(f"#include {h}\n" for h in headers))

    def test_a_folder_may_include_itself_and_what_the_table_grants(self):
        self.include("src/core/transport/a.cc", '"core/transport/b.h"', '"core/wire/header.h"', "<vector>", "<tl/expected.hpp>")
        self.assertEqual(self.found(), [])

    def test_wire_may_not_include_transport(self):
        self.include("src/core/wire/a.cc", "<vector>", '"core/transport/device.h"')
        self.assert_found(self.found(), "src/core/wire/a.cc:2", "core/wire may not include core/transport/device.h")

    def test_the_table_is_closed_over(self):
        self.include("src/sim/world/a.cc", '"core/transport/device.h"', '"core/wire/header.h"', "<nlohmann/json.hpp>")
        self.assertEqual(self.found(), [])

    def test_observers_may_not_include_the_transport(self):
        self.include("src/check/a.h", '"core/transport/device.h"')
        self.assert_found(self.found(), "check may not include core/transport/device.h")

    def test_controllers_never_see_a_queue_pair(self):
        self.include("src/core/transport/cc/dcqcn.cc", '"core/transport/queue_pair.h"')
        self.assert_found(self.found(), "core/transport/cc may not include core/transport/queue_pair.h")

    def test_a_single_header_that_is_granted_opens_nothing_else(self):
        self.include("src/core/verbs/a.h", '"core/wire/header.h"', '"core/wire/codec.h"')
        self.assert_found(self.found(), "core/verbs may not include core/wire/codec.h")

    def test_lab_may_not_include_the_live_world(self):
        self.include("src/lab/a.cc", '"live/engine/nic.h"')
        self.assert_found(self.found(), "lab may not include live/engine/nic.h")

    def test_core_may_not_include_a_clock_a_thread_a_file_or_the_system(self):
        for header, group in (("<chrono>", "clock"), ("<mutex>", "thread"), ("<fstream>", "io"), ("<sys/socket.h>", "os"),
                              ("<time.h>", "clock")):
            with self.subTest(header):
                self.include("src/core/transport/a.cc", header)
                self.assert_found(self.found(), header, f"({group})")

    def test_live_reads_a_clock_but_nobody_gets_that_by_using_live(self):
        self.include("src/live/engine/a.cc", "<chrono>")
        self.assertEqual(self.found(), [])
        self.include("src/live/abi/a.cc", "<chrono>")
        self.assert_found(self.found(), "live/abi may not include <chrono>")

    def test_random_numbers_come_from_base_everywhere(self):
        self.include("src/live/engine/a.cc", "<random>")
        self.assert_found(self.found(), "(random)")

    def test_the_simulator_may_not_include_the_verbs_interface(self):
        self.include("src/sim/nic/a.cc", "<infiniband/verbs.h>")
        self.assert_found(self.found(), "(rdma)")

    def test_a_header_in_no_list_is_a_decision_to_write_down(self):
        self.include("src/sim/world/a.cc", "<boost/asio.hpp>")
        self.assert_found(self.found(), "boost/asio.hpp", "a decision")

    def test_an_include_by_bare_name_is_refused(self):
        self.include("src/core/wire/a.cc", '"codec.h"')
        self.assert_found(self.found(), "no path from src/")

    def test_a_folder_without_a_row_is_refused(self):
        self.include("src/novel/a.cc", "<vector>")
        self.assert_found(self.found(), "no row")

    def test_heavy_headers_stay_out_of_headers(self):
        self.include("src/record/a.h", "<nlohmann/json.hpp>")
        self.assert_found(self.found(), ".cc files only")

    def test_pcap_and_bpf_never_meet(self):
        self.include("src/live/wires/a.cc", "<pcap/pcap.h>", "<bpf/libbpf.h>")
        self.assert_found(self.found(), "pcap and xdp")

    def test_googletest_is_for_tests(self):
        self.include("src/core/wire/a_test.cc", "<gtest/gtest.h>")
        self.assertEqual(self.found(), [])
        self.include("src/core/wire/a.cc", "<gtest/gtest.h>")
        self.assert_found(self.found(), "(gtest)")

    def test_a_unit_test_obeys_its_folder_too(self):
        self.include("src/core/wire/a_test.cc", '"pair/pair.h"')
        self.assert_found(self.found(), "core/wire may not include pair/pair.h")

    def test_the_worlds_meet_in_differential_only_even_through_other_headers(self):
        self.include("tests/bench/both.h", '"sim/engine/event_queue.h"')
        self.include("src/cli/a.cc", '"cli/b.h"', '"live/engine/nic.h"')
        self.include("src/cli/b.h", '"sim/world/run.h"')
        self.assert_found(self.found(), "src/cli/a.cc", "live/engine/nic.h and sim/world/run.h")
        self.include("src/cli/a.cc", '"live/engine/nic.h"')
        self.include("tests/differential/a.cc", '"live/engine/nic.h"', '"sim/world/run.h"')
        self.assertEqual(self.found(), [])

    def test_an_include_in_a_comment_is_none(self):
        self.plant("src/core/wire/a.cc", '// #include <chrono>\n/*\n#include <thread>\n*/\n#include <vector>\n')
        self.assertEqual(self.found(), [])

    def test_a_target_may_link_what_its_folder_may_include_and_no_more(self):
        self.plant("src/core/base/CMakeLists.txt", "weft_library(NAME base PURE)")
        self.plant("src/core/wire/CMakeLists.txt", "weft_library(NAME wire\n  DEPS weft_base)")
        self.assertEqual(self.found(), [])
        self.plant("src/core/base/CMakeLists.txt", "weft_library(NAME base DEPS weft_wire)")
        self.assert_found(self.found(), "weft_base may not link weft_wire")

    def test_a_circle_in_the_table_is_refused(self):
        table = check_includes.Path(check_includes.__file__).with_name("layers.toml").read_text(encoding="utf-8")
        circle = table.replace('"core/base" = {', '"core/base" = { uses = ["core/wire"],')
        self.assertNotEqual(table, circle)
        self.plant("layers.toml", circle)
        with self.assertRaisesRegex(SystemExit, "circle"):
            check_includes.check(self.root, self.root / "layers.toml")


if __name__ == "__main__":
    unittest.main()
