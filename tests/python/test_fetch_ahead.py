"""Reading ahead as DELI does: requests are counted at the server."""

from __future__ import annotations

import json
import time

import pytest

import leat
from small_datasets import make_shards
from test_cache import COST, gets_of_epochs, hashes_of, leat_command


@pytest.fixture
def many(serve, tmp_path):
    """200 objects of a page's size."""
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    served = serve(tmp_path / "many", latency="1ms", repeat="many/x.bin:200")
    served.loaders = leat.research.Loader
    return served


def test_the_server_sees_bursts_of_f_when_t_are_left(many):
    options = {"global_batch_size": 10, "drop_last": False, "fields": ["data"], "batch": "dict",
               "epochs": 2}
    rule = leat.research.FetchAhead(fetch_size=40, queue_threshold=10)
    with many.loader(**options, fetch_ahead=rule) as loader:
        for epoch in range(2):
            many.reset()
            asked = []
            # By the fourth batch, the eighth, … ten are left of those asked for.
            for batch, _ in enumerate(loader):
                expected = min(200, 40 + 40 * ((batch + 1) // 4))
                ends = time.monotonic() + 60
                while many.counters()["get"] < expected and time.monotonic() < ends:
                    time.sleep(0.001)
                asked.append(many.counters()["get"])
                assert asked[-1] == expected
            assert asked == [40, 40, 40] + [80] * 4 + [120] * 4 + [160] * 4 + [200] * 5
        assert [stats["requests"]["ahead"] for stats in loader.stats()] == [0, 0]


def test_a_fifo_cache_keeps_what_was_fetched(many):
    cache = leat.research.Cache(ram=100 * COST, policy="fifo")
    rule = leat.research.FetchAhead(fetch_size=50, queue_threshold=50)
    gets, stats = gets_of_epochs(many, 3, cache=cache, fetch_ahead=rule)
    assert sum(gets) == 600 - sum(epoch["cache"]["ram_hits"] for epoch in stats) < 600
    assert hashes_of(stats) == hashes_of(gets_of_epochs(many, 3)[1])


def test_what_cannot_be_is_refused(tmp_path):
    for folder in ("shards", "unindexed"):
        make_shards(tmp_path / folder, shards=2, samples=16, size=1000)
    with pytest.raises(leat.InvalidArgument, match='shuffle="full"'):
        leat.research.Loader(tmp_path / "shards", batch_size=4, shuffle=True, fetch_ahead=leat.research.FetchAhead())
    with pytest.raises(leat.InvalidArgument, match="leat index"):
        leat.research.Loader(
            f"{tmp_path}/unindexed", batch_size=4, shuffle="stream", fetch_ahead=leat.research.FetchAhead()
        )
    with pytest.raises(leat.InvalidArgument, match="leat.research.FetchAhead"):
        leat.research.Loader(tmp_path / "shards", batch_size=4, shuffle=True, fetch_ahead=64)
    for wrong in ({"fetch_size": 0}, {"queue_threshold": -1}, {"fetch_size": True}):
        with pytest.raises(leat.InvalidArgument, match="number of samples"):
            leat.research.FetchAhead(**wrong)
    with leat.research.Loader(
        tmp_path / "shards", batch_size=4, shuffle="full", fetch_ahead=leat.research.FetchAhead(8, 8)
    ) as loader:
        assert sum(1 for _ in loader) == 8


def test_bench_takes_the_same_words(many):
    words = ["bench", many.url, "--endpoint-url", many.bucket.url, "--no-sign-request",
             "--global-batch-size", "10", "--json", "--queue-threshold", "10"]  # fmt: skip
    assert "--fetch-size" in leat_command(*words).stderr
    done = leat_command(*words, "--fetch-size", "40")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["settings"]["fetch_size"], report["settings"]["queue_threshold"]) == (40, 10)
    assert report["epochs"][0]["requests"]["get"] == 200
