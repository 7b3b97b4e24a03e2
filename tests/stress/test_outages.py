"""A server that goes away and comes back at the same address. Longer outages: `./dev bench faults`."""

from __future__ import annotations

import time

import pytest
from unwell_bucket import comings


@pytest.mark.parametrize("seconds", [0.5, 2, 6])
def test_an_outage_costs_little_more_than_its_own_time(objects, reader, right, seconds):
    with comings(objects.parent, "--latency", "20ms") as bucket, reader(bucket.url, max_in_flight=8) as loader:
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
    well = 600 / 8 * 0.02
    assert took < seconds + well + 3
    # In turns, whatever the number of reads.
    assert retried < 16 * (seconds + 2) + 60
