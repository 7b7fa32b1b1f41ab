#!/usr/bin/env python3
"""Holds the include graph, and the CMake targets, to the table in layers.toml.

For each source file: its folder is the longest name of the table that its path begins with; each of its
includes must be in that folder, in one that the folder uses (closed over), or in a group of third-party
or system headers that the folder is granted. What is in no list is refused, so that a new dependency is
a decision somebody wrote down. Each folder's CMake target may link exactly what the folder may include.

Considered instead: include-what-you-use and compiler dependency files. Both need a build; this reads the
sources, so it runs in a second and sees code that no configuration compiles.
"""
import re
import sys
import tomllib
from pathlib import Path

import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
GENERATED = {"version.h"}
LIBRARY = re.compile(r"weft_library\s*\(\s*NAME\s+(\w+)(.*?)\)", re.S)


class Table:
    """layers.toml, with `uses` and `others` closed over."""

    def __init__(self, path):
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        self.rows = data["folder"]
        self.groups = data["others"] | data["system"]
        self.third_party = set(data["others"])
        self.free = set(data["free"]["names"])
        self.rule = data["rule"]
        self.exceptions = data.get("exception", {})
        self.own = {name: self._direct(name) for name in self.rows}
        self.closed = {name: self._closure(name, ()) for name in self.rows}

    def _expand(self, used):
        """A used name -> folders of the table; "core" is every folder below core/."""
        if used == "*":
            return set(self.rows)
        found = {row for row in self.rows if row == used or row.startswith(used + "/")}
        if not found:
            raise SystemExit(f"tools/layers.toml: '{used}' is used but is no folder of the table")
        return found

    def _direct(self, name):
        return set().union(*(self._expand(used) for used in self.rows[name].get("uses", ())
                             if not used.endswith(".h"))) - {name}

    def _closure(self, name, above):
        if name in above:
            raise SystemExit("tools/layers.toml: folders use each other in a circle: " + " -> ".join((*above, name)))
        reached = set(self.own[name])
        # Whoever uses everything is a top: it is used by nobody, and its own closure is everything.
        if "*" not in self.rows[name].get("uses", ()):
            for used in self.own[name]:
                reached |= self._closure(used, (*above, name))
        return reached

    def folder_of(self, path):
        """src/core/wire/codec.cc -> core/wire; None for a path outside the table."""
        parts = path.parts[1:-1] if path.parts[0] == "src" else path.parts[:-1]
        for length in range(len(parts), 0, -1):
            if "/".join(parts[:length]) in self.rows:
                return "/".join(parts[:length])
        return None

    def group_of(self, header):
        # A name ending in a slash is the beginning of a path; others are whole names, or libraries' stems.
        best = None
        for group, starts in self.groups.items():
            for start in starts:
                exact = header == start
                begins = header.startswith(start) and (start.endswith("/") or group in self.third_party)
                if (exact or begins) and (best is None or len(start) > best[0]):
                    best = (len(start), group)
        return best[1] if best else None

    def granted(self, folder, path):
        """Groups that `path` in `folder` may include."""
        row = self.rows[folder]
        groups = set(row.get("system", ())) | set(row.get("others", ()))
        for used in self.closed[folder]:
            groups |= set(self.rows[used].get("others", ()))
        for ending, more in self.rule["beside"].items():
            groups |= set(more) if path.name.endswith(ending) else set()
        groups |= set(self.exceptions.get(str(path), {}).get("system", ()))
        return groups

    def may_use(self, folder, header):
        """May files of `folder` include our header, such as core/wire/codec.h?"""
        target = self.folder_of(Path("src") / header)
        if target is None:
            return False
        return target == folder or target in self.closed[folder] or header in self.rows[folder].get("uses", ())


def includes(source):
    """(line, is ours, header) of each include that is not commented out."""
    code = tree.without_comments(source)
    for match in INCLUDE.finditer(source):
        if "#" in code[match.start():match.end()]:
            yield source.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def judge(table, path, folder, line, ours, header):
    where = f"{path}:{line}"
    if ours:
        if header in GENERATED:
            return None
        if table.folder_of(Path("src") / header) is None:
            return f'{where}: "{header}" is no path from src/; write the whole path, or give its folder a row in tools/layers.toml'
        if not table.may_use(folder, header):
            allowed = ", ".join(sorted(table.closed[folder] | set(table.rows[folder].get("uses", ())))) or "nothing"
            return f"{where}: {folder} may not include {header}; it may use {allowed} (tools/layers.toml)"
        return None
    if header in table.free:
        return None
    group = table.group_of(header)
    if group is None:
        return f"{where}: <{header}> is in no list of tools/layers.toml; a new dependency is a decision, write it down there"
    granted = table.granted(folder, path)
    if group not in granted and "*" not in granted:
        return f"{where}: {folder} may not include <{header}> ({group}); it is granted {', '.join(sorted(granted)) or 'nothing'} (tools/layers.toml)"
    # A header named after the library is the one way to it, for .cc files.
    if path.suffix == ".h" and path.stem != group and group in table.rule["only_in_cc"]:
        return f"{where}: <{header}> takes seconds to compile and belongs in .cc files only; hide it behind a forward declaration"
    return None


def worlds_met(table, graph):
    """Files from which includes lead into both worlds, outside the places where they may meet."""
    worlds = table.rule["worlds"]

    def reach(path, seen):
        for header in graph.get(path, ()):
            if header not in seen:
                seen.add(header)
                reach(Path("src") / header, seen)
        return seen

    for path in graph:
        if any(str(path).startswith(place + "/") for place in table.rule["where_worlds_meet"]):
            continue
        into = {world: [h for h in reach(path, set()) if h.startswith(world + "/")] for world in worlds}
        if all(into.values()):
            met = " and ".join(sorted(min(headers) for headers in into.values()))
            yield f"{path}:1: includes lead to {met}; simulated and live meet only in {', '.join(table.rule['where_worlds_meet'])}"


def check_targets(root, table):
    """Each folder's CMake target links only targets of folders that it may include."""
    folder_of_target, found = {}, []
    lists = [p for p in tree.files(root, ("CMakeLists.txt",)) if p.parts[0] == "src"]
    for path in lists:
        for name, _ in LIBRARY.findall(tree.text(root, path)):
            folder_of_target["weft_" + name] = table.folder_of(path)
    for path in lists:
        folder = table.folder_of(path)
        for name, body in LIBRARY.findall(tree.text(root, path)):
            if folder is None:
                found.append(f"{path}:1: weft_{name} belongs to no folder of tools/layers.toml")
                continue
            for dep in sorted(set(re.findall(r"\bweft_\w+", body)) - {"weft_" + name}):
                target = folder_of_target.get(dep)
                used = {"/".join(Path(u).parts[:-1]) for u in table.rows[folder].get("uses", ()) if u.endswith(".h")}
                if target is not None and target != folder and target not in table.closed[folder] | used:
                    found.append(f"{path}:1: weft_{name} may not link {dep}: {folder} may not use {target} (tools/layers.toml)")
    return found


def check(root, table_path=None):
    table = Table(table_path or Path(__file__).with_name("layers.toml"))
    found, graph = [], {}
    for path in tree.files(root, tree.SOURCES):
        if path.parts[0] not in ("src", "tests", "tools"):
            continue
        folder = table.folder_of(path)
        if folder is None:
            found.append(f"{path}:1: its folder has no row in tools/layers.toml")
            continue
        groups = set()
        for line, ours, header in includes(tree.text(root, path)):
            finding = judge(table, path, folder, line, ours, header)
            if finding:
                found.append(finding)
            if ours:
                graph.setdefault(path, []).append(header)
            else:
                groups.add(table.group_of(header))
        for together in table.rule["never_together"]:
            if groups.issuperset(together):
                found.append(f"{path}:1: {' and '.join(together)} headers define the same names; keep them in separate files")
    found.extend(worlds_met(table, graph))
    found.extend(check_targets(root, table))
    return found


if __name__ == "__main__":
    findings = check(Path(__file__).resolve().parent.parent)
    print("\n".join(findings) or "includes: as the table says")
    sys.exit(1 if findings else 0)
