"""`leat agent --bandwidth BUCKET=RATE`: readers of that bucket are held to it,
others are not."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.request

import pytest

from small_datasets import make_blobs

PATIENCE = 120
LIMIT = 400_000  # Bytes a second.

# Reads as fast as it may, until it is ended.
PROGRAM = """
import sys, leat
datasets = [leat.Dataset(url, storage_options={"no_sign_request": True, "region": "us-east-1"}) for url in sys.argv[1:]]
dataset = leat.Dataset.concat(datasets) if len(datasets) > 1 else datasets[0]
with leat.Loader(dataset, global_batch_size=8, shuffle=True) as loader:
    while True:
        for _ in loader:
            pass
"""


class Node:
    def __init__(self, folder, endpoint: str, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._env = {**os.environ, "LEAT_AGENT": str(folder / "agent.sock"), "AWS_ENDPOINT_URL": endpoint}
        agent = self.run("leat", "agent", "--port", "0", "--bandwidth", f"s3://far={LIMIT}", stdout=subprocess.PIPE)
        self._page = next(line.split()[1] for line in agent.stdout if line.startswith("showing "))

    def run(self, program: str, *words: str, **options) -> subprocess.Popen:
        process = subprocess.Popen([shutil.which(program), *words], env=self._env, text=True, **options)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def read(self, *urls: str) -> None:
        self.run("python", "-c", PROGRAM, *urls)

    def shown(self) -> dict:
        with urllib.request.urlopen(self._page + "/api/node", timeout=60) as answer:
            return json.load(answer)

    def when(self, is_so) -> dict:
        end = time.monotonic() + PATIENCE
        while not is_so(shown := self.shown()):
            assert time.monotonic() < end, shown
            time.sleep(0.1)
        return shown


@pytest.fixture
def node(tmp_path, serve):
    for bucket in ("near", "far"):
        make_blobs(tmp_path / bucket, 500, 20_000)
    with contextlib.ExitStack() as stack:
        yield Node(tmp_path, serve(tmp_path / "near", latency="1ms").bucket.url, stack)


def limits_of(shown: dict) -> dict[str, float | None]:
    return {job["dataset"]: job["share"]["bytes_per_second"] for job in shown["jobs"]}


def test_who_reads_a_bucket_with_a_limit_is_held_to_it(node):
    node.read("s3://near")
    node.read("s3://far")
    node.read("s3://near", "s3://far")

    def is_settled(shown: dict) -> bool:
        limits = limits_of(shown)
        known = all(job["found_rate"] > 0 and job["bottleneck"] != "nothing" for job in shown["jobs"])
        # Both want more than there is: their limits are parts of it.
        return len(limits) == 3 and known and sum(limit for limit in limits.values() if limit) <= 1.02 * LIMIT

    before = node.when(is_settled)
    limits = limits_of(before)
    assert limits.pop("s3://near") is None
    assert sorted(limits) == ["s3://far", "s3://near + s3://far"]
    assert [(link["bucket"], link["bytes_per_second"]) for link in before["node"]["links"]] == [("s3://far", LIMIT)]

    # The bytes that came for all jobs that read there.
    def read_by(shown: dict) -> int:
        return sum(job["ledger"]["bytes"] for job in shown["jobs"] if "s3://far" in job["dataset"])

    later = node.when(lambda shown: shown["node"]["time_seconds"] >= before["node"]["time_seconds"] + 15)
    seconds = later["node"]["time_seconds"] - before["node"]["time_seconds"]
    # Reads in flight are answered still, and reports are of some time before: of a
    # second, or of more if the machine is busy. Without the limit it would be twice as much.
    assert 0 < read_by(later) - read_by(before) <= 1.1 * LIMIT * (seconds + 6)
    near = next(job for job in later["jobs"] if job["dataset"] == "s3://near")
    assert near["found_rate"] * 20_000 > 2 * LIMIT, "one that has no limit reads more than one that has"


@pytest.mark.parametrize(("given", "said"), [
    (("s3://photos/train=1GB",), "name a whole bucket"),
    (("s3://photos=fast",), "it must be bytes a second such as 1GB"),
    (("s3://photos=1GB", "s3://photos=2GB"), "that of this bucket is given already"),
    (("1GB", "2GB"), "the bandwidth of all buckets is given already"),
    (("s3://user:hunter2@photos=1GB",), "put credentials in the environment"),
])  # fmt: skip
def test_says_what_is_wrong_with_a_bandwidth(tmp_path, given, said):
    words = [word for one in given for word in ("--bandwidth", one)]

    done = subprocess.run(["leat", "agent", "--socket", str(tmp_path / "agent.sock"), *words],
                          capture_output=True, text=True, timeout=60)  # fmt: skip

    assert done.returncode != 0
    assert said in done.stderr and "hunter2" not in done.stderr
