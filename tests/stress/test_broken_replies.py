"""Replies that break off: reset connections, half of a body, a body that stalls."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("fault", ["reset", "truncate"])
@pytest.mark.parametrize("share", ["2%", "20%"])
def test_what_broke_off_is_read_again(objects, serve, reader, content, right, fault, share):
    served = serve(objects, latency="2ms", faults=[f"{fault}:{share}"], seed=7)
    with reader(served.bucket.url, storage={"no_hedge": True}) as loader:
        assert content(loader) == right
    counted = served.counters()
    assert counted["faults"] > 0
    assert counted["get"] <= 600 + counted["faults"] + 5


def test_a_body_that_stalls_is_read_again(objects, serve, reader, content, right):
    served = serve(objects, latency="2ms", fault_script="after 200 GET * stall x2")
    with reader(served.bucket.url, storage={"no_hedge": True}) as loader:
        assert content(loader) == right
    assert served.counters()["faults"] == 2
