"""Corpora of Megatron-LM, read where they lie."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import leat
from megatron_data import CODES, write_corpus

USUAL = {"fields": ("tokens",), "output": "numpy"}


def make(folder, documents, dtype="uint16", name="corpus") -> str:
    return write_corpus(folder / name, documents, dtype)


@pytest.fixture
def documents():
    rng = np.random.default_rng(1)
    return [[rng.integers(0, 200, int(rng.integers(1, 40))).tolist() for _ in range(int(rng.integers(1, 4)))] for _ in range(150)]


@pytest.mark.parametrize("dtype", CODES)
def test_a_sample_is_a_document(tmp_path, documents, dtype):
    corpus = leat.Dataset.megatron(make(tmp_path, documents, dtype))
    assert len(corpus) == 150 and corpus.fields == {"tokens": "bytes"}
    for number, document in enumerate(documents):
        tokens = corpus[number]["tokens"]
        assert tokens.dtype == dtype and tokens.tolist() == sum(document, [])


def test_empty_documents_are_left_out(tmp_path):
    corpus = leat.Dataset.megatron(make(tmp_path, [[[1, 2]], [], [[]], [[3]]]))
    assert [corpus[number]["tokens"].tolist() for number in range(len(corpus))] == [[1, 2], [3]]


@pytest.mark.parametrize("ending", ["", ".bin", ".idx"])
def test_it_is_read_from_a_bucket_in_pieces(tmp_path, documents, ending, serve):
    make(tmp_path / "bucket", documents)
    served = serve(tmp_path / "bucket")
    corpus = leat.Dataset.megatron(f"{served.url}/corpus{ending}", **served.options)
    served.reset()
    with leat.Loader(corpus, batch_size=10, train=True, epochs=1, **USUAL) as loader:
        found = [document.tolist() for (tokens,) in loader for document in tokens]
    assert sorted(found) == sorted(sum(document, []) for document in documents)
    assert served.counters()["get"] == 1  # All of it is one piece.


def test_it_is_packed_and_blended(tmp_path, documents):
    one = leat.Dataset.megatron(make(tmp_path, documents, name="one"))
    other = leat.Dataset.megatron(make(tmp_path, [[[201] * 30]] * 50, name="other"))
    blend = leat.mix({"one": (one, 0.7), "other": (other, 0.3)}, samples=1000)
    with leat.Loader(blend, batch_size=4, train=True, sampler=leat.Pack(128), **USUAL) as loader:
        tokens, segment_ids, _ = next(iter(loader))
    assert tokens.shape == (4, 128) and (tokens == 201).any() and (segment_ids > 0).mean() > 0.8


def test_it_pickles(tmp_path, documents):
    corpus = leat.Dataset.megatron(make(tmp_path, documents))
    assert pickle.loads(pickle.dumps(corpus))[3]["tokens"].tolist() == corpus[3]["tokens"].tolist()


def test_a_damaged_index_is_an_error_that_names_it(tmp_path, documents):
    prefix = make(tmp_path, documents[:20])
    whole = (tmp_path / "corpus.idx").read_bytes()
    for size in {*range(0, 40), *range(40, len(whole), 37)}:
        (tmp_path / "corpus.idx").write_bytes(whole[:size])
        with pytest.raises(leat.Error) as caught:
            leat.Dataset.megatron(prefix)
        assert type(caught.value) is leat.Corrupt and "corpus.idx" in str(caught.value), size
    for place in range(len(whole)):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x41
        (tmp_path / "corpus.idx").write_bytes(spoilt)
        try:
            corpus = leat.Dataset.megatron(prefix)
            with leat.Loader(corpus, batch_size=5, shuffle=False, epochs=1, **USUAL) as loader:
                list(loader)
        except leat.Error as error:
            assert type(error) in (leat.Corrupt, leat.InvalidArgument, leat.NotFound), error
            assert "corpus" in str(error)


def test_a_missing_file_is_named(tmp_path, documents):
    prefix = make(tmp_path, documents)
    (tmp_path / "corpus.bin").unlink()
    with pytest.raises(leat.NotFound, match="corpus.bin"):
        leat.Dataset.megatron(prefix)
    (tmp_path / "corpus.idx").unlink()
    with pytest.raises(leat.NotFound, match="corpus.idx"):
        leat.Dataset.megatron(prefix)
