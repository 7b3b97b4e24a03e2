"""Megatron's order: the samples of GPTDataset and BlendedDataset, element by element."""

from __future__ import annotations

import itertools
import json
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import leat
from leat._formats._megatron._order import Stream
from leat.ops import Documents, FillInTheMiddle, Python
from megatron_data import cases, digest_of, write_corpus, write_three

USUAL = {"fields": ("tokens",), "output": "numpy"}
HERE = pathlib.Path(__file__).resolve().parent

# By case: the number of samples, and their digest. megatron-core 0.16.1 made them, by
# `python tests/python/megatron_core_samples.py CASES` with the cases of megatron_data.py as JSON.
# To make them anew: pip install --no-deps --target .venv/oracle -r tools/oracle-requirements.txt
RECORDED = {
    "one epoch": (220, "57ac173fe4536e63207cd1ba"),
    "a part of an epoch": (20, "3e12d6579c100294df53d0d1"),
    "three epochs": (640, "9c9da288a7696a511e9b35fc"),
    "a last epoch apart": (500, "e8ad840da3f6fbba7e19c4ba"),
    "many epochs": (90, "d2a61302b9873bd17c46bf85"),
    "a document in several samples": (3000, "7dc64502f9a127be736e43f0"),
    "no extra token": (500, "5933ecfe9252384f08e6f08b"),
    "train": (300, "f44f07c3bdb9bb99e4599b98"),
    "valid": (40, "009d5c1e7dd0178dea85a271"),
    "test": (5, "84041998afe425a3bf78a238"),
    "a blend": (1000, "c06f3f300ff6eb5733e8f422"),
    "a blend of three": (777, "f781f5dc9cf8735c174840ff"),
    "a blend of one": (300, "8383a016a84b943e85bdf5ba"),
    "a part's own path, with a weight": (300, "8383a016a84b943e85bdf5ba"),
    "sizes for weights": (696, "25c67c06f53cf0f4235f6b67"),
    "sizes for weights, some of it": (400, "11e752fddbce8f1e8acbe8f1"),
    "validation of a blend": (60, "d63bd7fe78d36a9825046c23"),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_three(tmp_path_factory.mktemp("corpora"))


def opened(case: dict, **options) -> leat.Dataset:
    blend = case["blend"][0] if len(case["blend"]) == 1 else case["blend"]
    rest = {name: value for name, value in case.items() if name != "blend"}
    return leat.Dataset.megatron(blend, order="megatron", **rest, **options)


def read(dataset: leat.Dataset, batch: int = 7, **options) -> list[list[int]]:
    with leat.Loader(dataset, batch_size=batch, drop_last=False, epochs=1, **USUAL, **options) as loader:
        return [row for (tokens,) in loader for row in tokens.tolist()]


@pytest.mark.parametrize("name", RECORDED)
def test_samples_are_those_that_megatron_made(paths, name):
    case = cases(paths)[name]
    dataset = opened(case)
    samples = read(dataset)
    assert len(dataset) == len(samples) == RECORDED[name][0]
    assert {len(sample) for sample in samples} == {case["seq_len"] + case.get("extra_token", True)}
    assert digest_of(samples) == RECORDED[name][1]
    for number in (0, len(dataset) // 2, -1):
        assert dataset[number]["tokens"].tolist() == samples[number]


def test_samples_are_those_that_megatron_makes_now(paths):
    known = cases(paths)
    command = [sys.executable, str(HERE / "megatron_core_samples.py"), json.dumps(list(known.values()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "No module named 'megatron" in done.stderr:
        pytest.skip("no megatron-core: pip install --no-deps --target .venv/oracle -r tools/oracle-requirements.txt")
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(known)
    for (name, case), line in zip(known.items(), lines):
        assert read(opened(case), batch=32) == json.loads(line), name


def by_the_rule(sizes: np.ndarray, chosen: range, seq_len: int, extra: int, wanted: int | None, seed: int):
    """GPTDataset's samples as (sequence, token) pairs, token by token: slow, and plain."""
    tokens, epochs = int(sizes[chosen].sum()), 1
    while wanted is not None and epochs * tokens < wanted * seq_len + extra:
        epochs += 1
    total = (epochs * tokens - extra) // seq_len
    before = ((epochs - 1) * tokens - extra) // seq_len
    is_apart = epochs > 1 and wanted - before < int(0.8 * ((tokens - extra) // seq_len))
    random, order = np.random.RandomState(seed), []
    for part in [epochs - 1, 1] if is_apart else [epochs]:
        numbers = np.array([*chosen] * part, np.int32)
        random.shuffle(numbers)
        order += numbers.tolist()
    stream = [(sequence, token) for sequence in order for token in range(sizes[sequence])]
    shuffled = []
    together = before if is_apart else total
    for first, last in ((0, together), (together, total)):
        numbers = np.arange(first, last)
        random.shuffle(numbers)
        shuffled += numbers.tolist()
    return [stream[number * seq_len : (number + 1) * seq_len + extra] for number in shuffled]


def test_streams_of_any_shape_follow_the_rule():
    rng, tried = np.random.default_rng(0), 0
    for seed in range(300):
        sizes = rng.integers(0, 30, int(rng.integers(2, 40))).astype(np.int32)
        first = int(rng.integers(0, len(sizes) - 1))
        chosen = range(first, int(rng.integers(first + 1, len(sizes) + 1)))
        seq_len, extra = int(rng.integers(1, 50)), int(rng.integers(0, 2))
        wanted = None if rng.random() < 0.2 else int(rng.integers(1, 60))
        if sizes[chosen].sum() - extra < seq_len and (wanted is None or sizes[chosen].sum() == 0):
            with pytest.raises(leat.InvalidArgument, match="too few"):
                Stream(sizes, chosen, seq_len, extra, wanted, seed, "corpus")
            continue
        stream = Stream(sizes, chosen, seq_len, extra, wanted, seed, "corpus")
        expected = by_the_rule(sizes, chosen, seq_len, extra, wanted, seed)
        found: list[list[tuple[int, int]]] = [[] for _ in expected]
        for sequence, begin, length, sample in zip(*stream.pieces(len(stream))):
            found[sample] += [(int(sequence), int(begin) + token) for token in range(length)]
        assert found == expected, seed
        tried += 1
    assert tried > 200


@pytest.mark.parametrize("name", ["a last epoch apart", "a blend of three"])
def test_any_number_of_ranks_gets_the_same_steps_and_resumes_them(paths, name):
    """As Megatron's sampler deals them: of each step, a rank has a run of samples."""
    dataset = opened(cases(paths)[name])
    whole = read(dataset)

    def steps(world: int, skipped: int, count: int, state=None) -> list[list[int]]:
        found: list[list[list[int]]] = [[] for _ in range(count)]
        for rank in range(world):
            place = {"rank": rank, "world_size": world}
            with leat.Loader(dataset, global_batch_size=24, train=True, **place, **USUAL) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                for number, (tokens,) in enumerate(itertools.islice(loader, skipped, skipped + count)):
                    found[number] += tokens.tolist()
        return [row for step in found for row in step]

    for world, stop in ((1, 1), (2, 3), (3, 5), (8, 9)):
        assert steps(world, 0, 20) == whole[: 20 * 24]
        with leat.Loader(dataset, global_batch_size=24, train=True, rank=0, world_size=1, **USUAL) as loader:
            for _ in itertools.islice(loader, stop):
                pass
            state = json.dumps(loader.state_dict())
        assert len(state) < 1000
        assert steps(world, 0, 20 - stop, json.loads(state)) == whole[stop * 24 : 20 * 24], world


@pytest.mark.parametrize("consumed", [24, 100, 776])
def test_a_loader_goes_on_where_megatrons_training_stopped(paths, consumed):
    dataset = opened(cases(paths)["a blend of three"])
    whole = read(dataset)
    with leat.Loader(dataset, global_batch_size=24, drop_last=False, **USUAL) as loader:
        state = loader.state_dict()
        loader.load_state_dict(dataset.state_after(consumed, state))
        assert [row for (tokens,) in loader for row in tokens.tolist()] == whole[consumed:]
        with pytest.raises(leat.InvalidArgument, match="consumed_samples=777"):
            dataset.state_after(777, state)
        with pytest.raises(leat.InvalidArgument, match="has delivered none"):
            dataset.state_after(1, loader.state_dict() | {"position": 5})


def test_the_next_epoch_has_the_same_samples(paths):
    dataset = opened(cases(paths)["a part of an epoch"])
    with leat.Loader(dataset, batch_size=5, **USUAL) as loader:
        first, second = ([tokens.tolist() for (tokens,) in loader] for _ in range(2))
    assert first == second and len(first) == 4


def test_only_the_tokens_of_a_batch_are_read(tmp_path, serve):
    """2,000 tokens of 20,000: each piece by its own range, and none else."""
    write_corpus(tmp_path / "bucket" / "c", [[list(range(500))] for _ in range(40)], "int32")
    served = serve(tmp_path / "bucket")
    dataset = leat.Dataset.megatron(f"{served.url}/c", order="megatron", seq_len=99, samples=20, **served.options)
    served.reset()
    assert len(read(dataset)) == 20 and served.counters()["bytes"] == 20 * 100 * 4


def test_ops_get_whole_samples(tmp_path):
    prefix = write_corpus(tmp_path / "c", [[[5] * 9 + [0]] for _ in range(40)])
    dataset = leat.Dataset.megatron(prefix, order="megatron", seq_len=32)
    with leat.Loader(dataset, batch_size=4, ops=[Documents(eos=0)], **USUAL) as loader:
        tokens, document_ids, positions = next(iter(loader))
    assert tokens.shape == document_ids.shape == positions.shape == (4, 33)
    assert (np.diff(document_ids, axis=1) == (tokens[:, :-1] == 0)).all()
    fill = FillInTheMiddle(prefix=1, middle=2, suffix=3, eos=0, rate=1.0)
    with leat.Loader(dataset, batch_size=4, ops=[fill], **USUAL) as loader:
        (tokens,) = next(iter(loader))
    assert tokens.shape == (4, 33) and ((tokens == 1).sum(1) == (tokens == 2).sum(1)).all() and (tokens == 1).any()
    with pytest.raises(leat.InvalidArgument, match="pieces one by one.*Documents"):
        leat.Loader(dataset, batch_size=4, ops=[Python(len, field="tokens")], **USUAL)
    for options, says in (
        ({"ids": True}, "leave ids= out"), ({"fields": ("tokens", "key")}, "leave ids= out"),
        ({"on_error": "substitute"}, "on_error='substitute'"), ({"drop_last": "pad"}, "single pieces"),
    ):  # fmt: skip
        with pytest.raises(leat.InvalidArgument, match=says):
            leat.Loader(dataset, batch_size=4, **{**USUAL, **options})


def test_it_pickles_and_its_state_knows_its_order(paths):
    case = cases(paths)["a blend"]
    dataset = opened(case)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.digest == dataset.digest and again[500]["tokens"].tolist() == dataset[500]["tokens"].tolist()
    with leat.Loader(dataset, batch_size=5, **USUAL) as loader:
        next(iter(loader))
        state = loader.state_dict()
    for other in ({"seed": 1}, {"samples": 999}, {"seq_len": 17}, {"split": "900,99,1"}):
        with leat.Loader(opened({**case, **other}), batch_size=5, **USUAL) as loader:
            with pytest.raises(leat.InvalidArgument, match="catalogue"):
                loader.load_state_dict(state)


@pytest.mark.parametrize(("given", "says"), [
    ({"order": "megatron"}, "give seq_len="),
    ({"order": "random", "seq_len": 8}, "order='random'"),
    ({"seq_len": 8}, 'seq_len=8.*order="megatron"'),
    ({"order": "megatron", "seq_len": 10**7}, "sequences with .* tokens, too few"),
    ({"order": "megatron", "seq_len": 8, "split": "1,2,3,4"}, "split='1,2,3,4'"),
    ({"order": "megatron", "seq_len": 8, "split": "0,0,0"}, "split='0,0,0'"),
    ({"order": "megatron", "seq_len": 8, "split": "1,0,0", "part": "test"}, "gives nothing to part='test'"),
    ({"order": "megatron", "seq_len": 8, "part": "dev"}, "part='dev'"),
    ({"order": "megatron", "seq_len": 8, "samples": 0}, "samples=0"),
    ({"order": "megatron", "seq_len": 8, "seed": -1}, "seed=-1"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_a_remedy(paths, given, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Dataset.megatron(paths["books"], **given)


@pytest.mark.parametrize(("weights", "says"), [
    (["0.5", "books"], "'books' where a weight belongs"),
    (["0.5", "-1"], "'-1' where a weight belongs"),
    (["0.5", "0.5"], "give samples="),
    ([], "no corpora"),
])  # fmt: skip
def test_a_blend_that_cannot_be_is_refused(paths, weights, says):
    blend = [word for weight, name in zip(weights, ("books", "code")) for word in (weight, paths[name])]
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Dataset.megatron(blend, order="megatron", seq_len=8)


def test_a_blend_of_two_types_or_of_documents_is_refused(paths, tmp_path):
    other = write_corpus(tmp_path / "other", [[[1, 2, 3] * 9]], "int32")
    with pytest.raises(leat.InvalidArgument, match="tokens of uint16.*other of int32"):
        leat.Dataset.megatron([paths["books"], other, paths["code"]], order="megatron", seq_len=8)
    with pytest.raises(leat.InvalidArgument, match=r"leat\.mix"):
        leat.Dataset.megatron([paths["books"], paths["code"]])


def test_nothing_else_may_say_the_order(paths):
    dataset = opened(cases(paths)["one epoch"])
    for options in ({"shuffle": True}, {"sampler": [1, 2]}, {"sampler": leat.Pack(64)}):
        with pytest.raises(leat.InvalidArgument, match="Megatron's order"):
            leat.Loader(dataset, batch_size=4, **options, **USUAL)
    for joined in (lambda: dataset.take(3), lambda: leat.Dataset.concat([dataset]), lambda: leat.mix({"a": dataset})):
        with pytest.raises(leat.InvalidArgument, match="Megatron's order"):
            joined()


def test_a_bin_that_ends_early_is_named(tmp_path):
    prefix = write_corpus(tmp_path / "c", [[list(range(100))] for _ in range(9)])
    whole = (tmp_path / "c.bin").read_bytes()
    (tmp_path / "c.bin").write_bytes(whole[:-300])
    with pytest.raises(leat.Corrupt, match=r"c\.bin"):
        leat.Dataset.megatron(prefix, order="megatron", seq_len=20)
