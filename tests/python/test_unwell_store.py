"""A store that throttles, goes away for a while or answers a few requests late."""

from __future__ import annotations

import logging
import threading
import time

import pytest

import leat
from unwell_bucket import comings, small_objects


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    return small_objects(tmp_path_factory.mktemp("many") / "objects", 1500)


def contents(loader) -> int:
    """The sum of the epoch's content, once it has been read."""
    for _batch in loader:
        pass
    return loader.stats()[-1]["content_hash"]


def reader(url, endpoint, **options) -> leat.Loader:
    storage = {"endpoint_url": endpoint, "no_sign_request": True, **options.pop("storage", {})}
    usual = {"batch_size": 50, "shuffle": True, "seed": 3, "epochs": 1, "output": "numpy"}
    return leat.Loader(url, storage_options=storage, **{**usual, **options})


@pytest.fixture(scope="module")
def whole(objects):
    with leat.Loader(objects, batch_size=50, shuffle=True, seed=3, epochs=1, output="numpy") as loader:
        return contents(loader)


def test_a_limit_that_is_not_told_is_found(objects, serve, whole, fresh_cache):
    served = serve(objects, latency="5ms", most_gets=600)
    with reader(served.url, served.bucket.url, storage={"no_hedge": True}) as loader:
        assert contents(loader) == whole
        counted = loader.metrics()
        assert 0 < counted["leat_store_throttled_total"] < 600
        assert loader.stats()[0]["stalls"]["throttled"] > 0
        begun, *_ended = [line for line in loader.decisions() if line["setting"] == "requests_per_second"]
        assert begun["after"] < begun["before"] and "the store throttled" in begun["reason"]
        # The refusals are no reason for more requests.
        assert not [line for line in loader.decisions() if line["setting"] == "max_in_flight"
                    and line["after"] > line["before"]]  # fmt: skip
    # Each object once, each refusal, and a listing's few.
    assert served.counters()["get"] <= 1500 + counted["leat_store_throttled_total"] + 5


def test_a_wait_that_the_service_asks_for_is_kept(objects, serve, whole, fresh_cache):
    refused_once = "after 0 GET 000/ 503 x1"
    took = {}
    for asked in (None, 3):
        served = serve(objects, latency="5ms", fault_script=refused_once, retry_after=asked)
        with reader(served.url, served.bucket.url) as loader:
            began = time.monotonic()
            assert contents(loader) == whole
            took[asked] = time.monotonic() - began
            assert loader.metrics()["leat_store_throttled_total"] == 1
            waited = loader.metrics()["leat_store_backoff_nanoseconds_total"] / 1e9
            assert waited < 1 if asked is None else 3 <= waited < 4.5
    assert took[3] >= 3


def test_refusals_at_any_rate_are_borne(objects, serve, whole, fresh_cache):
    served = serve(objects, latency="1ms", faults=["503:40%"], seed=5)
    with reader(served.url, served.bucket.url) as loader:
        assert contents(loader) == whole
    assert served.counters()["faults"] > 0


def test_an_outage_is_ridden_out(objects, whole, fresh_cache, caplog):
    caplog.set_level(logging.INFO, logger="leat")
    with comings(objects.parent, "--latency", "5ms") as bucket:
        with reader("s3://objects", bucket.url) as loader:
            batches = iter(loader)
            for _ in range(3):
                next(batches)
            back = bucket.is_away_for(11)
            rest = sum(1 for _ in batches)
            back.join()
            assert rest == 27
            assert loader.stats()[0]["content_hash"] == whole
            retries = loader.metrics()["leat_store_retries_total"]
    # In turns, and not each of 128 by itself.
    assert retries < 1000
    said = [record.getMessage() for record in caplog.records if "s3://objects" in record.getMessage()]
    assert any("waits up to 300 s" in line for line in said), said
    assert any("answers again" in line for line in said), said


def test_patience_ends(objects, fresh_cache):
    with comings(objects.parent, "--latency", "5ms") as bucket:
        with reader("s3://objects", bucket.url, storage={"patience": 2}) as loader:
            batches = iter(loader)
            next(batches)
            bucket.end()
            began = time.monotonic()
            with pytest.raises(leat.Unavailable, match="patience= bears longer outages"):
                for _ in batches:
                    pass
            assert 1 < time.monotonic() - began < 10


def test_what_is_opened_in_an_outage_waits_for_its_end(objects, whole, fresh_cache):
    """The process has just had answers of that server: it is there, and has an outage."""
    with comings(objects.parent, "--latency", "1ms") as bucket:
        dataset = leat.Dataset("s3://objects", storage_options={"endpoint_url": bucket.url, "no_sign_request": True})
        assert len(dataset) == 1500
        # Longer than a server is tried that has never answered.
        back = bucket.is_away_for(3.5)
        began = time.monotonic()
        found: dict[str, int] = {}

        def read(way: str) -> None:
            if way == "sample":
                found[way] = len(dataset[3]["data"])
            else:
                with reader("s3://objects", bucket.url) as loader:
                    found[way] = contents(loader)

        threads = [threading.Thread(target=read, args=(way,)) for way in ("sample", "loader")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - began > 3
        back.join()
    assert found == {"sample": 4096, "loader": whole}


@pytest.mark.parametrize("patience", [0, -1, "long", 10**9, True])
def test_a_patience_that_cannot_be(objects, patience):
    with pytest.raises(leat.InvalidArgument, match="patience"):
        leat.Loader(objects, batch_size=5, shuffle=False, storage_options={"patience": patience})


def test_a_late_read_that_training_waits_for_is_sent_twice(objects, serve, whole, fresh_cache):
    served = serve(objects, latency="5ms", faults=["slow:2s:0.5%"], seed=1)
    with reader(served.url, served.bucket.url, max_in_flight=16) as loader:
        began = time.monotonic()
        assert contents(loader) == whole
        took = time.monotonic() - began
        counted = loader.metrics()
    assert 1 <= counted["leat_store_hedges_won_total"] <= counted["leat_store_hedges_total"] <= 40
    assert took < 60
