"""weft-lab-mpi with four ranks: the same runs as `weft lab`, each once, in a record that both use.

mpi_test.py MPIRUN WEFT-LAB-MPI WEFT
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tiny import beginning

SCENARIO = """
hosts = 2
[network]
rate = "100Gbps"
loss = "1%"
[transport]
mode = "irn"
[[flow]]
count = 50
"""
EXPERIMENT = beginning("Loss on a link", 4) + """
[[variant]]
name = "irn"
[[variant]]
name = "roce"
set = ["transport.mode=roce"]
[[variant]]
name = "broken"
set = ["network.loss=100%", "transport.retry_count=1"]
[[claim]]
id = "c"
statement = "s"
paper = "p"
trend = "> 1"
[[claim.measure]]
metric = "goodput"
of = "irn"
over = "roce"
"""


def command(words, expected):
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    if done.returncode != expected:
        sys.exit(f"{words}: exit code {done.returncode}, not {expected}\n{done.stdout}\n{done.stderr}")
    return done


def expect(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def main(mpirun, program, weft):
    # Open MPI asks for the first two before it starts anything for root, as build machines do, and for the third before it starts more ranks than
    # there are cores. MPICH asks for nothing.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "scenarios").mkdir()
        (root / "scenarios/pair.toml").write_text(SCENARIO)
        (root / "e.toml").write_text(EXPERIMENT)
        choice = ["e", "--quick", "--json", "--dir", folder]
        out = ["--out", str(root / "mpi")]
        # The broken variant's requests fail: recorded, told, exit code 1.
        ranks = command([mpirun, "-n", "4", program, "run", *choice, *out], 1)
        expect("12 runs executed" in ranks.stderr, "12 runs: " + ranks.stderr)
        expect(ranks.stderr.count("weft sim") == 4, "each failed run once: " + ranks.stderr)
        again = command([weft, "lab", "run", *choice, *out], 1)
        expect("0 runs executed" in again.stderr, "the record is whole: " + again.stderr)
        alone = command([weft, "lab", "run", *choice, "--out", str(root / "alone")], 1)
        expect(json.loads(ranks.stdout) == json.loads(alone.stdout), "the same values")
        one = command([program, "show", *choice, *out], 0)
        expect(json.loads(one.stdout) == json.loads(alone.stdout), "show needs no mpirun")
        command([mpirun, "-n", "3", program, "run", "nothing", "--dir", folder], 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
