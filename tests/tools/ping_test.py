"""weft ping over real processes: a broken network (X-RDMA, Table II) is visible: a dead node, a slow one, a failure one way."""
import json
import pathlib
import subprocess
import tempfile

from stage import WEFT, expect, until, weft


class Agent:
    def __init__(self, address, *words):
        self.process = subprocess.Popen([WEFT, "ping", "--addr", address, "--serve", "--for", "60", *words], stdout=subprocess.PIPE, text=True)
        expect(self.process.stdout.readline().startswith("serving"), "an agent serves", address)

    def end(self):
        self.process.kill()
        self.process.wait()


def mesh(code, *words):
    return weft("ping", "--addr", "127.0.5.100", "--mesh", hosts, "-c", 5, "-i", 2, "-W", 3000, *words, code=code)


with tempfile.TemporaryDirectory(prefix="weft-ping-") as folder:
    hosts = pathlib.Path(folder, "hosts")
    names = [f"127.0.5.{i}" for i in (1, 2, 3, 4)]
    hosts.write_text("# a mesh\n" + "\n".join(names) + "\n")
    # 127.0.5.2 takes 300 ms for whatever comes; 127.0.5.4 lets 127.0.5.1 in by no means; all the others are well.
    agents = {n: Agent(n) for n in names[:1] + names[2:3]}
    agents[names[1]] = Agent(names[1], "--set", "filter_delay_us=300000")
    agents[names[3]] = Agent(names[3], "--deny", names[0])
    try:
        drawing = pathlib.Path(folder, "mesh.svg")
        page = mesh(1, "--svg", drawing)
        lines = page.splitlines()
        expect(any(l == f"{names[0]} -> {names[3]} fails (refused) and the other way works" for l in lines), page)
        expect(any(l.startswith(f"{names[1]} is slow") for l in lines), page)
        expect("dead" not in page and "lose" not in page, page)
        expect(drawing.read_text().count("<rect") == 17, "a drawing of 16 cells")
        # It dies.
        agents[names[2]].end()
        found = json.loads(mesh(1, "-j"))
        dead = [f for f in found["findings"] if f["kind"] == "dead"]
        expect([f["from"] for f in dead] == [names[2]], found["findings"])
        expect(all(p["state"] == "unknown" for p in found["pairs"] if p["from"] == names[2]), found["pairs"])
        # Pings from here: well, too slow for a threshold, refused, and nobody there.
        expect(weft("ping", "--addr", "127.0.5.100", "--set", "calls=9", names[0], "-c", 3).count("fails") == 0)
        weft("ping", "--addr", "127.0.5.100", names[1], "-c", 3, "--max", 1000, code=3)
        expect("dead: nobody" in weft("ping", "--addr", "127.0.5.100", names[0], "127.0.5.77", "-c", 2, code=1))
        # Half of what comes is forgotten on purpose.
        agents[names[2]] = Agent(names[2], "--set", "filter_drop_ppm=500000")
        lossy = weft("ping", "--addr", "127.0.5.100", names[2], "-c", 30, "-i", 0, "-W", 50, code=1)
        expect(f"here -> {names[2]} loses" in lossy, lossy)
        for wrong in (["--mesh", hosts, names[0]], ["nobody"], [], ["--mesh", "/nowhere"], [names[0], names[0]], ["-c", 0, names[0]],
                      ["--serve", "--deny", "10.0.0.0/24"]):
            weft("ping", "--addr", "127.0.5.100", *wrong, code=2)
    finally:
        for a in agents.values():
            a.end()
print("as it should be")
