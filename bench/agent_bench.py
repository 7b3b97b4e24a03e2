"""The cost of an agent to its node: many jobs that report once a second, a page that is
open, `leat top` and Prometheus.

Look at `percent_of_a_core`: the cost of registering, learning, deciding, telling shares
and answering, against the 5 % that the agent may take. The jobs are connections that
report a model's results for the share that each was told: half of them wait for
training, a quarter for the latency of requests, a quarter for threads, and each changes
its mind once. The page asks once a second for news, `leat top` for all but the history,
Prometheus for /metrics. The agent divides all resources: threads, requests, bandwidth
and cache.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import measure

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build/release/bin/leat"
LATENCY = 0.05


class Job:
    """A connection that says what a loader would say."""

    def __init__(self, path: str, number: int) -> None:
        self.number = number
        self.threads, self.in_flight = 1.0, 8.0
        self.ceiling = 200.0 if number % 2 else 5000.0
        self.rate_of_thread = 50.0 if number % 4 == 2 else 1000.0
        self.done: dict[str, float] = dict.fromkeys(
            ("elapsed_seconds", "samples", "training_seconds", "wait_seconds", "reads", "read_bytes", "read_seconds",
             "tasks", "busy_seconds", "ram_hits", "disk_hits", "peer_hits", "cache_misses", "ram_bytes", "disk_bytes", "stalled_dollars"),
            0.0,
        )  # fmt: skip
        self._heard = b""
        self.told = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._say({"leat": 1, "register": {
            "job": f"job {number}", "name": f"job-{number}.py", "dataset": f"s3://data/{number}", "rank": 0,
            "world_size": 1, "local_ranks": 1, "threads": 64, "in_flight": 512, "dataset_samples": 100_000, "epochs": 50,
            "ram_bytes": 4 << 30, "disk_bytes": 64 << 30}})  # fmt: skip
        self._socket.setblocking(False)

    def _say(self, what: dict) -> None:
        self._socket.sendall(json.dumps(what).encode() + b"\n")

    def hear(self) -> None:
        try:
            while block := self._socket.recv(65536):
                self._heard += block
        except BlockingIOError:
            pass
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            said = json.loads(line)
            assert "error" not in said, said["error"]
            if "share" not in said:
                continue
            share = said["share"]
            self.threads = share.get("threads", 64)
            self.in_flight = share.get("in_flight", 512)
            self.told += 1

    def report(self, seconds: float) -> None:
        rate = min(self.ceiling, self.threads * self.rate_of_thread, self.in_flight / LATENCY)
        waited = seconds * (1 - rate / self.ceiling)
        samples = rate * seconds
        for name, more in {
            "elapsed_seconds": seconds, "samples": samples, "training_seconds": seconds - waited,
            "wait_seconds": waited, "reads": samples, "read_bytes": samples * 1e5, "read_seconds": samples * LATENCY,
            "tasks": samples, "busy_seconds": samples / self.rate_of_thread, "cache_misses": samples,
        }.items():  # fmt: skip
            self.done[name] += more
        stalls = {"storage": self.done["wait_seconds"], "decode": 0.0}
        self._say({"rates": {**self.done, "threads": self.threads, "in_flight": self.in_flight, "stalls": stalls}})


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


def measured(options: argparse.Namespace) -> dict[str, float]:
    """One agent with its jobs, for this many seconds: what it cost, and what it told."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/agent.sock"
        agent = subprocess.Popen(
            [str(PROGRAM), "agent", "--socket", path, "--port", "0", "--threads", str(os.cpu_count()), "--max-in-flight", "2048",
             "--bandwidth", "10GB", "--cache-ram", "64GiB", "--cache-disk", "1TiB"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            url = next(line.split()[1] for line in agent.stdout if line.startswith("showing "))
            jobs = [Job(path, number) for number in range(options.jobs)]
            looks = Looks(url)
            looks.bytes.clear()
            began, cpu = time.monotonic(), cpu_seconds(agent.pid)
            last = began
            for number in range(options.seconds):
                now = time.monotonic()
                for job in jobs:
                    if number == options.seconds // 2:
                        job.ceiling *= 0.5 + job.number % 3
                    job.hear()
                    job.report(max(now - last, 1e-3))
                last = now
                looks.turn(number, options.scrape_every)
                time.sleep(max(0.0, began + number + 1 - time.monotonic()))
            took = time.monotonic() - began
            used = cpu_seconds(agent.pid) - cpu
            view = json.loads(looks.get("/api/node", "end"))
        finally:
            agent.terminate()
            agent.wait()
    known = sum(job["found_rate"] > 0 for job in view["jobs"])
    assert known == options.jobs, f"{known} of {options.jobs} jobs were learned"
    return {
        "percent_of_a_core": 100 * used / took, "shares_told": sum(job.told for job in jobs), "decisions": view["last_decision"],
        **{f"{who}_bytes_a_second": size / took for who, size in looks.bytes.items() if who != "end"},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=20, help="of each run")
    parser.add_argument("--scrape-every", type=int, default=15, help="seconds between two scrapes")
    parser.add_argument("--quick", action="store_true", help="five jobs, for four seconds, once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.jobs, options.seconds = 1, 5, 4
    found = measure.interleave({"agent": lambda: measured(options)}, options.runs)["agent"]
    cost, deviation = measure.spread(found.pop("percent_of_a_core"))
    rows = [{
        "jobs": options.jobs, "percent_of_a_core": round(cost, 2), "mad": round(deviation, 2),
        **{name: round(measure.spread(values)[0]) for name, values in found.items()},
    }]  # fmt: skip
    measure.report(f"agent: {options.runs} runs of {options.seconds} s", rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
