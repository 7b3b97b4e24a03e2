"""An order that Python gives, added as leat/plan/README.md says: rows of one, two, one, two … samples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import leat
from leat._orders import _chosen as _chosen_order
from leat._orders._epochs import Arrangement
from leat._orders._rows import RowOrder
from leat.ops._mix import BatchOp
from small_datasets import make_pictures


@dataclasses.dataclass(frozen=True)
class Swelling:
    """The ``sampler=``."""

    longest: int


class CountRows(BatchOp):
    adds = ("rows",)

    def __init__(self):
        super().__init__({"adds": list(self.adds)}, None, None)
        self.order = None

    def for_batch(self, place, *, is_own=False):
        def call(batch, kind, numbers):
            _, _, position, rank = numbers
            return {**batch, "rows": np.array([*self.order.rows_at(position, rank)])}

        return call


class SwellingOrder(RowOrder):
    def __init__(self, sampler, epochs):
        super().__init__(epochs.rows_of_a_step, ranks=epochs.ranks, balance=None, drops=bool(epochs.drops), unit="swells")
        self._longest, self._epochs = sampler.longest, epochs

    def set_epoch(self, epoch):
        self._samples = self._epochs.samples_of(epoch)
        sizes = np.resize(np.arange(1, self._longest + 1), len(self._samples)).cumsum()
        self._ends = sizes[sizes <= len(self._samples)]

    def order(self):
        return self._samples[: self._ends[-1]].astype(np.uint64)

    def ends(self):
        return self._ends.astype(np.uint64)

    def rows_at(self, position, rank):
        return self._run_of(int(np.searchsorted(self._ends, position, side="right")), rank)

    def _steps_to_deal(self, balance, first_row):
        raise AssertionError("it has no balance, which alone deals steps")

    def _positions_of(self, deal):
        raise AssertionError("it has no balance, which alone deals steps")


class InSwells(Arrangement):
    unit = "swells"
    batch_size = 2

    def __init__(self, sampler):
        self._sampler, self._op = sampler, CountRows()

    def ops_beside(self, ops, fields, *, ids, on_error):
        if on_error == "substitute":
            raise leat.InvalidArgument("swells take no substitutes")
        return [*ops, self._op]

    def words(self, seed, *, mixes):
        return f"in swells, seed {seed}" if mixes else "in swells"

    def order(self, epochs):
        self._op.order = SwellingOrder(self._sampler, epochs)
        return self._op.order


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(_chosen_order, "ARRANGED", {**_chosen_order.ARRANGED, Swelling: InSwells})
    make_pictures(tmp_path, 14)
    return tmp_path


def loader_of(pictures, **options):
    options = {"train": False, "drop_last": True, "ids": True, "fields": ("label",), "batch": "dict", "output": "numpy", **options}
    return leat.Loader(pictures, sampler=Swelling(3), **options)


def test_a_step_has_rows_and_what_its_op_adds(pictures):
    loader = loader_of(pictures)

    batches = list(loader)

    assert [batch["index"].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11]]
    assert [batch["rows"].tolist() for batch in batches] == [[0, 2], [2, 4], [4, 6]]
    assert len(loader) == 3


def test_ranks_divide_its_rows_and_a_state_resumes(pictures):
    ranks = [loader_of(pictures, rank=rank, world_size=2, global_batch_size=2, train=True, seed=3) for rank in range(2)]
    whole = [batch["index"].tolist() for batch in loader_of(pictures, train=True, seed=3)]

    first = [next(iter(rank))["index"].tolist() for rank in ranks]
    alone = loader_of(pictures, train=True, seed=3)
    alone.load_state_dict(ranks[1].state_dict())

    assert first[0] + first[1] == whole[0] and [len(part) for part in first] == [1, 2]
    assert [batch["index"].tolist() for batch in alone] == whole[1:]
    assert sum(whole, []) != sorted(sum(whole, []))  # Mixed before rows are made.


def test_its_words_and_checks_are_the_loaders(pictures, caplog):
    caplog.set_level("INFO", logger="leat")

    list(loader_of(pictures, train=True, seed=5))

    assert "in swells, seed 5" in caplog.text
    with pytest.raises(leat.InvalidArgument, match="no substitutes"):
        loader_of(pictures, on_error="substitute")
    with pytest.raises(leat.InvalidArgument, match='drop_last="pad".*a step of leat.Swelling has swells'):
        loader_of(pictures, drop_last="pad")
