"""A reply with a flipped bit, from a service that gives checksums, and from one that gives none."""

from __future__ import annotations


def test_a_checksum_finds_it_and_the_read_is_sent_again(objects, serve, reader, content, right):
    served = serve(objects, latency="2ms", faults=["flip:5%"], seed=2, checksums=True)
    with reader(served.bucket.url) as loader:
        assert content(loader) == right
        retried = loader.metrics()["leat_store_retries_total"]
    flipped = served.counters()["faults"]
    assert flipped > 0
    assert retried >= 0.9 * flipped  # A listing may be among them.


def test_without_a_checksum_nobody_can_know(objects, serve, reader, content, right):
    """The test above finds what this one lets pass."""
    served = serve(objects, latency="2ms", faults=["flip:5%"], seed=2)
    with reader(served.bucket.url) as loader:
        assert content(loader) != right
