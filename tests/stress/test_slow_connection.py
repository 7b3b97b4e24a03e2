"""One connection gives a byte a second."""

from __future__ import annotations

import time


def test_a_byte_a_second_costs_seconds(objects, serve, reader, content, right):
    served = serve(objects, latency="2ms", fault_script="after 300 GET * trickle x1")
    with reader(served.bucket.url) as loader:
        began = time.monotonic()
        assert content(loader) == right
        took = time.monotonic() - began
    assert served.counters()["faults"] == 1
    # The object alone would take over an hour.
    assert took < 8
