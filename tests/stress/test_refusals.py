"""A service that refuses a share of all requests with 503, whatever their rate."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("share", ["1%", "10%", "50%"])
def test_a_share_of_all_is_refused(objects, serve, reader, content, right, share):
    served = serve(objects, latency="2ms", faults=[f"503:{share}"], seed=11)
    with reader(served.bucket.url, storage={"no_hedge": True}) as loader:
        assert content(loader) == right
        retried = loader.metrics()["leat_store_retries_total"]
    counted = served.counters()
    assert counted["faults"] > 0
    # Each refusal is followed by one more request, and nothing else is.
    assert retried <= counted["faults"]
    assert counted["get"] - counted["faults"] <= 600 + 5
