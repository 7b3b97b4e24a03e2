"""A server that goes away and comes back at the same address. Longer outages: `./dev bench faults`."""

from __future__ import annotations

import time

import pytest
from unwell_bucket import comings


@pytest.mark.parametrize(("seconds", "away_ms", "in_flight"), [(0.5, 20, 8), (2, 20, 8), (6, 100, 64)])
def test_an_outage_costs_little_more_than_its_own_time(objects, reader, right, seconds, away_ms, in_flight):
    with (
        comings(objects.parent, "--latency", f"{away_ms}ms") as bucket,
        reader(bucket.url, max_in_flight=in_flight) as loader,
    ):
        batches = iter(loader)
        for _ in range(5):
            next(batches)
        back = bucket.is_away_for(seconds)
        began = time.monotonic()
        for _batch in batches:
            pass
        took = time.monotonic() - began
        back.join()
        assert loader.stats()[0]["content_hash"] == right
        retried = loader.metrics()["leat_store_retries_total"]
    well = 600 / in_flight * away_ms / 1000
    assert took < seconds + well + 2
    # In turns, whatever the number of reads.
    assert retried < 16 * (seconds + 2) + 60 + in_flight
