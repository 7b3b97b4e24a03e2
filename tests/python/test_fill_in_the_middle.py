"""leat.ops.FillInTheMiddle: each document's middle at its end, and nothing lost but what `cut` says."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import leat
from leat.ops import FillInTheMiddle
from small_datasets import write

PREFIX, MIDDLE, SUFFIX, EOS = 1, 2, 3, 0
MARKS = {"prefix": PREFIX, "middle": MIDDLE, "suffix": SUFFIX}
LENGTH = 64
USUAL = {"fields": ("tokens",), "output": "numpy", "seed": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """600 documents of 0 to 59 tokens, each its own place, with EOS behind each."""
    folder = tmp_path_factory.mktemp("corpus")
    rng, tokens = np.random.default_rng(4), []
    for _ in range(600):
        size = int(rng.integers(0, 60))
        tokens += [*range(len(tokens) + 10, len(tokens) + 10 + size), EOS]
    write(folder / "a.bin", np.array(tokens, "<u2").tobytes())
    return folder


@pytest.fixture(scope="module")
def windows(folder):
    return leat.Dataset.tokens(folder, dtype="uint16", seq_len=LENGTH)


@pytest.fixture(scope="module")
def documents(folder):
    return leat.Dataset.tokens(folder, dtype="uint16", seq_len=4096, eos=EOS)


def parts_of(tokens: list[int]) -> list[list[int]]:
    """The documents in a window, without their ends."""
    parts: list[list[int]] = [[]]
    for token in tokens:
        parts.append([]) if token == EOS else parts[-1].append(token)
    return parts


def put_back(changed: list[int]) -> tuple[list[int], int, bool]:
    """The document as it was, the tokens that it lacks before its last part, and whether it is SPM."""
    assert changed[0] == PREFIX and changed.count(SUFFIX) == changed.count(MIDDLE) == 1
    suffix_at, middle_at = changed.index(SUFFIX), changed.index(MIDDLE)
    suffix, behind = changed[suffix_at + 1 : middle_at], changed[middle_at + 1 :]
    if suffix_at == 1 and behind:  # Or a PSM without a prefix, which reads alike.
        return behind + suffix, len(behind), True
    before = changed[1:suffix_at]
    return before + behind + suffix, len(before), False


def check_document(changed: list[int], was: list[int]) -> bool:
    """Whether it was changed; asserts that it is put back but for the last three of its suffix."""
    assert len(changed) == len(was)
    if changed == was:
        return False
    assert put_back(changed)[0] == was[: len(was) - 3]
    return True


def read(dataset, op, batch=10, **options):
    with leat.Loader(dataset, batch_size=batch, ops=[op], epochs=1, **{"shuffle": False, **USUAL, **options}) as loader:
        return [sample.tolist() for (tokens,) in loader for sample in tokens]


def test_each_document_is_put_back_from_its_parts(windows):
    found = read(windows, FillInTheMiddle(**MARKS, rate=1.0, eos=EOS))
    was = [windows[number]["tokens"].tolist() for number in range(len(windows))]
    assert len(found) == len(was)
    changed = kept = 0
    for sample, before in zip(found, was):
        assert len(sample) == LENGTH and [t == EOS for t in sample] == [t == EOS for t in before]
        for part, document in zip(parts_of(sample), parts_of(before)):
            if check_document(part, document):
                changed += 1
            else:
                kept += 1
    assert changed > 300 and kept > 50  # Those whose suffix has no three tokens to lose.


def test_with_cut_at_the_end_no_token_is_lost_but_there(windows):
    """As Megatron-LM: a sample is a prefix of all of its changed documents."""
    found = read(windows, FillInTheMiddle(**MARKS, rate=1.0, eos=EOS, cut="end"))
    for number, sample in enumerate(found):
        before = parts_of(windows[number]["tokens"].tolist())
        after = parts_of(sample)
        assert len(sample) == LENGTH and len(after) <= len(before)
        for part, document in zip(after[:-1], before):
            assert not document or put_back(part)[0] == document
        whole = [t for t in sample if t not in (PREFIX, MIDDLE, SUFFIX, EOS)]
        assert set(whole) <= set(sum(before, [])) and len(whole) == len(set(whole))


def test_rates_are_those_that_are_asked_for(windows):
    was = [windows[number]["tokens"].tolist() for number in range(len(windows))]
    for rate, spm_rate in ((0.0, 0.5), (0.3, 1.0), (0.7, 0.25)):
        found = read(windows, FillInTheMiddle(**MARKS, rate=rate, spm_rate=spm_rate, eos=EOS, cut="end"))
        parts = [part for sample, before in zip(found, was) for part in parts_of(sample)[:-1] if len(part) > 12]
        changed = [part for part in parts if part[0] == PREFIX]
        assert abs(len(changed) / len(parts) - rate) < 0.08
        told = [part for part in changed if len(put_back(part)[0]) and part[1] == SUFFIX]
        if changed:
            assert abs(len(told) / len(changed) - spm_rate) < 0.13  # A PSM without a prefix is rare.


def test_boundaries_are_drawn_evenly():
    op = FillInTheMiddle(**MARKS, rate=1.0, spm_rate=0.0, eos=EOS, cut="end")
    batch = {"tokens": np.array([[*range(10, 30), EOS, *range(30, 40)]])}  # The end of the sample is cut off.
    middles = []
    for seed in range(3000):
        made = op.apply(batch, np.random.default_rng(seed))["tokens"][0].tolist()
        middles.append(made.index(SUFFIX) - 1)
    # The smaller of two of 21 places: its mean is 6.5.
    assert abs(np.mean(middles) - 6.5) < 0.35 and min(middles) == 0 and max(middles) >= 16


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_draws_are_the_same_at_any_number_of_ranks_and_after_a_resume(windows, world):
    op = FillInTheMiddle(**MARKS, rate=0.5, eos=EOS)

    def steps(state=None, **rank):
        with leat.Loader(windows, global_batch_size=24, ops=[op], train=True, **USUAL, **rank) as loader:
            if state is not None:
                loader.load_state_dict(state)
            return [tokens.tolist() for _ in range(2) for (tokens,) in loader]

    whole = steps(rank=0, world_size=1)
    ranks = [steps(rank=rank, world_size=world) for rank in range(world)]
    assert [sorted(sum(parts, [])) for parts in zip(*ranks)] == [sorted(step) for step in whole]
    with leat.Loader(windows, global_batch_size=24, ops=[op], train=True, rank=0, world_size=1, **USUAL) as loader:
        for _ in itertools.islice(loader, 3):
            pass
        state = json.loads(json.dumps(loader.state_dict()))
    ranks = [steps(state, rank=rank, world_size=world) for rank in range(world)]
    later = [sorted(sum(parts, [])) for parts in zip(*ranks)]
    assert later[: len(whole) - 3] == [sorted(step) for step in whole[3:]]


def test_epochs_and_seeds_draw_anew(windows):
    op = FillInTheMiddle(**MARKS, rate=0.5, eos=EOS)
    with leat.Loader(windows, batch_size=10, ops=[op], shuffle=False, **USUAL) as loader:
        first, second = ([tokens.tolist() for (tokens,) in loader] for _ in range(2))
    assert first != second and sum(first, []) == read(windows, op) != read(windows, op, seed=6)


def test_documents_are_changed_before_they_are_packed(documents):
    was = {document[0]: document for number in range(len(documents))
           if len(document := documents[number]["tokens"].tolist()) > 1}  # fmt: skip
    op = FillInTheMiddle(**MARKS, rate=1.0, eos=EOS)
    with leat.Loader(documents, batch_size=8, ops=[op], train=True, sampler=leat.Pack(256), epochs=1, **USUAL) as loader:
        rows = [row for batch in loader for row in zip(*batch)]
    changed = 0
    for tokens, segment_ids, positions in rows:
        for number in range(1, int(segment_ids.max()) + 1):
            document = tokens[segment_ids == number].tolist()
            assert document[-1] == EOS and positions[segment_ids == number].tolist() == list(range(len(document)))
            if len(document) > 1 and document[0] == PREFIX:
                begin = min(token for token in document if token >= 10)
                changed += check_document(document[:-1], was[begin][:-1])
    assert changed > 200


def test_torchs_tensors_and_raggeds_are_changed_alike(documents):
    import torch

    op = FillInTheMiddle(**MARKS, rate=1.0, eos=EOS)
    numpys = read(documents, op)
    assert read(documents, op, output="torch") == numpys
    batch = {"tokens": torch.arange(10, 50, dtype=torch.int32).reshape(2, 20)}
    given = batch["tokens"].clone()
    made = op.apply(batch, np.random.default_rng(1))["tokens"]
    assert isinstance(made, torch.Tensor) and made.dtype == torch.int32 and torch.equal(batch["tokens"], given)


@pytest.mark.parametrize(("given", "says"), [
    ({"prefix": -1}, "prefix=-1 must be a token"),
    ({"middle": 1}, "must be different tokens"),
    ({"eos": 3}, "must be different tokens"),
    ({"rate": 1.5}, "rate=1.5 must be a probability"),
    ({"spm_rate": "no"}, "spm_rate='no' must be a probability"),
    ({"cut": "middle"}, "cut='middle' must be one of"),
])  # fmt: skip
def test_what_cannot_be_is_refused(given, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        FillInTheMiddle(**{**MARKS, **given})


def test_a_mark_that_the_tokens_cannot_hold_is_refused(windows):
    with pytest.raises(leat.InvalidArgument, match="suffix=70000 is no number of the tokens' type, uint16"):
        read(windows, FillInTheMiddle(prefix=1, middle=2, suffix=70000))
    with pytest.raises(leat.InvalidArgument, match="no field 'text'"):
        read(windows, FillInTheMiddle(**MARKS, tokens="text"))
