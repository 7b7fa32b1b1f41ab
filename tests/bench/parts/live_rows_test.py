"""Numbers are read from what the programs print, and where there are none the benchmark says so."""
import unittest

import live_rows

UCX = """+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
|     Test     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
                        2000      0.237     1.500     2.700     1000.00     900.00        1049         369
"""
CMTIME = """step              total ms     max ms     min us  us / conn
create id    :        0.02       0.00       0.00       0.24
resolve addr :        5.46       1.55    1488.00      54.64
resolve route:        0.26       0.09      17.00       2.57
create qp    :        1.49       0.18       5.00      14.90
connect      :        3.14       2.25     569.00      31.41
disconnect   :        7.57       0.35      31.00      75.68
"""


class Numbers(unittest.TestCase):
    def test_ucx_says_microseconds_and_mebibytes(self):
        self.assertEqual(live_rows.ucx_number(UCX, "tag_lat"), 1.5)
        self.assertAlmostEqual(live_rows.ucx_number(UCX, "tag_bw"), 8.388608)

    def test_a_header_is_no_number(self):
        with self.assertRaisesRegex(SystemExit, "no row of numbers"):
            live_rows.ucx_number(UCX.rsplit("\n", 2)[0], "tag_lat")

    def test_steps_of_connections_are_totals(self):
        self.assertEqual(live_rows.cm_steps(CMTIME),
                         {"resolve addr": 5.46, "resolve route": 0.26, "create qp": 1.49, "connect": 3.14})

    def test_what_is_not_there_is_said(self):
        with self.assertRaisesRegex(SystemExit, "cmtime printed no number"):
            live_rows.cm_steps("connection refused")

    def test_ratios_are_of_rows_that_there_are(self):
        known = set(live_rows.ROWS) | {"weft_128_pairs_gbps", "weft_10000_pairs_gbps", "weft_cm_4096_connections_s",
                                      "weft_cm_first_connection_us", "weft_cm_one_connection_us"}
        for name, (row, to, _) in live_rows.RATIOS.items():
            self.assertLessEqual({row, to}, known, name)
        self.assertLessEqual(set(live_rows.LIMITS), known)


if __name__ == "__main__":
    unittest.main()
