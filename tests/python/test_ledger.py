"""What a run asked for is what the bucket counted, and what the price list takes for it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

import leat


def bench(folder, *words: str, **variables: str) -> dict:
    done = subprocess.run(
        ["leat", "bench", "--json", "--global-batch-size", "10", "--epochs", "2", *words],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "LEAT_CACHE_DIR": str(folder / "cache"), **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "store/b").mkdir(parents=True)
    for number in range(60):
        (tmp_path / "store/b" / f"{number:03}").write_bytes(bytes(1000))
    return tmp_path / "store"


def test_the_ledger_is_what_the_bucket_counted(data, tmp_path):
    with leat.testing.Bucket(data, latency="10ms") as bucket:
        report = bench(tmp_path, "s3://b", "--nat", "--node-per-hour", "36",
                       LOCAL_WORLD_SIZE="2", LOCAL_RANK="0", RANK="0", WORLD_SIZE="2", **bucket.env())  # fmt: skip
        counted = bucket.counters()

    ledger = report["ledger"]
    assert ledger["gets"] == counted["get"] >= 60
    assert ledger["lists"] == counted["list"] >= 1
    assert 60_000 <= ledger["bytes"] <= counted["bytes"]
    waited = sum(epoch["wait_seconds"] for epoch in report["epochs"])
    assert ledger["stalled_accelerator_seconds"] == pytest.approx(waited) and waited > 0
    # Two accelerators share the node: 36 dollars an hour are half a cent a second for each.
    assert ledger["stalled_dollars"] == pytest.approx(waited * 0.005)
    assert ledger["request_dollars"] == pytest.approx(ledger["gets"] * 4e-7 + ledger["lists"] * 5e-6)
    assert ledger["transfer_dollars"] == pytest.approx(ledger["bytes"] * 0.045e-9)


def test_a_provider_that_nobody_knows_is_wrong_usage(data):
    done = subprocess.run(["leat", "bench", str(data / "b"), "--global-batch-size", "10", "--provider", "ibm"],
                          capture_output=True, text=True, timeout=60)  # fmt: skip

    assert done.returncode == 2
    assert "ibm" in done.stderr
