"""Writes the C++ that the guide tells people to write, below FOLDER: extract.py GUIDE FOLDER.

A file is a block of C++ behind a line that ends with its name: "1. `src/core/transport/cc/delay.cc`:". Lines that the
guide adds to headers, `extern const Controller kDelay;`, are gathered in declared.h.
"""
import pathlib
import re
import sys

guide, folder = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
for name, text in re.findall(r"`(src/[^`]+\.cc)`:\n\n```cpp\n(.*?)```", guide, re.S):
    (folder / pathlib.Path(name).name).write_text(text, encoding="utf-8")
lines, headers = zip(*re.findall(r"`(extern [^`]+;)` below the others in `src/([^`]+\.h)`", guide))
(folder / "declared.h").write_text(
    "#pragma once\n" + "".join(f'#include "{h}"\n' for h in headers) + "namespace weft {\n" + "\n".join(lines) + "\n}\n",
    encoding="utf-8")
