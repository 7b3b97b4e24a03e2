"""Documents packed into rows of one length: exact, at any number of ranks."""

from __future__ import annotations

import itertools
import json
import logging
from collections import Counter

import numpy as np
import pytest

import leat
from small_datasets import write

EOS = 0
ROW = 64
USUAL = {"train": True, "fields": ("tokens",), "output": "numpy"}
ADDS = ("segment_ids", "positions", "labels", "cu_seqlens", "max_seqlen")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """400 documents of 1 to 60 tokens; the n-th has n in two of its tokens, and ends with EOS."""
    folder = tmp_path_factory.mktemp("documents")
    rng = np.random.default_rng(2)
    for part in range(4):
        documents = []
        for number in range(part * 100, part * 100 + 100):
            tokens = rng.integers(1000, 2000, int(rng.integers(0, 60)))
            documents += [*tokens.tolist(), number + 1, EOS]
        write(folder / f"{part}.bin", np.array(documents, "<u2").tobytes())
    return leat.Dataset.tokens(folder, dtype="uint16", seq_len=4096, eos=EOS)


def documents_of(corpus) -> list[list[int]]:
    return [corpus[number]["tokens"].tolist() for number in range(len(corpus))]


def parts_of(tokens: np.ndarray, segment_ids: np.ndarray) -> list[list[int]]:
    """The documents of a row, by their ids."""
    return [tokens[segment_ids == number].tolist() for number in range(1, int(segment_ids.max()) + 1)]


def rows_of(loader) -> list[tuple[np.ndarray, ...]]:
    return [rows for batch in loader for rows in zip(*batch)]


@pytest.mark.parametrize("method", ["best_fit", "first_fit"])
def test_an_epoch_has_each_document_once_and_rows_are_full(corpus, method):
    pack = leat.Pack(ROW, method=method)
    with leat.Loader(corpus, batch_size=4, sampler=pack, drop_last=False, epochs=1, **USUAL) as loader:
        rows = rows_of(loader)
    found = [part for tokens, segment_ids, _ in rows for part in parts_of(tokens, segment_ids)]
    assert sorted(found) == sorted(documents_of(corpus))
    tokens = sum(map(len, found))
    assert tokens / (len(rows) * ROW) > 0.93  # 0.81 with one open row.
    for tokens, segment_ids, positions in rows:
        assert tokens.shape == segment_ids.shape == positions.shape == (ROW,)
        for number in range(1, int(segment_ids.max()) + 1):
            assert positions[segment_ids == number].tolist() == list(range((segment_ids == number).sum()))


def test_concat_then_split_fills_each_row(corpus):
    pack = leat.Pack(ROW, method="concat_then_split")
    with leat.Loader(corpus, batch_size=2, sampler=pack, drop_last=False, epochs=1, **USUAL) as loader:
        rows = rows_of(loader)
    assert sum((segment_ids == 0).any() for _, segment_ids, _ in rows) <= 1  # The epoch's last row.
    told = np.concatenate([tokens[segment_ids > 0] for tokens, segment_ids, _ in rows])
    assert sorted(told.tolist()) == sorted(token for document in documents_of(corpus) for token in document)


def test_what_flash_attention_and_a_loss_take(corpus):
    pack = leat.Pack(ROW, adds=ADDS)
    with leat.Loader(corpus, batch_size=4, sampler=pack, epochs=1, batch="dict", **USUAL) as loader:
        batch = next(iter(loader))
    tokens, labels, cu_seqlens = batch["tokens"], batch["labels"], batch["cu_seqlens"]
    assert labels.dtype == np.int64 and cu_seqlens.dtype == np.int32
    for row in range(4):
        for part in range(1, int(batch["segment_ids"][row].max()) + 1):
            its = batch["segment_ids"][row] == part
            assert labels[row][its][:-1].tolist() == tokens[row][its][1:].tolist()
            # A document that goes on in another row has a label there, too.
            assert labels[row][its][-1] == -100 or labels[row][its][-1] > 0
        assert (labels[row][batch["segment_ids"][row] == 0] == -100).all()
    assert cu_seqlens[0] == 0 and (np.diff(cu_seqlens) > 0).all()
    assert int(batch["max_seqlen"]) == np.diff(cu_seqlens).max()


def steps_of(make, world: int, skipped: int, steps: int, state) -> list[list[list[int]]]:
    """The rows of each step, over all ranks."""
    found: list[list[list[int]]] = [[] for _ in range(steps)]
    for rank in range(world):
        with make(rank=rank, world_size=world) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batches = (batch for _ in itertools.count() for batch in loader)
            for number, batch in enumerate(itertools.islice(batches, skipped, skipped + steps)):
                found[number] += batch[0].tolist()
    return found


def test_any_number_of_ranks_gets_the_same_rows_and_resumes_them(corpus):
    def make(**rank):
        return leat.Loader(corpus, global_batch_size=24, sampler=leat.Pack(ROW), seed=3, **USUAL, **rank)

    with make(rank=0, world_size=1) as loader:
        assert len(loader) == len(list(loader)) >= 6
    whole = steps_of(make, 1, 0, 16, None)
    assert all(len(rows) == 24 for rows in whole)
    with make(rank=0, world_size=8) as loader:
        next(iter(loader))
        assert loader.state_dict()["global_batch_size"] == 24  # Rows, and not the documents of the largest step.
    for world, stop in ((2, 3), (3, 9), (4, 1), (8, 5)):
        assert steps_of(make, world, 0, 16, None) == whole
        with make(rank=0, world_size=1) as loader:
            batches = (batch for _ in itertools.count() for batch in loader)
            for _ in itertools.islice(batches, stop):
                pass
            state = json.loads(json.dumps(loader.state_dict()))
        assert steps_of(make, world, 0, 16 - stop, state) == whole[stop:], world


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two corpora, of tokens below and above 5,000."""
    sources = {}
    for name, first, weight in (("low", 1000, 0.25), ("high", 5000, 0.75)):
        folder = tmp_path_factory.mktemp(name)
        rng = np.random.default_rng(first)
        tokens = [token for _ in range(150) for token in [*rng.integers(first, first + 900, int(rng.integers(3, 60))), EOS]]
        write(folder / "a.bin", np.array(tokens, "<u2").tobytes())
        sources[name] = (leat.Dataset.tokens(folder, dtype="uint16", seq_len=4096, eos=EOS), weight)
    return leat.mix(sources, samples=2000)


def test_a_mix_is_packed_by_its_weights_at_any_number_of_ranks(both):
    def make(**rank):
        return leat.Loader(both, global_batch_size=24, sampler=leat.Pack(ROW, adds=()), **USUAL, **rank)

    whole = steps_of(make, 1, 0, 20, None)
    for world in (2, 8):
        assert steps_of(make, world, 0, 20, None) == whole
    tokens = np.array(whole).ravel()
    assert 0.7 < (tokens > 4999).sum() / (tokens > 999).sum() < 0.8
    with make(rank=0, world_size=1) as loader:
        running = iter(loader)
        for _ in range(7):
            next(running)
        state = json.loads(json.dumps(loader.state_dict()))
    assert steps_of(make, 4, 0, 13, state) == whole[7:]


@pytest.mark.parametrize("sampler", [leat.Pack(ROW, adds=()), leat.TokenBudget(ROW)], ids=["rows", "budget"])
def test_weights_of_a_mix_change_between_epochs_and_no_document_is_lost_or_doubled(tmp_path, sampler):
    """Each source goes on where it stopped, also one that is new; and a state of that goes on as any other."""
    sources = {}
    for name, first, count in (("low", 1000, 60), ("high", 2000, 90), ("new", 3000, 50)):
        tokens = sum(([first + number] * (3 + number % 5) + [EOS] for number in range(count)), [])
        write(tmp_path / name / "a.bin", np.array(tokens, "<u2").tobytes())
        sources[name] = leat.Dataset.tokens(tmp_path / name, dtype="uint16", seq_len=4096, eos=EOS)

    def load(weights, state=None, **rank):
        mix = leat.mix({name: (sources[name], weight) for name, weight in weights.items()}, samples=40)
        loader = leat.Loader(mix, batch_size=1, sampler=sampler, **{**USUAL, "drop_last": False}, **rank)
        if state is not None:
            loader.load_state_dict(state)
        return loader

    def read(loader, epochs) -> list[list[int]]:
        """The documents of each epoch, by their first token, as often as they came."""
        found = []
        for _ in range(epochs):
            seen: Counter = Counter()
            for tokens, *_ in loader:
                seen.update(np.asarray(tokens.values if hasattr(tokens, "values") else tokens).ravel().tolist())
            found.append(sorted(d for d, n in seen.items() if d != EOS for _ in range(n // (3 + d % 1000 % 5))))
        return found

    with load({"low": 3, "high": 1}) as loader:
        documents = read(loader, 2)
        state = json.loads(json.dumps(loader.state_dict()))
        next(iter(loader))
        within = loader.state_dict()
    assert (state["epoch"], state["position"], len(json.dumps(state)) < 2048) == (2, 0, True)
    other = {"new": 2, "low": 1, "high": 3}
    with load(other, state) as loader:
        assert loader.state_dict()["epoch"] == 2
        documents += read(loader, 3)
        running = iter(loader)
        next(running)
        later = json.loads(json.dumps(loader.state_dict()))
        assert later["epoch"] == 5
        rest = [np.asarray(getattr(tokens, "values", tokens)).tolist() for tokens, *_ in running]
    assert [len(epoch) for epoch in documents] == [40] * 5
    for first, count in ((1000, 60), (2000, 90), (3000, 50)):
        its = Counter(d for epoch in documents for d in epoch if first <= d < first + 1000)
        laps = sum(its.values()) / count
        assert len(its) == min(count, sum(its.values())) and max(its.values()) <= int(laps) + 1, (first, its)
    with load(other, later) as loader:
        assert [np.asarray(getattr(tokens, "values", tokens)).tolist() for tokens, *_ in loader] == rest
    with load(other) as loader:
        with pytest.raises(leat.InvalidArgument, match="within epoch 2 of another mix, .* end of the epoch"):
            loader.load_state_dict(within)
    with load({"low": 3, "high": 1}, within) as loader:  # The same mix goes on within an epoch.
        assert len(read(loader, 1)[0]) < 40


def test_an_epoch_that_goes_is_not_refused_for_the_next(tmp_path):
    """The next epoch, which a cache is told of, has a last step of too few rows."""
    lengths = np.random.default_rng(0).integers(3, 40, 150)
    write(tmp_path / "a.bin", np.array([token for n in lengths for token in [7] * n + [0]], "<u2").tobytes())
    corpus = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=4096, eos=0)

    def epochs_of(seed, cache):
        done = 0
        with leat.Loader(corpus, batch_size=1, train=True, drop_last=False, sampler=leat.Pack(64), fields=("tokens",), seed=seed,
                         cache=cache, rank=0, world_size=2) as loader:  # fmt: skip
            try:
                for _ in range(2):
                    list(loader)
                    done += 1
            except leat.InvalidArgument as error:
                assert "too few rows" in str(error)
        return done

    seed = next(seed for seed in range(200) if epochs_of(seed, None) == 1)
    assert epochs_of(seed, leat.Cache(ram="8MiB")) == 1


def test_the_length_of_a_rank_that_the_last_step_leaves_out(tmp_path):
    write(tmp_path / "a.bin", np.array([*range(1, 8), 0] * 9, "<u2").tobytes())  # 9 rows of 8 tokens.
    corpus = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=64, eos=0)
    for world in (1, 2, 4, 8):
        for rank in range(world):
            with leat.Loader(corpus, global_batch_size=8, train=False, drop_last="join", sampler=leat.Pack(8), fields=("tokens",),
                             rank=rank, world_size=world) as loader:  # fmt: skip
                assert len(loader) == len(list(loader)) == 1 + (rank == 0)


def test_epochs_pack_anew_and_seeds_tell_them_apart(corpus):
    def first_rows(epoch: int, seed: int) -> list[list[int]]:
        with leat.Loader(corpus, batch_size=8, sampler=leat.Pack(ROW), seed=seed, **USUAL) as loader:
            loader.set_epoch(epoch)
            return next(iter(loader))[0].tolist()

    assert first_rows(0, 0) == first_rows(0, 0)
    assert first_rows(0, 0) != first_rows(1, 0) != first_rows(0, 1)


def test_a_document_longer_than_a_row(tmp_path):
    write(tmp_path / "a.bin", np.array([*range(1, 100), EOS, 7, EOS], "<u2").tobytes())
    corpus = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=4096, eos=EOS)
    with leat.Loader(corpus, batch_size=1, sampler=leat.Pack(40), drop_last=False, epochs=1, **USUAL) as loader:
        found = [part for row in rows_of(loader) for part in parts_of(*row[:2])]
    assert sorted(map(len, found)) == [2, 20, 40, 40]
    assert sum(found, []).count(7) >= 1 and sorted(sum(found, [])) == sorted([*range(1, 100), EOS, 7, EOS])


def test_what_is_packed_and_what_is_lost_is_said_once(tmp_path, caplog):
    caplog.set_level(logging.INFO, "leat")
    write(tmp_path / "a.bin", np.array([*range(1, 100), EOS, 7, EOS], "<u2").tobytes())
    corpus = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=4096, eos=EOS)
    pack = leat.Pack(40, long_documents="truncate")
    with leat.Loader(corpus, batch_size=1, sampler=pack, epochs=2, **USUAL) as loader:
        for _ in range(2):
            list(loader)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("packs 2 documents into 2 rows of 40 tokens" in line for line in lines) == 1
    assert sum("loses 60 tokens" in line for line in lines) == 1


def test_much_that_is_dropped_of_rows_is_warned_of(tmp_path, caplog):
    caplog.set_level(logging.INFO, "leat")
    write(tmp_path / "a.bin", np.array([*[1, 2, 3, EOS] * 3], "<u2").tobytes())
    corpus = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=4096, eos=EOS)
    for drop_last in (None, True):
        with leat.Loader(corpus, batch_size=2, sampler=leat.Pack(4), drop_last=drop_last, **USUAL) as loader:
            assert [len(list(loader)) for _ in range(2)] == [1, 1]
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert ["each epoch leaves out 1 of 3 rows (33 %), which do not fill a step of 2" in line for line in lines] == [True]
    assert sum("drops 1 row of the last step" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize(
    "options, words",
    [
        ({"sampler": leat.Pack(8), "drop_last": "pad"}, "a step of leat.Pack has rows"),
        ({"sampler": leat.Pack(8), "shuffle": "block", "train": None}, "leat.Pack"),
        ({"sampler": leat.Pack(8), "ops": [leat.ops.Filter(len)]}, "another length; choose samples before"),
        ({"sampler": leat.Pack(8), "on_error": "substitute"}, "what takes the place of a bad one has another length"),
    ],
)
def test_what_cannot_be_meant_is_refused(corpus, options, words):
    with pytest.raises(leat.InvalidArgument, match=words):
        leat.Loader(corpus, batch_size=2, **{**USUAL, **options})


@pytest.mark.parametrize("change", ["keeps", "skips", "lengthens"])
def test_a_document_of_another_length_than_planned_is_refused(corpus, change):
    """A longer one was cut where the planned one ends, and nobody noticed. One that is passed over leaves its place to
    none, not even of the same length."""

    def call(data):
        tokens = np.frombuffer(data, "<u2")
        if change == "lengthens":
            return np.concatenate([tokens, tokens])
        if change == "skips" and len(tokens) < 25:
            raise leat.Skipped("short")
        return tokens

    ops = [leat.ops.Python(call, field="tokens", ragged=True)]
    with leat.Loader(corpus, batch_size=4, sampler=leat.Pack(ROW), ops=ops, **USUAL) as loader:
        if change == "keeps":
            assert len(list(loader)) > 40
            return
        error, said = {
            "skips": (leat.Skipped, "short.*choose samples before, with leat.Dataset.filter"),
            "lengthens": (leat.InvalidArgument, "and its row was planned for"),
        }[change]
        with pytest.raises(error, match=said):
            for _ in loader:
                pass


def test_a_dataset_without_documents_is_refused(pictures):
    with pytest.raises(leat.InvalidArgument, match="eos="):
        leat.Loader(pictures, batch_size=2, train=True, sampler=leat.Pack(8))
