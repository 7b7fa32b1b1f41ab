#!/usr/bin/env python3
"""Holds experiments/notes/changes.toml against the history: python3 tools/check_experiments.py [FOLDER].

An experiment's settings and rules are written before its first run, so that nobody fits them to what came out. Where they
were changed afterwards, changes.toml says what and to what effect, and docs/RESULTS.md shows it.

What counts is a file's settings: its TOML without comments and without the words that nothing is computed from. Each state
that a file under experiments/ had since `first_run`, beside its first, must stand in `states` of some change, and so must
what lies in the tree now. A change of the rules by which the lab judges names its decision as `rule` instead. A finding ends with the line to write. Without the history (a shallow clone) only the tree is
held against the list: the newest state listed, or the only one there ever was.
"""
import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

LIST = "experiments/notes/changes.toml"
WORDS = {"title", "text", "statement", "why", "caveats", "plot"}


def settings(value):
    if isinstance(value, dict):
        return {key: settings(each) for key, each in value.items() if key not in WORDS}
    return [settings(each) for each in value] if isinstance(value, list) else value


def state(text):
    """A name for a file's settings, or None where it is no TOML."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return hashlib.sha256(json.dumps(settings(parsed), sort_keys=True).encode()).hexdigest()[:12]


def git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def is_experiment(name):
    return name.startswith("experiments/") and name.endswith(".toml") and "/notes/" not in name


def history(root, first):
    """Of each file the commits and states since `first`, oldest first; None without that history."""
    if not (root / ".git").exists() or git(root, "merge-base", "--is-ancestor", first, "HEAD") is None:
        return None
    states = {}
    for commit in [first] + git(root, "rev-list", "--reverse", f"{first}..HEAD", "--", "experiments").split():
        names = (git(root, "ls-tree", "-r", "--name-only", commit, "experiments/") if commit == first else
                 git(root, "diff-tree", "-r", "--no-commit-id", "--name-only", "--no-renames", commit, "--", "experiments"))
        for name in filter(is_experiment, names.split("\n")):
            text = git(root, "show", f"{commit}:{name}")
            if text is not None:
                states.setdefault(name, []).append((commit[:12], state(text)))
    return states


def check(root):
    root = Path(root)
    if not (root / LIST).exists():
        return [f"{LIST}:1: the list of what was changed after its first run is missing"] if (root / "experiments").is_dir() else []
    listed = tomllib.loads((root / LIST).read_text(encoding="utf-8"))
    changes = listed.get("change", [])
    findings = [f"{LIST}: change {i + 1} says no '{word}'" for i, one in enumerate(changes)
                for word in ("what", "effect", "states") if not one.get(word) and not (word == "states" and "rule" in one)]
    findings += [f"{LIST}: change {i + 1} names {one['rule']}, which is not there" for i, one in enumerate(changes)
                 if "rule" in one and not (root / one["rule"]).is_file()]
    known = {tuple(entry.split(" ", 1)) for one in changes for entry in one.get("states", [])}
    past = history(root, listed["first_run"])
    seen = {}
    for name, each in (past or {}).items():
        for commit, what in each:
            seen.setdefault(name, {}).setdefault(what, commit)
    for path in sorted((root / "experiments").rglob("*.toml")):
        name = path.relative_to(root).as_posix()
        if is_experiment(name):
            now = state(path.read_text(encoding="utf-8"))
            if past is None:
                states = [what for file, what in known if file == name]
                if not states or now in states:
                    continue
                seen[name] = {None: None, now: "the tree"}
            else:
                seen.setdefault(name, {}).setdefault(now, "the tree")
    for name, states in sorted(seen.items()):
        for what, where in list(states.items())[1:]:
            if (name, what) not in known:
                findings.append(f'{name}:1: its settings changed in {where}, and {LIST} does not say so; '
                                f'write there: states = ["{name} {what}"]')
    if past is not None:
        findings += [f"{LIST}: '{name} {what}' is no state that the file ever had" for name, what in sorted(known)
                     if what not in seen.get(name, {})]
    return findings


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    findings = check(root)
    print("\n".join(findings + [f"check_experiments: {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
