"""Debian's Prometheus scrapes weft monitor with the alert rules that weft ships: a program that is stopped fires one."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import urllib.parse

from serving import Monitor, Serving, fetch, free_port, name_actors, needed
from stage import Actor, expect, until

PROMETHEUS, PROMTOOL = needed("prometheus"), needed("promtool")
RULES = pathlib.Path(sys.argv[3])

with tempfile.TemporaryDirectory() as folder:
    name = name_actors(folder)
    done = subprocess.run([PROMTOOL, "check", "rules", RULES], capture_output=True, text=True)
    expect(done.returncode == 0, done.stdout, done.stderr)
    with Monitor() as m, Actor("127.0.4.51", "serve", 100) as server, Actor("127.0.4.52", "call", "127.0.4.51", 100):
        # The text is as Prometheus wants it, by its own lint.
        lint = subprocess.run([PROMTOOL, "check", "metrics"], input=fetch(m.base + "/metrics"), capture_output=True, text=True)
        expect(lint.returncode == 0, lint.stdout, lint.stderr)
        config = pathlib.Path(folder, "prometheus.yml")
        config.write_text(json.dumps({"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
                                      "rule_files": [str(RULES)],
                                      "scrape_configs": [{"job_name": "weft", "static_configs": [{"targets": [m.place]}]}]}))
        base = f"http://127.0.0.1:{free_port()}"
        with Serving([PROMETHEUS, "--config.file", config, "--storage.tsdb.path", f"{folder}/data", "--web.listen-address",
                      base.removeprefix("http://")], base + "/-/ready", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            def value(family):
                query = urllib.parse.quote(f'{family}{{program="{name}"}}')
                found = json.loads(fetch(f"{base}/api/v1/query?query={query}"))["data"]["result"]
                return float(found[0]["value"][1]) if found else None

            def alerts():
                found = json.loads(fetch(base + "/api/v1/alerts"))["data"]["alerts"]
                return {a["labels"]["alertname"]: a for a in found if a["labels"].get("program") == name}

            until("it scrapes", lambda: (value("weft_channels") or 0) >= 2)
            until("messages are counted", lambda: (value("weft_messages_sent_total") or 0) > 10)
            expect("WeftProgramSilent" not in alerts(), alerts())
            os.kill(server.pid, signal.SIGSTOP)
            until("the alert fires", lambda: alerts().get("WeftProgramSilent", {}).get("state") == "firing", 60)
            expect("has not polled for" in alerts()["WeftProgramSilent"]["annotations"]["summary"])
            os.kill(server.pid, signal.SIGCONT)
            until("and ends", lambda: "WeftProgramSilent" not in alerts(), 60)
print("as it should be")
