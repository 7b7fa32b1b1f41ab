#!/usr/bin/env python3
"""Writes the seeds of the decode target: the UDP payloads of data/vectors/packets.txt, one file per vector.

Run it after adding a vector; the files are committed so that a fuzzing run needs nothing but the tree.
"""
import pathlib
import re

HEADERS = {"0800": 14 + 20 + 8, "86dd": 14 + 40 + 8, "8915": 14 + 40}  # by Ethertype; 8915 has a GRH instead

here = pathlib.Path(__file__).resolve().parent
vectors = (here.parent.parent / "data/vectors/packets.txt").read_text()
corpus = here / "corpus/decode"
corpus.mkdir(parents=True, exist_ok=True)
for name, frame in re.findall(r"^\[(\w+)\]\n(?:.*\n)*?frame = ([0-9a-f]+)$", vectors, re.M):
    (corpus / name).write_bytes(bytes.fromhex(frame)[HEADERS[frame[24:28]] :])
