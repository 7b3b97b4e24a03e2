"""What it costs the agent to be looked at: a node of many jobs, a page that is open, `leat top` and Prometheus.

Look at `percent_of_a_core`: what serving costs, the making of each view included, against the 5 % that it may.
The page asks once a second for what is new, `leat top` for all but the history, Prometheus for /metrics.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

import measure

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build/release/tests/agent/serve_sample_node"


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Looks:
    """Asks as a page, `leat top` and Prometheus do, in turns of a second."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bytes: dict[str, int] = {}
        self.last_point = 0.0
        self.last_decision = 0
        self.page()

    def get(self, path: str, who: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=20) as reply:
            body = reply.read()
        self.bytes[who] = self.bytes.get(who, 0) + len(body)
        return body

    def page(self) -> None:
        query = f"?points_after={self.last_point}&decisions_after={self.last_decision}"
        view = json.loads(self.get("/api/node" + query, "page"))
        self.last_point = max([self.last_point, *(one["time_seconds"][-1] for one in view["history"])])
        self.last_decision = view["last_decision"]

    def turn(self, number: int, scrape_every: int) -> None:
        self.page()
        self.get("/api/node?points_after=1e18", "top")
        if number % scrape_every == 0:
            self.get("/metrics", "prometheus")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--scrape-every", type=int, default=15, help="seconds between two scrapes")
    parser.add_argument("--quick", action="store_true", help="five jobs, for two seconds")
    options = parser.parse_args()
    if options.quick:
        options.jobs, options.seconds = 5, 2
    server = subprocess.Popen([str(PROGRAM), str(options.jobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip().removeprefix("listening on ")
        # Ten minutes of history, as after the first ten minutes, and moving on.
        server.stdin.write("run 600\n")
        server.stdin.flush()
        assert server.stdout.readline() == "done\n"
        looks = Looks(url)
        looks.bytes.clear()
        began, cpu = time.monotonic(), cpu_seconds(server.pid)
        for number in range(options.seconds):
            looks.turn(number, options.scrape_every)
            time.sleep(max(0.0, began + number + 1 - time.monotonic()))
        took = time.monotonic() - began
        used = cpu_seconds(server.pid) - cpu
    finally:
        server.stdin.close()
        server.wait()
    print(json.dumps({**measure.machine(), "jobs": options.jobs, "seconds": round(took, 1), "cpu_seconds": round(used, 3),
                      "percent_of_a_core": round(100 * used / took, 2),
                      "bytes_a_second": {who: round(size / took) for who, size in looks.bytes.items()}}))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
