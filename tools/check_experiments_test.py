"""Experiments that change behind their first run, with and without saying so."""
import subprocess
import unittest

import check_experiments
from planted import PlantedTree

FIRST = 'title = "a"\n[size]\nseeds = 3\n'
LATER = 'title = "a"\n[size]\nseeds = 1\n'
NAME = "experiments/a.toml"


class Experiments(PlantedTree):
    def git(self, *arguments):
        done = subprocess.run(["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@example.org",
                               *arguments], check=True, capture_output=True)
        return done.stdout.decode().strip()

    def commit(self, text):
        self.plant(NAME, text)
        self.git("add", "-A")
        self.git("commit", "-qm", "x")
        return self.git("rev-parse", "HEAD")

    def list_changes(self, *states):
        quoted = ", ".join(f'"{NAME} {check_experiments.state(each)}"' for each in states)
        change = f'[[change]]\nwhat = "w"\neffect = "e"\nstates = [{quoted}]\n' if states else ""
        self.plant(check_experiments.LIST, f'first_run = "{self.first}"\n{change}')

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.first = self.commit(FIRST)
        self.list_changes()

    def test_an_unlisted_change_is_found_in_the_tree_and_in_the_history(self):
        self.assertEqual(check_experiments.check(self.root), [])
        self.plant(NAME, LATER)
        self.assert_found(check_experiments.check(self.root), NAME, "the tree", check_experiments.state(LATER))
        self.commit(LATER)
        self.commit(FIRST)  # to and fro: it had been run in between
        self.assert_found(check_experiments.check(self.root), NAME, "changed in")

    def test_a_listed_change_is_none(self):
        self.commit(LATER)
        self.list_changes(LATER)
        self.assertEqual(check_experiments.check(self.root), [])

    def test_words_and_comments_are_no_settings(self):
        self.commit('# A comment.\ntitle = "another"\ncaveats = "c"\n[size]\nseeds = 3\n')
        self.assertEqual(check_experiments.check(self.root), [])

    def test_a_new_experiment_is_no_change(self):
        self.plant("experiments/b.toml", FIRST)
        self.assertEqual(check_experiments.check(self.root), [])

    def test_a_change_of_a_rule_names_a_decision_that_is_there(self):
        change = '[[change]]\nwhat = "w"\neffect = "e"\n'
        self.plant(check_experiments.LIST, f'first_run = "{self.first}"\n{change}')
        self.assert_found(check_experiments.check(self.root), "says no 'states'")
        self.plant(check_experiments.LIST, f'first_run = "{self.first}"\n{change}rule = "docs/decisions/one.md"\n')
        self.assert_found(check_experiments.check(self.root), "docs/decisions/one.md, which is not there")
        self.plant("docs/decisions/one.md", "# One\n")
        self.assertEqual(check_experiments.check(self.root), [])

    def test_what_was_never_there_is_not_listed(self):
        self.list_changes(LATER)
        self.assert_found(check_experiments.check(self.root), "no state that the file ever had")

    def test_a_change_says_what_and_to_what_effect(self):
        self.plant(check_experiments.LIST, f'first_run = "{self.first}"\n[[change]]\nwhat = "w"\nstates = ["x y"]\n')
        findings = check_experiments.check(self.root)
        self.assertTrue(any("says no 'effect'" in each for each in findings), findings)

    def test_without_the_history_the_tree_is_held_against_the_list(self):
        self.list_changes(LATER)
        self.plant(check_experiments.LIST, (self.root / check_experiments.LIST).read_text().replace(self.first, "f" * 40))
        self.plant(NAME, LATER)
        self.assertEqual(check_experiments.check(self.root), [])
        self.plant(NAME, FIRST.replace("3", "2"))
        self.assert_found(check_experiments.check(self.root), NAME, "the tree")


if __name__ == "__main__":
    unittest.main()
