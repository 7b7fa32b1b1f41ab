#!/usr/bin/env python3
"""The matrix says what it means: the cover misses no pair and stays small, commands are whole, the table counts."""
import collections
import contextlib
import dataclasses
import io
import itertools
import os
import sys
import tempfile
import unittest
from unittest import mock

import clients
import matrix
from cover import cover


@dataclasses.dataclass(frozen=True)
class Small:
    client: str
    variant: str
    mode: str


def pairs(rows):
    return set().union(*(set(itertools.combinations(dataclasses.asdict(row).items(), 2)) for row in rows))


class Cover(unittest.TestCase):
    def test_every_pair_of_values_is_in_one_of_its_rows(self):
        rows = [Small(*values) for values in itertools.product("abcd", "xy", "123")]
        chosen = cover(rows)
        self.assertEqual(pairs(chosen), pairs(rows))
        self.assertLessEqual(len(chosen), 14)  # 12 have to be

    def test_pairs_that_no_row_has_are_not_asked_for(self):
        rows = [Small("a", "x", "1"), Small("b", "x", "2"), Small("b", "y", "2")]
        self.assertEqual(pairs(cover(rows)), pairs(rows))

    def test_a_variant_of_one_client_is_not_paired_with_the_rest(self):
        rows = [Small("a", variant, mode) for variant in "xyz" for mode in "123"]
        self.assertEqual(len(cover(rows)), 3)

    def test_the_clients_cover_is_what_ci_has_time_for(self):
        covered = {c.name for c in clients.CLIENTS if c.covered}
        rows = [row for row in clients.rows() if row.client in covered]
        chosen = cover(rows)
        self.assertLessEqual(len(chosen), 90)
        for factor in ("mode", "loss", "wire", "shards", "variant"):
            asked = {(row.client, getattr(row, factor)) for row in rows}
            self.assertEqual({(row.client, getattr(row, factor)) for row in chosen}, asked)


class Rows(unittest.TestCase):
    def test_names_are_of_one_row_each(self):
        names = collections.Counter(row.name for row in clients.rows())
        self.assertEqual([name for name, count in names.items() if count > 1], [])

    def test_samples_are_rows(self):
        self.assertEqual(set(clients.SAMPLES) - {row.name for row in clients.rows()}, set())

    def test_commands_have_no_place_left_open_but_the_servers_address(self):
        for row in clients.rows():
            full = matrix.command("build/weft", row, "copy")
            left = [word for word in full if "@" in word.replace("@SERVER", "")]
            self.assertEqual(left, [], row.name)
            self.assertIn(row.mode, full)

    def test_loss_is_asked_for(self):
        for row in clients.rows():
            asked = " ".join(matrix.command("build/weft", row, "copy"))
            self.assertEqual("1%" in asked, row.loss == "1", row.name)


class Table(unittest.TestCase):
    def results(self, code):
        return [(row, code(row)) for row in clients.rows() if row.shards == "1"]

    def test_it_counts_what_passed(self):
        lines = list(matrix.table(self.results(lambda row: 0)))
        self.assertIn("| ib_read_lat, events | 2 | 2 | 2 | 2 | 2 | 2 |", lines)
        self.assertIn("| mckey | 1 |  |  |  |  |  |", lines)

    def test_a_failure_is_bold(self):
        lines = list(matrix.table(self.results(lambda row: int(row.name == "rping.irn.loss_1.udp"))))
        self.assertIn("| rping | 2 | 2 | 2 | **1 of 2** | 2 | 2 |", lines)

    def test_what_is_not_installed_has_not_passed(self):
        lines = list(matrix.table(self.results(lambda row: 77 if row.client == "mpi" else 0)))
        self.assertIn("| mpi" + " | not installed" * 6 + " |", lines)

    def test_the_summary_counts_and_names_what_was_tried(self):
        said = matrix.summary("weft 1 (commit abc)", self.results(lambda row: 1 if row.name == "rping.irn.loss_1.udp" else 0), 9.6)
        self.assertRegex(said, r"^\d+ runs of weft 1 \(commit abc\) on [\d-]+, 10 s: \d+ passed, 1 failed\.$")

    def test_it_goes_between_its_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "document")
            with open(file, "w", encoding="utf-8") as f:
                f.write(f"before\n{matrix.BEGINS}\nold\n{matrix.ENDS}\nbehind\n")
            matrix.write_table(file, "new")
            with open(file, encoding="utf-8") as f:
                self.assertEqual(f.read(), f"before\n{matrix.BEGINS}\nnew\n{matrix.ENDS}\nbehind\n")


class Whole(unittest.TestCase):
    def test_a_row_that_failed_once_says_with_what(self):
        answers = iter([(1, "what the first try printed"), (0, "what the second did")])
        printed = io.StringIO()
        with mock.patch.object(matrix, "run", lambda *_: next(answers)), mock.patch.object(matrix, "version", lambda _: "weft"), \
                contextlib.redirect_stdout(printed):
            self.assertEqual(matrix.whole("weft", r"^mckey\.roce\.loss_0\.udp$", None), 0)
        self.assertIn("what the first try printed", printed.getvalue())
        self.assertIn("1 passed. A second try took: `mckey.roce.loss_0.udp`.", printed.getvalue())


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
