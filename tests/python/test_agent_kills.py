"""Jobs and their agent killed at any moment: nobody else stops, shares add up after."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest

from small_datasets import make_blobs

JOBS = 3
IN_FLIGHT = 64
# LEAT_KILLS=100 is what a release is held to.
KILLS = int(os.environ.get("LEAT_KILLS", "12"))
PATIENCE = 120


class Node:
    """An agent and jobs that never end by themselves."""

    def __init__(self, folder, served, stack: contextlib.ExitStack) -> None:
        self.socket = folder / "agent.sock"
        self._stack = stack
        self._url = served.url
        self._env = {**os.environ, "LEAT_AGENT": str(self.socket), "AWS_ENDPOINT_URL": served.bucket.url}
        self.page = ""
        self.agent = self.start_agent()
        self.jobs = [self.start_job() for _ in range(JOBS)]

    def _run(self, *words: str, **options) -> subprocess.Popen:
        process = subprocess.Popen([shutil.which("leat"), *words], env=self._env, text=True, **options)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def start_agent(self) -> subprocess.Popen:
        end = time.monotonic() + 30
        while time.monotonic() < end:  # One that was killed may not be gone yet.
            agent = self._run("agent", "--port", "0", "--max-in-flight", str(IN_FLIGHT), stdout=subprocess.PIPE)
            for line in agent.stdout:
                if line.startswith("showing "):
                    self.page = line.split()[1]
                    return agent
        raise AssertionError("the agent ended; is its socket still taken?")

    def start_job(self) -> subprocess.Popen:
        return self._run(
            "bench", self._url, "--no-sign-request", "--global-batch-size", "8", "--epochs", "1000000",
            "--step-time", "10ms", "--no-hash", "--json", stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def shown(self) -> dict:
        with urllib.request.urlopen(self.page + "/api/node", timeout=60) as answer:
            return json.load(answer)

    def is_settled(self) -> bool:
        """Every job that lives is known, none else, and each has its share."""
        jobs = self.shown()["jobs"]
        pids = sorted(pid for job in jobs for pid in job["pids"])
        given = [job["share"]["in_flight"] or 0 for job in jobs]
        assert sum(given) <= IN_FLIGHT
        return (
            pids == sorted(job.pid for job in self.jobs)
            and min(given) >= 1
            and all(job["found_rate"] > 0 for job in jobs)
        )


@pytest.fixture
def node(tmp_path, serve):
    make_blobs(tmp_path / "blobs", 64, 2_000)
    with contextlib.ExitStack() as stack:
        yield Node(tmp_path, serve(tmp_path / "blobs", latency="1ms"), stack)


def wait_until_settled(node: Node) -> None:
    end = time.monotonic() + PATIENCE
    while not node.is_settled():
        assert time.monotonic() < end, node.shown()
        time.sleep(0.1)


def test_who_is_killed_takes_nobody_with_it(node):
    draw = random.Random(7)
    wait_until_settled(node)
    for _ in range(KILLS):
        time.sleep(draw.random() * 0.5)
        victim = draw.randrange(JOBS + 1)
        killed = node.agent if victim == JOBS else node.jobs[victim]
        killed.send_signal(signal.SIGKILL)
        if draw.random() < 0.5:  # Else its place is taken before all have seen it go.
            killed.wait()
        if victim == JOBS:
            node.agent = node.start_agent()
        else:
            node.jobs[victim] = node.start_job()
        assert all(job.poll() is None for job in node.jobs), "a job that nobody killed has ended"
    wait_until_settled(node)

    assert node.agent.poll() is None
    node.agent.terminate()
    node.agent.wait()
    assert not node.socket.exists(), "it leaves no socket when it ends"


def test_a_job_that_is_killed_leaves_its_share_to_others(node):
    wait_until_settled(node)
    node.jobs.pop().kill()
    wait_until_settled(node)

    jobs = node.shown()["jobs"]
    assert len(jobs) == JOBS - 1
    for job in node.jobs:
        job.kill()
    node.jobs.clear()
    end = time.monotonic() + PATIENCE
    while node.shown()["jobs"]:
        assert time.monotonic() < end
        time.sleep(0.1)
