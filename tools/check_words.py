#!/usr/bin/env python3
"""Finds the words of words.toml: clocks outside live/, unreproducible randomness, mutable statics, paths
of one machine, and the like. Each finding says what to write instead.

A word in a comment is no use of the thing, so code rules see comments and strings blanked out.
"""
import re
import sys
import tomllib
from pathlib import Path

import tree

WHERE = {"code", "comment", "text", "name"}


def load(path=None):
    words = tomllib.loads((path or Path(__file__).with_name("words.toml")).read_text(encoding="utf-8"))["word"]
    for word in words:
        word["pattern"] = re.compile(word["find"])
        word.setdefault("where", "code")
        if word["where"] not in WHERE:
            raise SystemExit(f"tools/words.toml: where = '{word['where']}'; it is one of {', '.join(sorted(WHERE))}")
    return words


def covers(word, path):
    name = str(path)
    if any(name.startswith(start) for start in word.get("except", ())):
        return False
    if "only" in word and not any(name.startswith(start) for start in word["only"]):
        return False
    if "suffix" in word and not name.endswith(tuple(word["suffix"])):
        return False
    return word["where"] in ("text", "name") or name.endswith(tree.SOURCES)


def check(root, words=None):
    found = []
    words = words or load()
    for path in tree.files(root):
        mine = [word for word in words if covers(word, path)]
        for word in (w for w in mine if w["where"] == "name"):
            if word["pattern"].search(str(path)):
                found.append(f"{path}:1: the name: {word['instead']}")
        if not any(w["where"] != "name" for w in mine) or b"\0" in (Path(root) / path).read_bytes()[:4096]:
            continue
        raw = tree.text(root, path)
        code = tree.without_comments(raw).split("\n") if path.suffix in tree.SOURCES else None
        for number, line in enumerate(raw.split("\n"), 1):
            for word in mine:
                if word["where"] == "name":
                    continue
                match = word["pattern"].search(code[number - 1] if word["where"] == "code" else line)
                if match:
                    found.append(f"{path}:{number}: '{match.group(0).strip()}': {word['instead']}")
    return found


if __name__ == "__main__":
    findings = check(Path(__file__).resolve().parent.parent)
    print("\n".join(findings) or "words: none that are banned")
    sys.exit(1 if findings else 0)
