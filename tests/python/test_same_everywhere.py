"""The same samples, in the same order, with the same bytes, from any place, by
any way of reading, and over any number of ranks."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

import leat
from leat.ops import DecodeImage, Normalize, RandomHorizontalFlip, RandomResizedCrop
from small_datasets import make_pictures, make_shards

N = 200
BATCH = 48
OPS = [
    DecodeImage(),
    RandomResizedCrop(8),
    RandomHorizontalFlip(),
    Normalize("imagenet"),
]
PICTURES = {"global_batch_size": BATCH, "shuffle": True, "batch": "dict", "output": "numpy", "ops": OPS, "seed": 3}
SHARDS = {"global_batch_size": BATCH, "shuffle": leat.Shuffle(window=2), "batch": "dict", "output": "numpy", "seed": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many-pictures")
    make_pictures(folder, N)
    return folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("some-shards")
    make_shards(folder, shards=5, samples=40, size=2000)
    return folder


def hashes(loader, epochs: int = 2) -> list[tuple[str, str]]:
    with loader:
        for _ in range(epochs):
            assert sum(1 for _ in loader) == len(loader)
        return [(e["order_hash"], e["content_hash"]) for e in loader.stats()]


@pytest.fixture(scope="module")
def expected(folder):
    return hashes(leat.Loader(folder, **PICTURES))


@pytest.fixture(scope="module")
def expected_of_shards(shards):
    return hashes(leat.Loader(shards, **SHARDS))


def test_epochs_and_seeds_differ(folder, expected):
    assert len({value for epoch in expected for value in epoch}) == 4
    other = hashes(leat.Loader(folder, **{**PICTURES, "seed": 4}))
    assert not {v for epoch in expected for v in epoch} & {v for epoch in other for v in epoch}
    # The order alone is another, too.
    plain = [hashes(leat.Loader(folder, global_batch_size=BATCH, shuffle=True, drop_last=False, seed=seed))
             for seed in (3, 4)]
    assert plain[0][0][0] != plain[1][0][0]
    assert plain[0][0][1] == plain[1][0][1]  # The same bytes, in another order.


# --- wherever ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pictures", "shards"])
@pytest.mark.parametrize("place", ["file", "s3", "tls", "http"])
def test_wherever_the_data_is(request, monkeypatch, tmp_path, serve, place, kind):
    source = request.getfixturevalue("folder" if kind == "pictures" else "shards")
    options = PICTURES if kind == "pictures" else SHARDS
    wanted = request.getfixturevalue("expected" if kind == "pictures" else "expected_of_shards")
    if place == "file":
        got = hashes(leat.Loader(f"file://{source}", **options))
    elif place == "http":
        copy = tmp_path / "published"
        shutil.copytree(source, copy)
        subprocess.run([leat.testing.find_binary(), "index", "--publish", copy],
                       check=True, capture_output=True, timeout=60)
        served = serve(copy)
        got = hashes(leat.Loader(served.http_url, **options))
        assert served.counters()["list"] == 0
    else:
        served = serve(source, tls=place == "tls")
        if place == "tls":
            with pytest.raises(leat.Error, match="(?i)certificate"):
                served.loader(**options)  # Trusted by nobody yet.
            monkeypatch.setenv("AWS_CA_BUNDLE", served.bucket.certificate)
        got = hashes(served.loader(**options))
    assert got == wanted


def test_signed_requests_and_a_prefix(folder, expected, monkeypatch, tmp_path):
    shutil.copytree(folder, tmp_path / "root/photos/deep/er folder+&")
    bucket = leat.testing.Bucket(tmp_path / "root", latency="0", credentials=("key", "secret"))
    with bucket:
        for name, value in bucket.env().items():
            monkeypatch.setenv(name, value)
        assert hashes(leat.Loader("s3://photos/deep/er folder+&/", **PICTURES)) == expected
        assert hashes(leat.Loader("s3://photos/deep/er folder+&", **PICTURES)) == expected


def test_the_command_says_the_same(folder, expected):
    done = subprocess.run(
        [leat.testing.find_binary(), "bench", folder, "--json", "--global-batch-size", str(BATCH),
         "--seed", "3", "--ops",
         "decode_image,random_resized_crop:8,random_horizontal_flip,normalize:imagenet"],
        check=True, capture_output=True, text=True, timeout=60)
    epochs = json.loads(done.stdout)["epochs"]
    assert [(e["order_hash"], e["content_hash"]) for e in epochs] == expected


# --- however ----------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("max_in_flight", [1, 16, 256])
def test_however_many_threads_and_requests(folder, expected, serve, threads, max_in_flight):
    served = serve(folder, latency="1ms")
    served.loader(**PICTURES).close()
    served.reset()
    with served.loader(**PICTURES, threads=threads, max_in_flight=max_in_flight) as loader:
        assert hashes(loader) == expected
    assert served.counters()["most_in_flight"] <= max_in_flight


@pytest.mark.parametrize("memory", ["200KB", "1GB"])
def test_however_much_memory(folder, expected, memory):
    assert hashes(leat.Loader(folder, **PICTURES, memory=memory)) == expected


@pytest.mark.parametrize("batch", [8, 25, 40, 100])
def test_however_large_the_batch(folder, batch):
    options = {**PICTURES, "drop_last": False}
    one = hashes(leat.Loader(folder, **{**options, "global_batch_size": batch}))
    assert one == hashes(leat.Loader(folder, **options))


@pytest.mark.parametrize("kind", ["pictures", "shards"])
@pytest.mark.parametrize("faults", [["503:5%"], ["reset:3%", "truncate:3%", "500:2%"]])
def test_whatever_fails_on_the_way(request, serve, faults, kind):
    source = request.getfixturevalue("folder" if kind == "pictures" else "shards")
    options = PICTURES if kind == "pictures" else SHARDS
    wanted = request.getfixturevalue("expected" if kind == "pictures" else "expected_of_shards")
    served = serve(source, latency="1ms", faults=faults, seed=5)
    loader = served.loader(**options, epochs=2)
    served.reset()
    assert hashes(loader) == wanted
    requests = [e["requests"] for e in loader.stats()]
    gets = served.counters()["get"]
    counted = sum(r["get"] for r in requests)
    # A kept connection that was reset is libcurl's to replace, unseen by us.
    assert counted <= gets if "reset:3%" in faults else counted == gets
    if kind == "pictures":
        assert sum(r["retried"] for r in requests) > 3


# --- over however many ranks ------------------------------------------------


def steps_of(source, options, world_size, skip_state=None):
    """Each step's rows over all ranks, and the sum of the ranks' content hashes."""
    by_step: list[dict[str, list]] = []
    content = 0
    for rank in range(world_size):
        with leat.Loader(source, **options, ids=True, rank=rank,
                         world_size=world_size) as loader:
            if skip_state is not None:
                loader.load_state_dict(skip_state)
            for step, batch in enumerate(loader):
                if step == len(by_step):
                    by_step.append({name: [] for name in batch})
                for name, value in batch.items():
                    value = value.tolist() if isinstance(value, leat.Ragged) else value
                    by_step[step][name] += list(value)
            content += int(loader.stats()[0]["content_hash"], 16)
    return by_step, content % 2**128


def sorted_by(field: str, step):
    order = np.argsort(step[field], kind="stable")
    return {name: [values[place] for place in order] for name, values in step.items()}


def assert_same_steps(one, other, by: str | None = None):
    """`by`: a field that names samples, whose order among the ranks of a step is not asked."""
    assert len(one) == len(other)
    for left, right in zip(one, other):
        assert list(left) == list(right)
        if by is not None:
            left, right = sorted_by(by, left), sorted_by(by, right)
        for name in left:
            if isinstance(left[name][0], np.ndarray):
                np.testing.assert_array_equal(np.stack(left[name]), np.stack(right[name]))
            else:
                assert left[name] == right[name]


@pytest.mark.parametrize("tail", [{}, {"drop_last": False}, {"drop_last": "pad"}])
@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_world_sizes_share_the_global_batches(folder, world_size, tail):
    options = {**PICTURES, **tail}
    alone, content = steps_of(folder, options, 1)
    assert [len(step["index"]) for step in alone[:4]] == [BATCH] * 4
    together, sum_of_contents = steps_of(folder, options, world_size)
    assert_same_steps(alone, together)
    assert sum_of_contents == content


@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_world_sizes_share_the_global_batches_of_shards(shards, world_size):
    alone, content = steps_of(shards, SHARDS, 1)
    together, sum_of_contents = steps_of(shards, SHARDS, world_size)
    assert_same_steps(alone, together, by="index")
    assert sum_of_contents == content


@pytest.mark.parametrize("kind", ["pictures", "shards"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 8), (8, 1)])
@pytest.mark.parametrize("tail", [{}, {"drop_last": False}, {"drop_last": "pad"}])
def test_resume_at_another_world_size_gives_exactly_the_rest(
    request, kind, before, after, tail
):
    source = request.getfixturevalue("folder" if kind == "pictures" else "shards")
    options = {**(PICTURES if kind == "pictures" else SHARDS), **tail}
    whole, content = steps_of(source, options, 1)
    states, head_content = [], 0
    for rank in range(before):
        with leat.Loader(source, **options, rank=rank, world_size=before) as loader:
            batches = iter(loader)
            next(batches), next(batches)
            states.append(loader.state_dict())
            head_content += int(loader.stats()[0]["content_hash"], 16)
    assert all(state == states[0] for state in states)  # One serves all ranks.

    rest, rest_content = steps_of(source, options, after, states[0])
    assert_same_steps(whole[2:], rest, by="index" if kind == "shards" else None)
    assert (head_content + rest_content) % 2**128 == content


def test_resume_with_another_batch_goes_on_with_the_next_sample(folder):
    options = {**PICTURES, "drop_last": False, "ids": True}
    with leat.Loader(folder, **options) as loader:
        whole = [i for batch in loader for i in batch["index"]]
    with leat.Loader(folder, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with leat.Loader(folder, **{**options, "global_batch_size": 10}) as loader:
        loader.load_state_dict(state)
        batches = list(loader)
    assert [len(b["index"]) for b in batches] == [10] * 15 + [2]
    assert [i for batch in batches for i in batch["index"]] == whole[BATCH:]


def test_batch_size_of_a_rank_makes_the_same_global_batch(folder):
    options = {"ops": OPS, "shuffle": True, "seed": 3, "output": "numpy"}
    alone, _ = steps_of(folder, {**options, "global_batch_size": 48}, 1)
    together, _ = steps_of(folder, {**options, "batch_size": 16}, 3)
    assert_same_steps(alone, together)
