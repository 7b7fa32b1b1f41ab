"""The files that the checks look at: what git tracks or would track, or, outside a repository, what lies there.

Every check is a module with `check(root) -> list of findings`; a finding is "path:line: sentence".
rules.py runs them all.
"""
import subprocess
from pathlib import Path

SOURCES = (".cc", ".h")


def files(root, suffixes=None):
    """Paths relative to `root`, sorted; files that were deleted but not yet committed are left out."""
    root = Path(root)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False) if (root / ".git").exists() else None
    if listed and listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(Path(name) for name in set(names)
                  if name and (suffixes is None or name.endswith(suffixes)) and (root / name).is_file())


def text(root, path):
    return (Path(root) / path).read_text(encoding="utf-8", errors="replace")


def without_comments(source):
    """C++ with comments and string literals blanked out, so that line numbers and columns stay.

    A small scanner rather than a regular expression: quotes inside comments and slashes inside strings
    are each other's traps. Raw strings are read to their own delimiter.
    """
    out = []
    i = 0
    while i < len(source):
        two = source[i:i + 2]
        if two == "//":
            end = source.find("\n", i)
            end = len(source) if end < 0 else end
            out.append(" " * (end - i))
        elif two == "/*":
            end = source.find("*/", i + 2)
            end = len(source) if end < 0 else end + 2
            out.append("".join(c if c == "\n" else " " for c in source[i:end]))
        elif two == 'R"' and (i == 0 or not (source[i - 1].isalnum() or source[i - 1] == "_")):
            delimiter = source[i + 2:source.find("(", i)]
            end = source.find(")" + delimiter + '"', i)
            end = len(source) if end < 0 else end + len(delimiter) + 2
            out.append("".join(c if c == "\n" else " " for c in source[i:end]))
        elif source[i] == '"' or (source[i] == "'" and not (i and source[i - 1].isalnum())):
            end = i + 1
            while end < len(source) and source[end] != source[i] and source[end] != "\n":
                end += 2 if source[end] == "\\" else 1
            end = min(end + 1, len(source))
            out.append(source[i] + " " * (end - i - 2) + source[i] if end - i >= 2 else source[i:end])
        else:
            end = i + 1
            out.append(source[i])
        i = end
    return "".join(out)
