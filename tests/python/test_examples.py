"""The examples do what they say, on less data."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import types
import xml.etree.ElementTree

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import demo  # noqa: E402
import demo_data  # noqa: E402
import demo_measure  # noqa: E402
import demo_picture  # noqa: E402
import demo_ways  # noqa: E402
import digits  # noqa: E402
import leat  # noqa: E402
import photos  # noqa: E402
import train_digits  # noqa: E402


@pytest.fixture(scope="module")
def few_photos(tmp_path_factory):
    """FOLDER/photos with 8 crops of each photograph to train on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(photos, "SPLITS", {"train": 8, "test": 1})
        yield photos.make(tmp_path_factory.mktemp("few"))


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_photographs_are_the_same_wherever_they_are_made(few_photos, tmp_path):
    again = photos.make(tmp_path)

    assert len(files(again)) == 8 * (8 + 1)
    assert files(again) == files(few_photos)


def test_data_is_made_once_and_whole_or_not_at_all(tmp_path):
    def fail(folder):
        (folder / "half").touch()
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError):
        demo_data.make_once(tmp_path / "data", fail)
    assert list(tmp_path.iterdir()) == []

    made = []
    for _ in range(2):
        demo_data.make_once(tmp_path / "data", made.append)
    assert len(made) == 1


def test_the_digits_are_learnt(tmp_path):
    digits.make(tmp_path)

    with leat.testing.Bucket(tmp_path, latency="2ms") as bucket:
        accuracy = train_digits.train(
            "s3://digits", storage_options={"endpoint_url": bucket.url, "no_sign_request": True}
        )

    assert accuracy >= 0.95


def test_a_dataloader_and_leat_deliver_the_same_content(few_photos, monkeypatch):
    monkeypatch.setattr(demo_ways, "BATCHES_A_WORKER", 1)
    with leat.testing.Bucket(few_photos.parent, latency="2ms") as bucket:
        place = demo_ways.Place(bucket.url, few_photos)
        torch_way = demo_ways.torch_2_workers(place)
        leat_way = demo.in_child(demo_ways.leat_from_bucket, place)
        files_way = demo.in_child(demo_ways.leat_from_files, place)

    assert leat_way["gets"] == [64] * demo.EPOCHS
    assert torch_way["gets"] == [64]
    assert leat_way["content_hash"][0] == torch_way["content_hash"][0]
    assert leat_way["content_hash"] == [e["content_hash"] for e in leat_way["stats"]]
    assert leat_way["content_hash"][0] != leat_way["content_hash"][1]
    assert files_way["content_hash"] == leat_way["content_hash"][:1]
    assert files_way["gets"] == [0]


def test_a_time_box_ends_training_and_not_the_content(few_photos, monkeypatch):
    monkeypatch.setattr(demo_ways, "BATCHES_A_WORKER", 1)
    with leat.testing.Bucket(few_photos.parent, latency="2ms") as bucket:
        place = demo_ways.Place(bucket.url, few_photos)
        way = demo_ways.TorchWay("sequential", place, demo_ways.HttpReader)
        boxed = way.train(0, 1, time_box=1e-9)
        whole = way.train(0, 1, time_box=600)

    assert boxed["samples_trained"] == 32
    assert boxed["gets"] == [32]
    assert boxed["content_hash"] == whole["content_hash"]


def test_each_worker_of_a_dataloader_has_its_batches_and_the_content_is_the_epochs(few_photos, monkeypatch):
    monkeypatch.setattr(demo_ways, "BATCHES_A_WORKER", 3)
    way = demo_ways.TorchWay("local", demo_ways.Place("http://127.0.0.1:9", few_photos), demo_ways.file_reader)
    way._server = types.SimpleNamespace(reset=lambda: None, counters=lambda: {"get": 0, "bytes": 0})
    few = way.train(0, 1, time_box=0)
    many = way.train(2, 1, time_box=0)

    assert few["samples_trained"] == 3 * 32  # An epoch has 64.
    assert many["samples_trained"] == 2 * 3 * 32
    assert few["content_hash"] == many["content_hash"]


@pytest.mark.parametrize(("rate", "settings", "found"), [
    (lambda workers, threads: -abs(workers - 9), [(1, 32), (4, 32)], (8, 32)),
    (lambda workers, threads: workers, [(0, 1), (4, 1)], (64, 1)),
    (lambda workers, threads: -workers, [(2, 1), (4, 1)], (0, 1)),
    (lambda workers, threads: threads, [(0, 1), (0, 2)], (0, 32)),
    (lambda workers, threads: -threads, [(2, 16), (2, 32)], (2, 1)),
    (lambda workers, threads: -abs(workers - 2), [(1, 1), (2, 1), (4, 1)], (2, 1)),
    # More threads were tried, but not with as many workers.
    (lambda workers, threads: {(8, 16): 12, (8, 32): 20, (16, 32): 30}.get((workers, threads), 1),
     [(2, 32), (4, 16), (8, 16), (16, 16), (8, 8)], (16, 32)),
])  # fmt: skip
def test_a_sweep_goes_on_while_its_best_is_at_an_end(rate, settings, found):
    rates = demo_ways.swept(lambda setting: rate(*setting), settings)

    assert max(rates, key=rates.get) == found
    assert demo_ways.beyond(found, list(rates)) is None


def test_the_demo_writes_a_page_about_its_training(tmp_path, monkeypatch):
    monkeypatch.setattr(photos, "SPLITS", {"train": 40, "test": 1})  # Ten steps.
    photos.make(tmp_path)

    with leat.testing.Bucket(tmp_path, latency="2ms") as bucket:
        page = tmp_path / "page.html"
        told = demo.profiled(bucket, page)

    assert told["failed"] == ""
    assert told["largest_part"] in ("compute", "preparation", "fetch")
    assert "s3://photos" in (tmp_path / "page.html").read_text()


def test_the_demo_names_the_largest_part_of_a_step(tmp_path, monkeypatch):
    report = {"parts": {"fetch": {"seconds": 1}, "compute": {"seconds": 3}, "preparation": {"seconds": 2}}}

    def profile(command, **how):
        return subprocess.CompletedProcess(command, 0, json.dumps(report), "")

    monkeypatch.setattr(demo.subprocess, "run", profile)
    bucket = types.SimpleNamespace(env=dict)
    assert demo.profiled(bucket, tmp_path / "page.html")["largest_part"] == "compute"


class FakeTime:
    """Passes only when told to."""

    def __init__(self):
        self.now = 0

    def perf_counter(self):
        return self.now


def test_the_wait_is_what_iter_and_next_take(monkeypatch):
    time = FakeTime()
    monkeypatch.setattr(demo_measure, "time", time)

    class Trainer:
        def step(self, images, labels):
            time.now += 3

    class Batches:
        def __iter__(self):
            time.now += 10
            for sample in range(2):
                time.now += 100
                label = torch.zeros(1, dtype=torch.int64)
                yield torch.zeros(1, 3), label, torch.tensor([sample])
            time.now += 1000

    def observe(epoch):
        time.now += 10_000

    epoch = demo_measure.train_epoch(Trainer(), Batches(), observe=observe)

    assert epoch.samples == 2
    assert epoch.first_batch_seconds == 10 + 100
    assert epoch.wait_seconds == 10 + 2 * 100 + 1000
    assert epoch.seconds == epoch.wait_seconds + 2 * 3


def test_the_demos_picture_has_a_bar_a_way_of_the_length_of_its_speed():
    ways = {name: {"samples_per_second": speed, "wait_fraction": waits} for name, speed, waits in
            [("sequential", 10.0, 0.9), ("<own>", 0.0, 0.0), ("leat", 200.0, 0.05)]}  # fmt: skip
    drawn = xml.etree.ElementTree.fromstring(demo_picture.draw({"ways": ways, "latency": "55ms", "batch": 64}))

    told = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    widths = [float(rect.get("width")) for rect in drawn.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert "10/s, waits 90%" in told and "200/s, waits 5%" in told and "<own>" in told
    bars = [trains + waits for trains, waits in zip(widths[::2], widths[1::2])]
    assert bars[0] / bars[2] == pytest.approx(10 / 200, abs=0.01) and bars[1] == 0
    assert widths[1] / bars[0] == pytest.approx(0.9, abs=0.01)
