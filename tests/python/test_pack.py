"""Documents in rows of one length, and steps that are dealt evenly."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import leat
from leat._orders._pack import Pack, balance

RNG = np.random.default_rng(5)
LENGTHS = RNG.integers(0, 70, 500)
METHODS = ("best_fit", "first_fit", "concat_then_split")


def documents_of(lengths, dtype):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.random.default_rng(6).integers(1, 200, offsets[-1]).astype(dtype)
    return leat.Ragged(values, offsets)


def arrays_by_numpy(rows, documents, pad_token):
    """The arrays, piece by piece."""
    shape = (len(rows), rows.capacity)
    tokens = np.full(shape, pad_token, documents.values.dtype)
    segment_ids, positions = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    labels = np.full(shape, -100, np.int64)
    ends = [0]
    for row in range(len(rows)):
        at = 0
        for segment, piece in enumerate(range(rows.offsets[row], rows.offsets[row + 1]), start=1):
            document = documents[int(rows.samples[piece])]
            begin, length = int(rows.begins[piece]), int(rows.lengths[piece])
            tokens[row, at : at + length] = document[begin : begin + length]
            segment_ids[row, at : at + length] = segment
            positions[row, at : at + length] = np.arange(length)
            following = document[begin + 1 : begin + length + 1]
            labels[row, at : at + len(following)] = following
            at += length
            ends.append(row * rows.capacity + at)
        if at < rows.capacity:
            ends.append((row + 1) * rows.capacity)
    cu_seqlens = np.array(ends, np.int32)
    return {
        "tokens": tokens, "segment_ids": segment_ids, "positions": positions, "labels": labels,
        "cu_seqlens": cu_seqlens, "max_seqlen": np.diff(cu_seqlens).max(),
    }  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int32, np.int64])
def test_arrays_are_those_that_numpy_makes(method, dtype):
    rows = Pack(64, method).rows(LENGTHS)
    documents = documents_of(LENGTHS, dtype)
    made, wanted = rows.arrays(documents, 3), arrays_by_numpy(rows, documents, 3)

    assert made.keys() == wanted.keys()
    for name, value in wanted.items():
        assert np.array_equal(made[name], value), name
        assert np.asarray(made[name]).dtype == value.dtype or name == "max_seqlen"


@pytest.mark.parametrize("method", METHODS)
def test_rows_hold_each_token_once(method):
    rows = Pack(64, method, max_sequences=4).rows(LENGTHS)

    assert rows.lengths.sum() == LENGTHS.sum()
    assert np.array_equal(np.bincount(rows.samples, rows.lengths, len(LENGTHS)), LENGTHS)
    assert np.diff(rows.offsets).max() == 4
    assert np.add.reduceat(rows.lengths, rows.offsets[:-1]).max() <= 64
    assert rows.padding == pytest.approx(1 - LENGTHS.sum() / (64 * len(rows)))


def test_more_bins_waste_less():
    few, many = (Pack(64, bins=bins).rows(LENGTHS).padding for bins in (1, 64))
    assert many < few / 2


def test_lengths_may_be_of_any_integer_type():
    wanted = Pack(64).rows(LENGTHS)
    for lengths in (LENGTHS.tolist(), LENGTHS.astype(np.uint8), LENGTHS.astype(np.uint64)):
        assert np.array_equal(Pack(64).rows(lengths).samples, wanted.samples)
    assert len(Pack(64).rows([])) == 0 and Pack(64).rows([]).padding == 0


def test_long_documents():
    assert Pack(10).rows([25]).lengths.tolist() == [10, 10, 5]
    assert Pack(10, long_documents="truncate").rows([25]).lengths.tolist() == [10]
    with pytest.raises(leat.InvalidArgument, match="document 1 of the window has 25 tokens, and a row 10"):
        Pack(10, long_documents="raise").rows([3, 25])


def test_a_pack_is_a_value():
    assert Pack(8192) == Pack(8192, "best_fit")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pack(8192).capacity = 1
    with pytest.raises(TypeError, match="did you mean 'max_sequences'"):
        Pack(8192, max_sequence=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"capacity": 0}, "capacity=0; it is at least 1"),
        ({"capacity": 2**31}, "capacity=2147483648; it is at least 1 and below 2147483648"),
        ({"capacity": 8, "method": "worst_fit"}, "method='worst_fit'; it is \"best_fit\", \"first_fit\" or"),
        ({"capacity": 8, "bins": 0}, "bins=0"),
        ({"capacity": 8, "max_sequences": 1.5}, "max_sequences=1.5; it is a whole number"),
        ({"capacity": 8, "long_documents": "drop"}, "long_documents='drop'"),
        ({"capacity": 8, "method": "concat_then_split", "bins": 4}, "leave bins= out"),
        ({"capacity": 8, "method": "concat_then_split", "long_documents": "raise"}, "leave long_documents= out"),
    ],
)
def test_wrong_arguments_are_named(arguments, said):
    with pytest.raises(leat.InvalidArgument, match=said):
        Pack(**arguments)


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([3, -1], "document 1 of the window has the length -1"),
        ([1.5], "lengths of float64 and shape"),
        ([[1]], "lengths of int64 and shape"),
        (["3"], "lengths of <U1"),
    ],
)
def test_wrong_lengths_are_named(lengths, said):
    with pytest.raises(leat.InvalidArgument, match=said):
        Pack(8).rows(lengths)


def test_documents_that_the_rows_were_not_made_of_are_named():
    rows = Pack(64).rows(LENGTHS)
    with pytest.raises(leat.InvalidArgument, match="plan rows with the lengths that documents really have"):
        rows.arrays(documents_of(np.minimum(LENGTHS, 60), np.int64))
    with pytest.raises(leat.InvalidArgument, match="documents of float32; tokens are"):
        rows.arrays(documents_of(LENGTHS, np.float32))
    with pytest.raises(leat.InvalidArgument, match="pad_token=-1, and the documents' tokens are uint16"):
        rows.arrays(documents_of(LENGTHS, np.uint16), -1)
    with pytest.raises(leat.InvalidArgument, match="a document is a list of tokens"):
        rows.arrays(leat.Ragged(np.zeros((4, 2)), np.array([0, 4])))


def test_values_that_are_no_run_of_memory_are_copied():
    rows, documents = Pack(64).rows(LENGTHS), documents_of(LENGTHS, np.int32)
    spread = leat.Ragged(np.repeat(documents.values, 2)[::2], documents.offsets)
    assert np.array_equal(rows.arrays(spread)["tokens"], rows.arrays(documents)["tokens"])


def test_balance_evens_out_ranks():
    costs = LENGTHS[:96].astype(float) ** 2
    group_of, sums = balance(costs, 4, 3)

    assert sums.shape == (3, 4)
    assert np.array_equal(np.bincount(group_of, costs).reshape(3, 4), sums)
    assert np.bincount(group_of).tolist() == [8] * 12
    assert sums.max() / sums.mean() < 1.01


def test_balance_names_what_is_wrong():
    with pytest.raises(leat.InvalidArgument, match="the cost of item 1 is nan"):
        balance([1, float("nan")], 2)
    with pytest.raises(leat.InvalidArgument, match="ranks=0"):
        balance([1], 0)
    with pytest.raises(leat.InvalidArgument, match="costs of shape"):
        balance([[1]], 1)
