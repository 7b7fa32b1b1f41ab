"""Citations are planted that lead somewhere and nowhere; check_citations must tell them apart."""
import unittest

import check_citations
from planted import PlantedTree

PAGE = """# Page

## What a receiver keeps

## ACKs, `NAKs` and more

```
# no heading
```
## Twice
## Twice
"""

LEADS = [
    "// docs/protocol/page.md#what-a-receiver-keeps",
    "// as docs/protocol/page.md says, and other.md#top",
    "// (IRN §3.1, §5.2)",
    "// SRNIC §4.4.2 and RFC\n// 6298 §3",
    "// IRN's parameters (§4.1) and the ones of §4.4.1",
    "// Alizadeh et al. 2010 §3.3",
    "// docs/protocol/page.md#twice-1",
    "// page.md#acks-naks-and-more",
    "const char* name = \"*.md\";",
    "// base/a.cc draws it; a.cc is below src/core/base",
    "// cmd_NAME.cc is any command",
    "// <infiniband/verbs.h> and <poll.h> are the system's",
    "int x; const char* f = \"gone.cc\";",
]
NOWHERE = [
    ("// docs/protocol/page.md#what-a-sender-keeps", "no heading '#what-a-sender-keeps'"),
    ("// docs/protocol/page.md#no-heading", "no heading '#no-heading'"),
    ("// docs/protocol/gone.md", "'docs/protocol/gone.md' is no file"),
    ("// peers.md says so", "'peers.md' is no file"),
    ("// wire-reference §2.1", "names no section of a paper"),
    ("// IRN §3.1, wire-reference §2.1", "names no section of a paper"),
    ("// see §2.1", "names no section of a paper"),
    ("// IRN §9.1", "IRN has no section 9.1"),
    ("// IRN § later", "without a number"),
    ("// ARCHITECTURE, \"the house\"", "'ARCHITECTURE' leads nowhere"),
    ("// as DESIGN has it", "'DESIGN' leads nowhere"),
    ("int x;  // gone.h says why", "'gone.h' is no file"),
    ("// elsewhere/a.cc", "'elsewhere/a.cc' is no file"),
]
LINKS = [
    ("[a](page.md#twice)", None),
    ("[a](#top)", None),
    ("[a](../other.md)", "'../other.md' is no file"),
    ("[a](page.md#thrice)", "no heading '#thrice'"),
    ("[a](#bottom)", "no heading '#bottom'"),
    ("[a](https://example.org/gone.md)", None),
]


class Citations(PlantedTree):
    def setUp(self):
        super().setUp()
        self.plant("docs/protocol/page.md", PAGE)
        self.plant("docs/protocol/other.md", "# Top\n")

    def test_what_leads_somewhere_passes(self):
        for text in LEADS:
            with self.subTest(text):
                self.plant("src/core/base/a.cc", text + "\n")
                self.assertEqual(check_citations.check(self.root), [])

    def test_what_leads_nowhere_is_found_once_at_its_line(self):
        for text, why in NOWHERE:
            with self.subTest(text):
                self.plant("src/core/base/a.cc", "// first line\n" + text + "\n")
                self.assert_found(check_citations.check(self.root), "src/core/base/a.cc:2", why)

    def test_links_of_documents_are_followed_from_their_own_folder(self):
        for text, why in LINKS:
            with self.subTest(text):
                self.plant("docs/protocol/other.md", f"# Top\n\nSee {text}.\n")
                found = check_citations.check(self.root)
                if why is None:
                    self.assertEqual(found, [])
                else:
                    self.assert_found(found, "docs/protocol/other.md:3", why)

    def test_documents_name_sources_that_exist_except_guides(self):
        self.plant("src/core/base/a.cc", "// first line\n")
        self.plant("docs/protocol/other.md", "# Top\n\n`base/a.cc` and `base/b.cc`\n")
        self.plant("docs/guide/own.md", "Write `src/core/base/mine.cc`.\n")
        self.assert_found(check_citations.check(self.root), "docs/protocol/other.md:3", "'base/b.cc' is no file")

    def test_documents_name_commands_that_exist(self):
        self.plant("src/cli/cmd_fly.cc", "int fly;\n")
        self.plant("docs/protocol/other.md", "# Top\n\n`weft fly`, weft speaks, `weft --help`\n")
        self.assertEqual(check_citations.check(self.root), [])
        self.plant("docs/protocol/other.md", "# Top\n\nbuild/weft swim\n")
        self.assert_found(check_citations.check(self.root), "docs/protocol/other.md:3", "'weft swim' is no command")

    def test_documents_name_tests_and_mutants_that_exist(self):
        self.plant("src/core/base/a_test.cc", "TEST_F(Suite, DoesIt) {}\nTEST(Other, DoesToo) {}\n")
        self.plant("tests/mutants/it_is_broken.patch", "a\n")
        for text, why in (("`Suite.DoesIt`, `…DoesToo`, `Other.*`; mutants `it_is_broken`", None),
                          ("`Suite.DoesToo`", "is no test"), ("`…DoesNot`", "is no test"), ("`Gone.*`", "is no test"),
                          ("mutants `it_is_broken`, `it_is_gone`", "'it_is_gone' is no patch")):
            with self.subTest(text):
                self.plant("docs/protocol/other.md", f"# Top\n\n{text}\n")
                found = check_citations.check(self.root)
                if why is None:
                    self.assertEqual(found, [])
                else:
                    self.assert_found(found, "docs/protocol/other.md:3", why)

    def test_mutants_and_scripts_are_held_to_it_too(self):
        self.plant("tests/mutants/a.patch", "a\n\nBreaks: ARCHITECTURE: something.\n")
        self.assert_found(check_citations.check(self.root), "tests/mutants/a.patch:3")

    def test_a_renamed_heading_is_told_to_all_who_cite_it(self):
        self.plant("src/core/base/a.cc", "// docs/protocol/page.md#what-a-receiver-keeps\n")
        self.plant("src/core/base/b.cc", "// docs/protocol/page.md#what-a-receiver-keeps\n")
        self.plant("docs/protocol/page.md", PAGE.replace("keeps", "forgets"))
        self.assertEqual(len(check_citations.check(self.root)), 2)


if __name__ == "__main__":
    unittest.main()
