"""A dataset in other processes: opened again, and the same or an error."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import leat
from small_datasets import encoded, make_pictures, make_shards, pixels, run_python, write

ELSEWHERE = """
import pickle, sys
dataset = pickle.load(open(sys.argv[1], "rb"))
print(dataset.digest, len(dataset), dataset.key(len(dataset) - 1))
print(len(bytes(next(iter(dataset[0].values())))))
"""


def again(dataset: leat.Dataset) -> leat.Dataset:
    return pickle.loads(pickle.dumps(dataset))


@pytest.fixture
def manifest(tmp_path):
    rows = []
    for number in range(6):
        write(tmp_path / f"photos/{number}.png", encoded(pixels(number)))
        rows.append({"path": f"{number}.png", "label": "ab"[number % 2], "width": number})
    return write(tmp_path / "photos/rows.jsonl", "\n".join(map(json.dumps, rows)).encode())


@pytest.fixture
def every_kind(tmp_path, pictures, manifest):
    make_shards(tmp_path / "shards", 2, 3, 100)
    write(tmp_path / "corpus/a.bin", np.arange(100, dtype="<u2").tobytes())
    folder = leat.Dataset(pictures)
    tokens = leat.Dataset.tokens(tmp_path / "corpus", dtype="uint16", seq_len=10)
    return {
        "folder": folder,
        "shards": leat.Dataset(tmp_path / "shards"),
        "manifest": leat.Dataset.from_manifest(
            manifest, fields={"image": "path", "label": "label"}, columns=["width"], classes=["b", "a"]
        ),
        "tokens": tokens,
        "select": folder.select([5, 3, 3]),
        "filter": folder.filter(lambda of: of["label"] == 1),
        "slice": folder[10:50:3][::-1],
        "split": folder.split(0.5, 0.5)[1].take(7),
        "concat": leat.Dataset.concat([folder.take(4), folder.skip(55)]).skip(1),
        "tokens, some": tokens.skip(2),
    }


def test_every_kind_of_dataset_pickles(every_kind):
    for name, dataset in every_kind.items():
        other = again(dataset)
        assert other.digest == dataset.digest and len(other) == len(dataset), name
        assert [other.key(i) for i in range(len(other))] == [
            dataset.key(i) for i in range(len(dataset))
        ], name
        np.testing.assert_equal(other[-1], dataset[-1])
        assert again(other).digest == dataset.digest, name


def test_another_process_opens_it(every_kind, tmp_path):
    for name in ("folder", "concat", "tokens"):
        dataset = every_kind[name]
        pickled = write(tmp_path / "dataset.pickle", pickle.dumps(dataset))
        done = run_python(ELSEWHERE, pickled)
        assert done.stdout.split()[:2] == [dataset.digest, str(len(dataset))], done.stderr


def test_copies_are_the_same_data(every_kind):
    dataset = every_kind["split"]

    assert copy.deepcopy(dataset).digest == copy.copy(dataset).digest == dataset.digest


def test_a_relative_path_means_the_same_in_another_folder(pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(pictures.parent)
    pickled = pickle.dumps(leat.Dataset(pictures.name))
    monkeypatch.chdir(tmp_path)

    assert len(pickle.loads(pickled)) == 60


def test_other_data_is_refused(tmp_path, fresh_cache):
    make_pictures(tmp_path / "few", 6)
    pickled = pickle.dumps(leat.Dataset(tmp_path / "few").take(3))
    write(tmp_path / "few/ant/more.png", b"x")
    leat.Dataset(tmp_path / "few", refresh="always")

    with pytest.raises(leat.InvalidArgument, match="few is other data .* publish its catalogue"):
        pickle.loads(pickled)


def test_options_go_along_and_secrets_do_not(pictures, serve, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "name-of-somebody")
    served = serve(pictures)
    pickled = pickle.dumps(leat.Dataset(served.url, **served.options))

    assert b"hush-hush" not in pickled and b"name-of-somebody" not in pickled
    assert served.bucket.url.encode() in pickled
    assert pickle.loads(pickled)[3]["data"] == encoded(pixels(3))


def test_a_long_run_of_samples_is_few_bytes(pictures):
    every = leat.Dataset(pictures)

    assert len(pickle.dumps(every[1:59:2])) < len(pickle.dumps(every)) + 200


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_torch_read_it(pictures, serve, method):
    torch_data = pytest.importorskip("torch.utils.data")
    served = serve(pictures)
    dataset = leat.Dataset(served.url, **served.options).filter(lambda of: of["label"] != 1)
    want = [sample["data"] for sample in dataset]  # Its own connections are open now.

    loader = torch_data.DataLoader(
        dataset, batch_size=None, num_workers=2, multiprocessing_context=method, timeout=60
    )

    assert [bytes(sample["data"]) for sample in loader] == want
