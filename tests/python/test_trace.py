"""Traces: every sample is in them, and they fit over torch.profiler's."""

from __future__ import annotations

import collections
import gzip
import json
import pathlib
import time

import pytest
import torch

import leat

BATCHES = 6


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for number in range(4 * BATCHES):
        (folder / f"{number:02}").write_bytes(b"x" * 100)
    return folder


def train(data, trace, epochs=1, **options):
    with leat.Loader(str(data), batch_size=4, shuffle=True, trace=trace, **options) as loader:
        for _ in range(epochs):
            for _ in loader:
                time.sleep(0.01)  # In the middle of the step: two clocks never quite agree.
                torch.ones(8, 8) @ torch.ones(8, 8)
                time.sleep(0.01)


def events_of(path) -> list[dict]:
    return json.loads(path.read_text())["traceEvents"]


def test_every_sample_and_step_is_in_it(data, tmp_path):
    train(data, tmp_path / "t.json", epochs=2)

    slices = collections.Counter(event["name"] for event in events_of(tmp_path / "t.json") if event["ph"] == "X")
    assert slices["fetch"] == slices["decode"] == 2 * 4 * BATCHES
    assert slices["batch"] == slices["wait"] == slices["step"] == 2 * BATCHES
    samples = [event["args"]["sample"] for event in events_of(tmp_path / "t.json") if event.get("name") == "fetch"]
    assert sorted(samples) == sorted(list(range(4 * BATCHES)) * 2)


def test_each_rank_has_a_file_of_its_own(data, tmp_path):
    train(data, tmp_path / "t.json", rank=1, world_size=2)

    assert [path.name for path in tmp_path.iterdir()] == ["t.rank1.json"]


def test_the_way_of_a_sample_that_passed_the_cache_leads_through_it(data, tmp_path):
    train(data, tmp_path / "t.json", epochs=2, cache=leat.Cache(ram="8MiB"))

    events = sorted((event for event in events_of(tmp_path / "t.json") if event["ph"] in "Xstf"), key=lambda event: event["ts"])
    # An arrow belongs to the slice that began last on its row.
    slice_at: dict[int, str] = {}
    ways: dict[int, list[str]] = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slice_at[event["tid"]] = event["name"]
        else:
            ways[event["id"]].append(slice_at[event["tid"]])
    of_samples = collections.Counter(" ".join(way) for way in ways.values() if "decode" in way)
    # Written to it in the first epoch, found in it in the second.
    assert of_samples == {"fetch cache decode batch": 2 * 4 * BATCHES}


def test_arrows_and_processes_of_two_ranks_are_not_mixed_up(tmp_path):
    """Each file counts its arrows from 1, and in containers each process is the first."""

    def written(name: str, cat: str) -> pathlib.Path:
        arrow = {"cat": cat, "name": "sample", "pid": 1, "tid": 1, "id": 1}
        events = [{**arrow, "ph": phase, "ts": at} for at, phase in enumerate("sf")]
        (tmp_path / name).write_text(json.dumps({"baseTimeNanoseconds": 0, "traceEvents": events}))
        return tmp_path / name

    files = [written(f"{cat}{rank}.json", cat) for rank in range(2) for cat in ("leat", "ac2g")]
    leat.trace.merge(files, tmp_path / "all.json")

    events = events_of(tmp_path / "all.json")
    assert set(collections.Counter(event["id"] for event in events).values()) == {2}, "an arrow's beginning and its end"
    assert len({event["id"] for event in events}) == 4
    pids = [event["pid"] for event in events[::2]]
    assert pids[0] == pids[1] == 1 and pids[2] == pids[3] != 1, "a rank's traces are of one process"


@pytest.mark.parametrize("name", ["torch.json", "torch.json.gz"])
def test_what_torch_saw_of_a_step_lies_in_ours(name, data, tmp_path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        train(data, tmp_path / "ours.json")
    profiler.export_chrome_trace(str(tmp_path / name))

    leat.trace.merge([tmp_path / name, tmp_path / "ours.json"], tmp_path / "both.json")

    both = events_of(tmp_path / "both.json")
    steps = [(event["ts"], event["ts"] + event["dur"]) for event in both if event.get("name") == "step"]
    products = [event["ts"] for event in both if event.get("name") == "aten::matmul"]
    assert len(products) == len(steps) == BATCHES
    for at, (begin, end) in zip(sorted(products), sorted(steps), strict=True):
        assert begin <= at <= end


@pytest.mark.parametrize("bytes_of_it", [b"no json", b"[1, 2]", b'{"traceEvents": 3}', b"\x1f\x8bxx", gzip.compress(b"{}", mtime=0)])
def test_what_is_no_trace_is_refused(bytes_of_it, tmp_path):
    (tmp_path / "x").write_bytes(bytes_of_it)

    with pytest.raises(leat.InvalidArgument, match="no trace"):
        leat.trace.merge([tmp_path / "x"], tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_made_is_named(data, tmp_path):
    with pytest.raises(leat.errors.NotFound, match="no/t.json"):
        leat.Loader(str(data), batch_size=4, shuffle=True, trace=tmp_path / "no" / "t.json")
