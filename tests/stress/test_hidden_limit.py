"""A service that serves 300 GETs a second, and answers 503 above that."""

from __future__ import annotations

import time

import pytest
from unwell_bucket import read_in_ranks


@pytest.mark.parametrize("retry_after", [None, 1])
def test_one_rank(objects, serve, reader, content, right, retry_after):
    served = serve(objects, latency="5ms", most_gets=300, retry_after=retry_after)
    with reader(served.bucket.url) as loader:
        began = time.monotonic()
        assert content(loader) == right
        took = time.monotonic() - began
        refused = loader.metrics()["leat_store_throttled_total"]
    assert 0 < refused < 0.2 * 600  # Most of them in the slow start.
    assert took < 1.5 * 600 / 300 + (2 if retry_after else 0) + 1


def test_the_usual_window(objects, serve, reader, content, right):
    served = serve(objects, latency="5ms", most_gets=300)
    with reader(served.bucket.url, max_in_flight=None) as loader:
        assert content(loader) == right
        assert 0 < loader.metrics()["leat_store_throttled_total"] < 0.4 * 600


@pytest.mark.parametrize("ranks", [2, 8])
def test_the_ranks_of_a_node(objects, serve, fresh_cache, rights, ranks):
    served = serve(objects, latency="5ms", most_gets=300)
    found = read_in_ranks(served.bucket.url, ranks, epochs=3)
    assert found.contents == rights
    counted = served.counters()
    good = counted["get"] - counted["faults"]
    assert 0 < counted["faults"] < 0.3 * good
    assert found.seconds < 2 * good / 300 + 5
