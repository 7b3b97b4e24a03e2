"""Lengths that a function measures once: by a tokenizer, for packing."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import leat
from small_datasets import run_python

N = 40
WORDS = ["as", "long", "sentences", "go", "ones", "are", "rare"]


def tokenize(text) -> np.ndarray:
    """A token for each word, of a small vocabulary."""
    return np.array([WORDS.index(word) for word in bytes(text).decode().split()], np.uint16)


def count_tokens(text) -> int:
    return len(tokenize(text))


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Texts of unequal length, one an object."""
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "texts"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(N):
        (folder / f"{number:02}.txt").write_text(" ".join(rng.choice(WORDS, rng.integers(1, 12))))
    return folder


def expected(folder) -> list[int]:
    return [len(path.read_text().split()) for path in sorted(folder.glob("*.txt"))]


def test_samples_are_read_once_to_measure_and_once_to_pack(texts, serve):
    served = serve(texts)
    dataset = leat.Dataset(served.url, **served.options)
    served.reset()

    lengths = dataset.measured("data", count_tokens, kept_as="words")

    assert lengths.tolist() == expected(texts) and lengths.dtype == np.int64
    assert served.counters()["get"] == N
    served.reset()
    assert dataset.measured("data", count_tokens, kept_as="words").tolist() == lengths.tolist()
    assert served.counters()["get"] == 0

    tokenizer = leat.ops.Python(tokenize, field="data", to="tokens", ragged=True)
    pack = leat.Pack(16, lengths=lengths)
    for ranks in (1, 2, 3):
        served.reset()
        documents = []
        for rank in range(ranks):
            with leat.Loader(dataset, global_batch_size=6, train=True, drop_last=False, sampler=pack, ops=[tokenizer], fields=("tokens",),
                             epochs=1, output="numpy", rank=rank, world_size=ranks) as loader:  # fmt: skip
                for tokens, segments, positions in loader:
                    assert tokens.shape == segments.shape == (len(tokens), 16)
                    for row, of in zip(tokens, segments):
                        documents += [row[of == each].tolist() for each in range(1, of.max() + 1)]
        assert served.counters()["get"] == N
        assert sorted(documents) == sorted(tokenize(path.read_bytes()).tolist() for path in texts.glob("*.txt"))


def test_a_later_run_and_a_budget_use_what_was_measured(texts):
    dataset = leat.Dataset(texts)
    lengths = dataset.measured("data", count_tokens, kept_as="words")

    done = run_python(
        "import leat, sys\n"
        f"found = leat.Dataset({str(texts)!r}).measured('data', lambda text: sys.exit('measured again'), kept_as='words')\n"
        "print(found.tolist())"
    )
    assert done.stdout.strip() == str(lengths.tolist()), done.stderr

    with leat.Loader(dataset, batch_size=1, train=True, sampler=leat.TokenBudget(20, lengths=lengths), epochs=1) as loader:
        assert len(loader) >= lengths.sum() / 20


def test_data_that_changes_and_functions_of_other_names_are_measured_anew(texts):
    first = leat.Dataset(texts).measured("data", count_tokens, kept_as="words")
    twice = leat.Dataset(texts).measured("data", lambda text: 2 * count_tokens(text), kept_as="words twice")
    (texts / "03.txt").write_text("as long as sentences go")

    changed = leat.Dataset(texts, refresh="always").measured("data", count_tokens, kept_as="words")

    assert twice.tolist() == [2 * each for each in first]
    assert changed.tolist() == expected(texts) and changed[3] == 5


def test_several_at_once_measure_once(texts):
    calls = []

    def counted(text) -> int:
        calls.append(1)  # So it stays in this process.
        return count_tokens(text)

    datasets = [leat.Dataset(texts) for _ in range(3)]
    threads = [threading.Thread(target=dataset.measured, args=("data", counted), kwargs={"kept_as": "words"}) for dataset in datasets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(calls) == N


def test_what_is_kept_and_damaged_is_measured_again(texts, tmp_path):
    dataset = leat.Dataset(texts)
    lengths = dataset.measured("data", count_tokens, kept_as="words")
    [kept] = (tmp_path / "cache" / "measured").glob("*.npy")

    for damaged in (kept.read_bytes()[:-8], b"", kept.read_bytes().replace(b"(40,)", b"(39,)")):
        kept.write_bytes(damaged)
        assert dataset.measured("data", count_tokens, kept_as="words").tolist() == lengths.tolist()


def test_without_a_folder_nothing_is_kept(texts, monkeypatch, caplog):
    for name in ("LEAT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level(logging.WARNING, "leat")

    assert leat.Dataset(texts).measured("data", count_tokens, kept_as="words").tolist() == expected(texts)
    assert "nothing is kept" in caplog.text


@pytest.mark.parametrize(("call", "says"), [
    (lambda of: of.measured("text", count_tokens, kept_as="x"), "text"),
    (lambda of: of.measured("data", 3, kept_as="x"), "3 cannot be called"),
    (lambda of: of.measured("data", count_tokens, kept_as=""), "a text that can be printed"),
    (lambda of: of.measured("data", lambda text: -1, kept_as="x"), "gave -1; it gives a whole number"),
    (lambda of: of.measured("data", lambda text: 2.5, kept_as="x"), "gave 2.5; it gives a whole number"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(texts, call, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        call(leat.Dataset(texts))


def test_lengths_that_are_not_those_of_the_tokens_are_refused(texts):
    dataset = leat.Dataset(texts)
    lengths = dataset.measured("data", count_tokens, kept_as="words") + 1
    with leat.Loader(dataset, batch_size=2, train=True, sampler=leat.Pack(16, lengths=lengths), fields=("tokens",),
                     ops=[leat.ops.Python(tokenize, field="data", to="tokens", ragged=True)]) as loader:  # fmt: skip
        with pytest.raises(leat.InvalidArgument, match="was planned for"):
            next(iter(loader))
    with pytest.raises(leat.InvalidArgument, match="has 40 samples"):
        next(iter(leat.Loader(dataset, batch_size=2, train=True, sampler=leat.Pack(16, lengths=[1, 2]), fields=("data",))))
