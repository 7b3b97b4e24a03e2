"""Tuning, from Python: the settings that change, the reports, and the things
that never change."""

import json
import subprocess

import pytest

import leat

SAMPLES, BATCH = 96, 8
PATIENCE = 60  # Epochs: each takes a second or two.


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("bucket")
    (root / "data").mkdir()
    for number in range(SAMPLES):
        (root / "data" / f"{number:03}").write_bytes(bytes([number]) * 500)
    return root


def load(bucket, **options):
    return leat.research.Loader(
        bucket.s3_url("data"), storage_options={"endpoint_url": bucket.url, "no_sign_request": True},
        batch_size=BATCH, shuffle=True, **options
    )  # fmt: skip


def raised(decisions):
    """True once requests in flight were raised: on a busy machine threads
    may come first."""
    return [d for d in decisions if d["setting"] == "max_in_flight" and d["after"] > d["before"]]


def test_it_raises_what_is_too_low_and_what_comes_is_the_same(root, tmp_path):
    trace = tmp_path / "tuner.jsonl"
    with leat.testing.Bucket(root, latency="20ms") as bucket:
        with load(bucket, tune={"threads": 1, "max_in_flight": 1}, tune_trace=trace) as tuned:
            for _ in range(PATIENCE):
                for _ in tuned:
                    pass
                if any((d["found_gain"] or 0) > 0 for d in raised(tuned.decisions())):
                    break
            epochs = tuned.stats()
        decisions, explained = tuned.decisions(), tuned.explain()
        with load(bucket, tune=False) as plain:
            for _ in epochs:
                for _ in plain:
                    pass
            assert plain.decisions() == []
            assert plain.explain() is None
            expected = plain.stats()

    first = raised(decisions)[0]
    assert first["before"] == 1 < first["after"] <= 512
    assert "max_in_flight" in first["reason"]
    assert any((d["found_gain"] or 0) > 0 for d in raised(decisions))
    assert explained["samples_per_second"] > 0
    for ours, theirs in zip(epochs, expected):
        assert ours["order_hash"] == theirs["order_hash"]
        assert ours["content_hash"] == theirs["content_hash"]
        assert ours["requests"]["get"] == theirs["requests"]["get"]

    said = subprocess.run(
        [leat.testing.find_binary(), "explain", "--replay", str(trace), "--json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(said.stdout)["decisions"] == decisions


@pytest.mark.parametrize("tune", [None, 1, "on", {"thread": 1}, {"threads": 0}, {"max_in_flight": "8"}])
def test_what_cannot_be_is_refused(root, tune):
    with pytest.raises(leat.InvalidArgument, match="tune|threads|max_in_flight"):
        leat.research.Loader(str(root / "data"), batch_size=BATCH, shuffle=True, tune=tune)


def test_the_environment_turns_it_off(root, monkeypatch):
    monkeypatch.setenv("LEAT_TUNE", "off")
    with leat.Loader(str(root / "data"), batch_size=BATCH, shuffle=True) as loader:
        for _ in loader:
            pass
        assert loader.explain() is None


def test_large_objects_come_in_shorter_parts_where_connections_are_slow(tmp_path):
    """Memory holds four; each is a request until it is cut."""
    (tmp_path / "large").mkdir()
    for number in range(12):
        (tmp_path / "large" / f"{number:02}").write_bytes(bytes([number]) * (4 << 20))
    with leat.testing.Bucket(tmp_path, bandwidth="4MB/s") as bucket:
        options = {"storage_options": {"endpoint_url": bucket.url, "no_sign_request": True}, "batch_size": 1, "shuffle": True,
                   "memory": "20MiB"}
        with leat.Loader(bucket.s3_url("large"), **options) as tuned:
            for _ in range(PATIENCE):
                for _ in tuned:
                    pass
                parts = [d for d in tuned.decisions() if d["setting"] == "part_bytes"]
                if parts and parts[0]["found_gain"] is not None:
                    break
            for _ in tuned:
                pass
            epochs = tuned.stats()
        bucket.reset_counters()
        with leat.research.Loader(bucket.s3_url("large"), tune=False, **options) as plain:
            for _ in plain:
                pass
            expected = plain.stats()[0]
        plain_gets = bucket.counters()["get"]

    assert parts[0]["after"] < 4 << 20
    assert "requests in flight, of " in parts[0]["reason"]
    assert {epoch["content_hash"] for epoch in epochs[:1]} == {expected["content_hash"]}
    assert expected["requests"]["get"] == 12 <= plain_gets
    if parts[-1]["after"] < 4 << 20:  # It was kept.
        assert epochs[-1]["requests"]["get"] > 12
    assert all(epoch["bytes_read"] == 12 * (4 << 20) for epoch in epochs)


def test_with_a_cache_parts_stay_as_they_are(root, tmp_path):
    trace = tmp_path / "tuner.jsonl"
    for cache, expected in ((None, 8 << 20), (leat.Cache(ram="1MiB"), 0)):
        with leat.research.Loader(str(root / "data"), batch_size=BATCH, shuffle=True, cache=cache, tune_trace=trace) as loader:
            for _ in loader:
                pass
        first = json.loads(trace.read_text().splitlines()[0])
        assert first["part_bytes"] == expected
