"""Two requests of a hundred are answered ten times as late as the others."""

from __future__ import annotations


def test_what_training_waits_for_is_sent_twice(objects, serve, reader, content, right):
    served = serve(objects, latency="50ms", faults=["slow:2s:2%"], seed=5)
    with reader(served.bucket.url) as loader:
        assert content(loader) == right
        counted = loader.metrics()
    assert served.counters()["faults"] > 0
    assert 1 <= counted["leat_store_hedges_won_total"] <= counted["leat_store_hedges_total"] <= 0.02 * 600 + 16
    assert served.counters()["get"] <= 1.02 * 600 + 16 + 5
