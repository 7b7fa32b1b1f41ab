"""The page of `weft lab report`, opened from disk in Chromium without a network: page_test.py WEFT [KEEP_FOLDER]

It stays within the window at 1280 and at 390 pixels, its filters work, nothing that an experiment's file says is run as a
script, no word of a figure leaves its drawing, and nothing is loaded from elsewhere. Exit code 77, with the reason: no browser.
"""
import json
import re
import shutil
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
count = 20
"""
EXPERIMENT = beginning("Loss on a link <script>document.title='broken'</script>", 3) + """
[[variant]]
name = "irn"
[[variant]]
name = "roce"
set = ["transport.mode=roce"]
[[axis]]
name = "loss"
[[axis.point]]
label = "1%"
[[axis.point]]
label = "5%"
set = ["network.loss=5%"]
[[claim]]
id = "reached"
statement = "irn bears <b>loss</b> & 'more'"
paper = "better"
reproduced = "> 1"
trend = "> 1"
[[claim.measure]]
metric = "goodput"
of = "irn"
over = "roce"
at = { loss = "5%" }
[[claim]]
id = "missed"
statement = "irn is a thousand times faster"
paper = "1000x"
trend = "> 1000"
[[claim.measure]]
metric = "goodput"
of = "irn"
over = "roce"
reduce = "always"
[[plot]]
name = "goodput"
metrics = ["goodput"]
along = "loss"
[[plot]]
name = "bars"
metrics = ["goodput"]
at = { loss = "1%" }
"""

# What a person would see, measured: written where --dump-dom shows it.
PROBE = """<script>
const facts={title:document.title,width:innerWidth,scroll:document.documentElement.scrollWidth,
shown:[...document.querySelectorAll('.claim')].filter(c=>c.offsetParent).map(c=>c.querySelector('h3').textContent),
badges:[...document.querySelectorAll('.badge')].map(b=>b.textContent),
outside:[...document.querySelectorAll('.figures svg text')].filter(t=>{const b=t.getBBox(),v=t.ownerSVGElement.viewBox.baseVal;
return b.x< -1||b.x+b.width>v.width+1||b.y+b.height>v.height+1}).map(t=>t.textContent),
smallest:Math.min(...[...document.querySelectorAll('.figures svg text')].map(t=>t.getBoundingClientRect().height)),
figures:document.querySelectorAll('.figures svg').length,loaded:performance.getEntriesByType('resource').map(e=>e.name)};
document.documentElement.dataset.facts=JSON.stringify(facts);</script>"""


def browser():
    for name in ("chromium-headless-shell", "chromium"):
        found = shutil.which(name)
        if found:
            return [found, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                    "--host-resolver-rules=MAP * ~NOTFOUND"]
    print("no Chromium: ./dev setup --browser installs it")
    sys.exit(77)


def run(words, cwd):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def expect(true, sentence):
    if not true:
        sys.exit(sentence)


def main(weft, keep=None):
    chromium = browser()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(keep or scratch)
        (folder / "e/scenarios").mkdir(parents=True, exist_ok=True)
        (folder / "e/scenarios/pair.toml").write_text(SCENARIO)
        (folder / "e/lossy.toml").write_text(EXPERIMENT)
        run([weft, "lab", "run", "lossy", "--dir", "e", "-j", "2"], folder)
        run([weft, "lab", "report", "page.html", "--dir", "e"], folder)
        page = (folder / "page.html").read_text()
        numbers = json.loads((folder / "page.json").read_text())
        expect(numbers["experiments"][0]["claims"][0]["id"] == "reached", "the numbers beside the page are not its own")
        elsewhere = [each for each in re.findall(r"(?:https?:)?//[\w.]+", page) if each != "http://www.w3.org"]
        expect(not elsewhere, f"the page names other places: {elsewhere}")
        (folder / "probe.html").write_text(page.replace("</body>", PROBE + "</body>"))

        def look(width, fragment=""):
            shown = run(chromium + [f"--user-data-dir={folder}/profile", f"--window-size={width},1400", "--dump-dom",
                                    f"file://{folder}/probe.html{fragment}"], folder)
            found = re.search(r'data-facts="([^"]*)"', shown)
            expect(found, "the page's scripts did not run")
            return json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))

        for width in (1280, 390):
            facts = look(width)
            expect(facts["width"] == width, f"the window is {facts['width']} wide")
            expect(facts["scroll"] <= width, f"at {width} pixels the page is {facts['scroll']} wide")
            expect(facts["title"] == "weft lab: results", "a title was run as a script")
            expect(facts["shown"] == ["reached", "missed"], f"claims are {facts['shown']}")
            expect(facts["badges"] == ["reproduced", "not reproduced"], f"verdicts are {facts['badges']}")
            expect(facts["figures"] == 4, f"there are {facts['figures']} figures")
            expect(not facts["outside"], f"words outside of their drawing: {facts['outside']}")
            expect(facts["smallest"] >= 8, f"at {width} pixels words are {facts['smallest']} high")
            expect(not facts["loaded"], f"loaded from elsewhere: {facts['loaded']}")
            picture = folder / f"page-{width}.png"
            run(chromium + [f"--user-data-dir={folder}/profile", f"--window-size={width},1400", f"--screenshot={picture}",
                            f"file://{folder}/page.html"], folder)
            expect(picture.stat().st_size > 20_000, f"at {width} pixels the page is nearly blank")
        expect(look(1280, "#hide=not%20reproduced")["shown"] == ["reached"], "a verdict that is filtered out is shown")
        expect(look(390, "#words=THOUSAND")["shown"] == ["missed"], "looking for a word shows others")
        print("the page is legible at 1280 and 390 pixels")


if __name__ == "__main__":
    main(*sys.argv[1:])
