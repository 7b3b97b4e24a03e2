"""Windows of tokens."""

from __future__ import annotations

import numpy as np
import pytest

import leat
from small_datasets import write

try:
    import torch
except ImportError:
    torch = None


@pytest.fixture
def corpus(tmp_path):
    """corpus/: 1,003 tokens in a .bin, 507 in a .npy, each its own position."""
    folder = tmp_path / "corpus"
    write(folder / "a.bin", np.arange(1003, dtype="<u2").tobytes())
    np.save(folder / "b.npy", np.arange(2000, 2507, dtype="<u2"))
    return folder


def test_a_sample_is_a_window(corpus):
    dataset = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)

    assert len(dataset) == 100 + 50
    assert dataset.fields == {"tokens": "bytes"}
    assert np.array_equal(dataset[3]["tokens"], np.arange(30, 40))
    assert np.array_equal(dataset[-1]["tokens"], np.arange(2490, 2500))
    assert np.array_equal(dataset.skip(100)[0]["tokens"], np.arange(2000, 2010))


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_batches_are_dense_rows(corpus, output):
    dataset = leat.Dataset.tokens(corpus, dtype=np.uint16, seq_len=11)

    loader = leat.Loader(dataset, batch_size=8, shuffle=True, output=output, seed=3)
    batches = [batch["tokens"] for batch in loader]

    rows = np.concatenate([np.asarray(batch) for batch in batches])
    assert rows.dtype == np.uint16 and rows.shape == (len(dataset) // 8 * 8, 11)
    assert np.all(np.diff(rows.astype(int), axis=1) == 1)
    assert len(set(rows[:, 0].tolist())) == len(rows)
    batches[0][0, 0] = 7  # Writable, as every batch.


def test_an_epoch_reads_each_byte_once(corpus, serve, fresh_cache):
    served = serve(corpus)
    dataset = leat.Dataset.tokens(
        served.url, dtype="uint16", seq_len=10, **served.options
    )
    served.reset()

    loader = leat.Loader(dataset, batch_size=10, shuffle=True, epochs=1)
    seen = np.concatenate([batch["tokens"] for batch in loader])

    assert sorted(seen.ravel()) == [*range(1000), *range(2000, 2500)]
    counters = served.counters()
    assert counters["get"] == 2  # A piece a file: they are small.
    assert 2 * 1500 <= counters["bytes"] <= 2 * 1510


def test_four_ranks_share_the_windows(corpus):
    dataset = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)
    seen = []
    for rank in range(4):
        loader = leat.Loader(dataset, global_batch_size=8, shuffle=True, rank=rank, world_size=4, drop_last=False,
                             output="numpy")
        seen += [row[0] for batch in loader for row in batch["tokens"]]

    assert sorted(seen) == [*range(0, 1000, 10), *range(2000, 2500, 10)]


def test_one_file(corpus, serve):
    served = serve(corpus)

    dataset = leat.Dataset.tokens(
        f"{served.url}/b.npy", dtype="uint16", seq_len=100, **served.options
    )

    assert len(dataset) == 5 and served.counters()["list"] == 0
    assert dataset[1]["tokens"][0] == 2100
    assert len(leat.Dataset.tokens(corpus / "a.bin", dtype="uint16", seq_len=1003)) == 1


def test_tokens_of_two_corpora(corpus):
    one = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)
    other = leat.Dataset.tokens(corpus / "a.bin", dtype="uint16", seq_len=10)

    both = leat.Dataset.concat([one, other])

    assert np.array_equal(both[150]["tokens"], np.arange(10))
    with pytest.raises(leat.InvalidArgument, match="dtypes"):
        leat.Dataset.concat([one, leat.Dataset.tokens(corpus / "a.bin", dtype="uint8", seq_len=10)])


def test_what_cannot_be_is_said(corpus):
    with pytest.raises(leat.InvalidArgument, match=r"b\.npy: the array is of uint16, not int32"):
        leat.Dataset.tokens(corpus / "b.npy", dtype="int32", seq_len=10)
    with pytest.raises(leat.InvalidArgument, match=r"a\.bin: 2006 bytes are no whole number"):
        leat.Dataset.tokens(corpus, dtype="uint32", seq_len=10)
    with pytest.raises(leat.NotFound, match="holds 5000 tokens"):
        leat.Dataset.tokens(corpus, dtype="uint16", seq_len=5000)
    with pytest.raises(leat.InvalidArgument, match="complex64"):
        leat.Dataset.tokens(corpus, dtype="complex64", seq_len=10)
    with pytest.raises(leat.InvalidArgument, match="seq_len=0"):
        leat.Dataset.tokens(corpus, dtype="uint16", seq_len=0)


@pytest.mark.parametrize("dtype", [None, object(), "float31", ">u2", np.dtype(">u2"), "float16"])
def test_a_type_that_no_token_has_is_refused_by_the_names_there_are(corpus, dtype):
    with pytest.raises(leat.InvalidArgument, match="dtype=.*; it is one of uint8, uint16"):
        leat.Dataset.tokens(corpus, dtype=dtype, seq_len=10)


def test_types_are_numpys_torchs_and_names(corpus):
    digest = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10).digest
    for dtype in (np.uint16, np.dtype("uint16"), "<u2", torch.uint16 if torch else "torch.uint16"):
        dataset = leat.Dataset.tokens(corpus, dtype=dtype, seq_len=10)
        assert dataset.digest == digest and dataset[1]["tokens"].tolist() == list(range(10, 20))


EOS = 9
DOCUMENTS = [[1, 2, 3, EOS], [EOS], [4, 5, 6, 7, 8, 1, 2, 3, 4, EOS], [7, 7]]
"""One file; the last has no end of its own."""


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    write(folder / "a.bin", np.array(sum(DOCUMENTS, []), "<u2").tobytes())
    np.save(folder / "b.npy", np.array([5, 5, EOS, 6], "<u2"))
    return folder


def expected(tokens, eos=EOS):
    """Documents and places, one token after another."""
    ids, places, begins = [], [], []
    for row, window in enumerate(tokens.tolist()):
        document = place = 0
        begins.append(row * len(window))
        ids.append([])
        places.append([])
        for at, token in enumerate(window):
            ids[-1].append(document)
            places[-1].append(place)
            place += 1
            if token == eos and at + 1 < len(window):
                document, place = document + 1, 0
                begins.append(row * len(window) + at + 1)
    return ids, places, [*begins, tokens.size]


@pytest.mark.parametrize("output", ["numpy", "torch", "jax"])
def test_documents_of_whole_windows(tmp_path, output):
    pytest.importorskip(output, reason=f"{output} is not installed")
    tokens = np.random.default_rng(5).choice(4, 900).astype("<u2")
    write(tmp_path / "corpus" / "a.bin", tokens.tobytes())
    dataset = leat.Dataset.tokens(tmp_path / "corpus", dtype="uint16", seq_len=30)
    adds = ("cu_seqlens", "document_ids", "position_ids")

    loader = leat.Loader(dataset, batch_size=7, train=True, fields=("tokens",), output=output,
                         ops=[leat.ops.Documents(eos=3, adds=adds)])

    for windows, *made in loader:
        windows, (cu_seqlens, ids, places) = np.asarray(windows), map(np.asarray, made)
        wanted = expected(windows, 3)
        assert ids.tolist() == wanted[0] and ids.dtype == np.int32
        assert places.tolist() == wanted[1] and places.dtype == (np.int32 if output == "jax" else np.int64)
        assert cu_seqlens.tolist() == wanted[2] and cu_seqlens.dtype == np.int32


def test_documents_come_under_names_of_ones_own(corpus):
    dataset = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)
    loader = leat.Loader(dataset, batch_size=4, train=False, fields={"input_ids": "tokens", "seq_idx": "document_ids"},
                         ops=[leat.ops.Documents(eos=5, adds="document_ids")], output="numpy")
    batch = next(iter(loader))
    assert dict(batch).keys() == {"input_ids", "seq_idx"}
    assert batch["seq_idx"][0].tolist() == [0] * 6 + [1] * 4


@pytest.mark.parametrize("fields", [
    ("document_ids", "tokens"), ("document_ids",), ("position_ids", "tokens"), ("tokens", "position_ids", "document_ids"),
])  # fmt: skip
@pytest.mark.parametrize("ids", [False, True])
def test_fields_that_an_op_adds_come_where_they_are_asked_for(corpus, fields, ids):
    dataset = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)
    options = {"batch_size": 4, "train": False, "ops": [leat.ops.Documents(eos=5)], "output": "numpy"}
    whole = next(iter(leat.Loader(dataset, batch="dict", **options)))

    batch = next(iter(leat.Loader(dataset, fields=fields, ids=ids, **options)))
    named = next(iter(leat.Loader(dataset, fields={f"my_{name}": name for name in fields}, **options)))

    assert isinstance(batch, tuple) and len(batch) == len(fields) + 2 * ids
    for values, name in zip(batch, fields):
        np.testing.assert_array_equal(values, whole[name])
    assert list(dict(named)) == [f"my_{name}" for name in fields]


@pytest.mark.parametrize("fields", [("document_ids", "tokens"), ("document_ids",), ("tokens", "position_ids")])
@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_a_function_of_batches_gets_the_batch_as_it_is_delivered(corpus, fields, form):
    dataset = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)
    options = {"batch_size": 4, "train": False, "fields": fields, "batch": form, "output": "numpy", "ids": True}
    documents, seen = leat.ops.Documents(eos=5), []
    looks = leat.ops.Python(lambda batch: seen.append(batch) or batch, per="batch")

    plain = next(iter(leat.Loader(dataset, ops=[documents], **options)))
    looked_at = next(iter(leat.Loader(dataset, ops=[documents, looks], **options)))

    assert isinstance(plain, tuple if form == "tuple" else dict)
    for batch in (looked_at, seen[0]):
        assert len(batch) == len(plain) == len(fields) + 2
        if form == "dict":
            assert [*dict(batch)] == [*dict(plain)] == [*fields, "index", "key"]
            batch = tuple(batch.values())
        for mine, theirs in zip(batch, plain.values() if form == "dict" else plain):
            np.testing.assert_array_equal(mine, theirs)


def test_an_op_may_add_fields_behind_a_function_of_batches(corpus):
    dataset = leat.Dataset.tokens(corpus, dtype="uint16", seq_len=10)
    ops = [leat.ops.Python(lambda batch: batch, per="batch"), leat.ops.Documents(eos=5)]
    loader = leat.Loader(dataset, batch_size=4, train=False, fields={"ids": "document_ids"}, ops=ops, output="numpy")
    batch = dict(next(iter(loader)))
    assert [*batch] == ["ids"] and batch["ids"][0].tolist() == [0] * 6 + [1] * 4


def test_windows_cut_at_documents(texts):
    dataset = leat.Dataset.tokens(texts, dtype="uint16", seq_len=4, eos=EOS)

    assert [sample["tokens"].tolist() for sample in dataset] == [
        [1, 2, 3, EOS], [EOS], [4, 5, 6, 7], [8, 1, 2, 3], [4, EOS], [7, 7], [5, 5, EOS], [6],
    ]  # fmt: skip
    loader = leat.Loader(dataset, batch_size=8, train=False, fields=("tokens",), output="numpy")
    ((tokens,),) = list(loader)
    assert tokens.values.dtype == np.uint16
    assert tokens.offsets.tolist() == [0, 4, 5, 9, 13, 15, 17, 20, 21]
    assert tokens.pad()[4].tolist() == [4, EOS, 0, 0]


def test_windows_cut_at_documents_overlap(texts):
    dataset = leat.Dataset.tokens(texts / "a.bin", dtype="uint16", seq_len=4, stride=3, eos=EOS)

    assert [sample["tokens"].tolist() for sample in dataset] == [
        [1, 2, 3, EOS], [EOS], [4, 5, 6, 7], [7, 8, 1, 2], [2, 3, 4, EOS], [7, 7],
    ]  # fmt: skip


def test_documents_of_files_that_are_read_in_parts(tmp_path):
    # More than 64 MiB, which is what is looked through at a time.
    tokens = np.ones((65 << 20) // 4, "<u4")
    ends = [9, (64 << 20) // 4 - 1, (64 << 20) // 4, len(tokens) - 1]
    tokens[ends] = EOS
    write(tmp_path / "corpus" / "a.bin", tokens.tobytes())
    dataset = leat.Dataset.tokens(tmp_path / "corpus", dtype="uint32", seq_len=1 << 25, eos=EOS)
    assert (np.cumsum(dataset.lengths("tokens")) // 4 - 1).tolist() == ends


def test_cut_windows_are_shuffled_and_shared_as_others(texts):
    seen = []
    for rank in range(2):
        dataset = leat.Dataset.tokens(texts, dtype="uint16", seq_len=4, eos=EOS)
        loader = leat.Loader(dataset, global_batch_size=4, shuffle=True, drop_last=False, rank=rank, world_size=2,
                             fields=("tokens",), output="torch")
        seen += [row.tolist() for (tokens,) in loader for row in tokens]
    assert sorted(sum(seen, [])) == sorted([*sum(DOCUMENTS, []), 5, 5, EOS, 6])


def test_eos_is_a_part_of_what_a_dataset_is(texts):
    import pickle

    zero = leat.Dataset.tokens(texts, dtype="uint16", seq_len=4, eos=0)
    nine = leat.Dataset.tokens(texts, dtype="uint16", seq_len=4, eos=EOS)
    apart = leat.Dataset.tokens(texts, dtype="uint16", seq_len=4)
    assert [len(each) for each in (zero, nine, apart)] == [6, 8, 5]
    for each in (zero, nine):
        again = pickle.loads(pickle.dumps(each))
        assert [s["tokens"].tolist() for s in again] == [s["tokens"].tolist() for s in each]
    with pytest.raises(leat.InvalidArgument, match="cut at documents"):
        leat.Dataset.concat([nine, apart])


def test_documents_that_cannot_be(texts):
    for options, said in [
        ({"dtype": "uint8", "eos": 256}, "eos=256 is no number of uint8"),
        ({"dtype": "int16", "eos": 2**15}, "is no number of int16"),
        ({"dtype": "float32", "eos": 1}, "is no number of float32"),
        ({"dtype": "uint16", "eos": -1}, "eos=-1"),
    ]:
        with pytest.raises(leat.InvalidArgument, match=said):
            leat.Dataset.tokens(texts, seq_len=4, **options)
    with pytest.raises(leat.InvalidArgument, match="eos='x'"):
        leat.ops.Documents("x")
    with pytest.raises(leat.InvalidArgument, match="adds="):
        leat.ops.Documents(1, adds=("ids",))
    cut = leat.Dataset.tokens(texts, dtype="uint16", seq_len=4, eos=EOS)
    with pytest.raises(leat.InvalidArgument, match="offsets of leat.Ragged"):
        next(iter(leat.Loader(cut, batch_size=2, train=False, ops=[leat.ops.Documents(EOS)], output="numpy")))
