#!/usr/bin/env python3
"""Follows citations: what a comment or a document names as its source must be there to be read.

    docs/protocol/irn.md#recovery     a document of this tree and one of its headings, as GitHub links it; a page that
                                      follows in the same sentence may leave out the folder: srnic.md#echoes
    [text](../GLOSSARY.md#streams)    the same as a link of a document, from its own folder
    IRN §3.2, §5.2                    a section of a paper, by the table below
    RFC 6298 §3, Jacobson et al. 1988 §2   a section of a public standard, or of a paper by its authors and year
    driving.cc, sim/nic/nic.h         a source file, by its path or the end of it. A word in capitals (cmd_NAME.cc) stands for
                                      any; the guides name files that their readers write
    `Deadlines.LeaveInOrder`, mutant `a_psn_is_compared`   in a document: a test, or a patch of tests/mutants. `Suite.*` is any test
                                      of a suite, `…Name` one of a suite named before
    `weft sim`, build/weft sim        in a document: a command, a file src/cli/cmd_NAME.cc

A section sign behind any other word leads nowhere, and so does a document's name in capitals without its file.
"""
import re
import sys
from pathlib import Path

import tree

# Sections of the papers that weft implements; a number above the last level that is listed is a section too.
WORKS = {
    "IRN": "2.1 2.2 2.3 3.1 3.2 4.1 4.2.1 4.2.2 4.2.3 4.2.4 4.3 4.4.1 4.4.2 4.4.3 4.4.4 4.5 4.6 5.1 5.2 5.3.1 5.3.2 5.3.3 5.3.4 "
           "5.4 6.1 6.2.1 6.2.2 6.3 6.4 7 8",
    "SRNIC": "2.1 2.2 3.1 3.2.1 3.2.2 4.1 4.2 4.3.1 4.3.2 4.4.1 4.4.2 4.5 5 6.1 6.2 6.3 7 8",
    "NTT": "2.1 2.2 3 4.1 4.2 5.1 5.2 5.3 6",  # Long-distance RDMA-acceleration Frameworks
    # Its sections have Roman numbers and letters: V-B is 5.2 here.
    "X-RDMA": "2.1 2.2 2.3 3 4.1 4.2 4.3 4.4 4.5 5.1 5.2 5.3 6.1 6.2 6.3 6.4 7.1 7.2 7.3 7.4 7.5 7.6 8 9 10",
    "csRNA": "2.1 2.2 3 4.1 4.2 4.3.1 4.3.2 4.3.3 4.3.4 4.4 4.5 4.6 4.7 5.1 5.2 5.3 6 7",
}
SECTIONS = {work: {".".join(s.split(".")[:n]) for s in text.split() for n in (1, 2, 3)} | {"1"} for work, text in WORKS.items()}

FOLDERS = ("", "docs", "docs/protocol", "docs/decisions", "docs/guide")
DOCUMENT = re.compile(r"(?<![\w/.$*-])((?:[\w.-]+/)*[\w-]+\.md)(?:#([\w-]*))?")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
SOURCE = re.compile(r"(?<![\w/.<*-])((?:[\w.-]+/)*[\w-]+\.(?:h|cc|py))\b(?![(\w-])")
COMMENT = re.compile(r"//.*")
TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
PROOF = re.compile(r"`([A-Z]\w+)\.([A-Z]\w+|\*)`|`…([A-Z]\w+)`")
MUTANTS = re.compile(r"\bmutants?\s+((?:`\w+`(?:,|\s|and)*)+)")
COMMAND = re.compile(r"(?:`|build/)weft ([a-z]+)\b")
PLACEHOLDER = re.compile(r"(?<![a-z])[A-Z]{3,}(?![a-z])")
BARE = re.compile(r"\b(ARCHITECTURE|CONTRIBUTING|DESIGN|FEATURES|GLOSSARY|STYLE)\b(?!\.md)")
SIGN = re.compile(r"§+ ?(\d+(?:\.\d+)*)?")
WORK = re.compile(r"\b(%s|RFC[\s/]*\d+|et al\.,? \d{4})\b" % "|".join(WORKS))
# What may stand between a work and its section: punctuation, other sections, and a few words.
BETWEEN = re.compile(r"^(?:'s)?(?:[\s,;:()–-]|and|to|or|Table \d+|Figure \d+|§|\d+(?:\.\d+)*|//|#)*$")
SKIP = ("tests/fuzz/corpus/", "data/", "tools/check_citations", "tools/words.toml", "LICENSE")


def slug(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(text):
    found, code = set(), False
    for line in text.split("\n"):
        if line.startswith("```"):
            code = not code
        elif not code and re.match(r"#{1,6} ", line):
            name = slug(line.lstrip("#"))
            number = 0
            while (name if number == 0 else f"{name}-{number}") in found:
                number += 1
            found.add(name if number == 0 else f"{name}-{number}")
    return found


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.known = {}

        self.ends = set()
        for path in tree.files(root):
            parts = path.parts
            self.ends.update("/".join(parts[n:]) for n in range(len(parts)))
        self.tests = {test for path in tree.files(root, (".cc", "_test.h")) for test in TEST.findall(tree.text(root, path))}
        self.names = {name for pair in self.tests for name in pair}

    def headings(self, path):
        if path not in self.known:
            self.known[path] = headings(tree.text(self.root, path)) if (self.root / path).is_file() else None
        return self.known[path]

    def follow(self, name, anchor, folders):
        """None, or why the citation leads nowhere."""
        places = [(Path(folder) / name) for folder in folders]
        there = [place for place in places if (self.root / place).exists()]
        if not there:
            return f"'{name}' is no file of this tree"
        if anchor and there[0].suffix == ".md" and not any(anchor in (self.headings(place) or ()) for place in there):
            return f"'{name}' has no heading '#{anchor}'"
        return None


def sections(text):
    """(offset, why) of each section sign that leads nowhere."""
    for sign in SIGN.finditer(text):
        before = text[max(0, sign.start() - 200):sign.start()]
        works = list(WORK.finditer(before))
        if not works or not BETWEEN.match(before[works[-1].end():]):
            # The work may stand a sentence before, if nothing else is named directly.
            direct = re.search(r"(?:^|[\s(])([\w.'-]+)\s*$", before)
            if not works or (direct and not re.fullmatch(r"and|to|or|in|of|\d+(?:\.\d+)*|//|#", direct.group(1))):
                yield sign.start(), f"'{sign.group(0)}' names no section of a paper or a public standard"
                continue
        work = works[-1].group(1)
        if sign.group(1) is None:
            yield sign.start(), "a section sign without a number"
        elif work in SECTIONS and sign.group(1) not in SECTIONS[work]:
            yield sign.start(), f"{work} has no section {sign.group(1)}"


def sources(path, text):
    """(offset, name) of each source file that a comment of C++ or a document names."""
    if path.suffix in (".h", ".cc"):
        spans = [(m.start(), m.group(0)) for m in COMMENT.finditer(text)]
    elif path.suffix == ".md" and not str(path).startswith("docs/guide/"):
        spans = [(0, text)]
    else:
        spans = []
    for start, span in spans:
        for named in SOURCE.finditer(span):
            if not PLACEHOLDER.search(named.group(1)):
                yield start + named.start(), named.group(1)


def proofs(there, text):
    """(offset, why) of each test, mutant and command that a document names and that does not exist."""
    for proof in PROOF.finditer(text):
        suite, test, after = proof.groups()
        if not (after in there.names if after else suite in there.names if test == "*" else (suite, test) in there.tests):
            yield proof.start(), f"{proof.group(0)} is no test of this tree"
    for group in MUTANTS.finditer(text):
        for name in re.findall(r"`(\w+)`", group.group(1)):
            if f"mutants/{name}.patch" not in there.ends:
                yield group.start(), f"'{name}' is no patch of tests/mutants"
    for command in COMMAND.finditer(text):
        if f"cli/cmd_{command.group(1)}.cc" not in there.ends:
            yield command.start(), f"'weft {command.group(1)}' is no command"


def check(root):
    found = []
    there = Tree(root)
    for path in tree.files(root):
        name = str(path)
        if name.startswith(SKIP) or (name.startswith("tools/") and name.endswith("_test.py")):
            continue
        if b"\0" in (Path(root) / path).read_bytes()[:4096]:
            continue
        text = tree.text(root, path)

        def tell(offset, why):
            found.append(f"{path}:{text.count(chr(10), 0, offset) + 1}: {why}")

        for offset, why in sections(text):
            tell(offset, why)
        links = list(LINK.finditer(text)) if path.suffix == ".md" else []
        for link in links:
            target, anchor = link.groups()
            if not target and not anchor:
                continue
            own = target if target else path.name
            if why := there.follow(own, anchor, (str(path.parent),)):
                tell(link.start(), why)
        for cited in DOCUMENT.finditer(text):
            if any(link.start() <= cited.start() < link.end() for link in links):
                continue
            if why := there.follow(cited.group(1), cited.group(2), FOLDERS + (str(path.parent),)):
                tell(cited.start(), why)
        for offset, source in sources(path, text):
            if re.sub(r"^(?:\.\./)+", "", source) not in there.ends:
                tell(offset, f"'{source}' is no file of this tree")
        for offset, why in proofs(there, text) if path.suffix == ".md" else ():
            tell(offset, why)
        if path.suffix != ".md":
            for bare in BARE.finditer(text):
                tell(bare.start(), f"'{bare.group(0)}' leads nowhere; name the file and its heading, docs/NAME.md#heading")
    return found


if __name__ == "__main__":
    findings = check(Path(__file__).resolve().parent.parent)
    print("\n".join(findings) or "citations: all lead somewhere")
    sys.exit(1 if findings else 0)
