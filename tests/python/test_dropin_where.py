"""leat.torch.DataLoader(workers=): items by threads, or by torch's processes."""

from __future__ import annotations

import logging
import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import leat  # noqa: E402
from dropin_datasets import Heavy, OwnDraws, WholeDraws  # noqa: E402
from leat.torch import DataLoader  # noqa: E402
from leat.torch import _where  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def epoch(loader) -> tuple[set[int], list[int]]:
    """Which processes fetched, and what came."""
    batches = list(loader)
    return {int(pid) for pids, _ in batches for pid in pids}, [int(i) for _, indices in batches for i in indices]


def make(size: int = 240, **options) -> DataLoader:
    return DataLoader(Heavy(size), batch_size=8, num_workers=2, **options)


def test_processes_fetch_what_threads_would():
    pids, indices = epoch(make(48, workers="processes"))
    assert len(pids) == 2 and os.getpid() not in pids
    assert epoch(make(48)) == epoch(make(48, workers="threads")) == ({os.getpid()}, indices)
    assert indices == list(range(48))


def halves(data):
    return torch.utils.data.Subset(torch.utils.data.Subset(data, range(23, -1, -1)), range(0, 24, 2))


@pytest.mark.parametrize(("wrap", "options", "context"), [
    (OwnDraws, {}, "fork"),
    (OwnDraws, {}, "forkserver"),
    (OwnDraws, {"threads": 3}, "fork"),
    (OwnDraws, {"batch_size": None}, "fork"),
    (OwnDraws, {"persistent_workers": True}, "fork"),
    (WholeDraws, {}, "fork"),
    (lambda: halves(OwnDraws()), {}, "fork"),
    (lambda: torch.utils.data.StackDataset(OwnDraws(), OwnDraws()), {}, "fork"),
    (lambda: torch.utils.data.ConcatDataset([OwnDraws(), OwnDraws()]), {}, "fork"),
])  # fmt: skip
def test_items_draw_in_processes_what_they_draw_in_threads(wrap, options, context):
    def epochs(**arguments):
        torch.manual_seed(5)
        loader = DataLoader(wrap(), **{"batch_size": 4, "num_workers": 2, "shuffle": True, **options, **arguments})
        return [[torch.utils.data.default_convert(batch) for batch in loader] for _ in range(2)]

    by_threads = epochs()
    assert str(by_threads[0]) != str(by_threads[1])
    assert str(epochs(multiprocessing_context=context)) == str(by_threads)


@pytest.mark.parametrize(("first", "then"), [("threads", "processes"), ("processes", "threads")])
def test_a_state_of_threads_goes_on_in_processes_and_back(first, then):
    def load(workers, seed):
        torch.manual_seed(seed)
        return DataLoader(OwnDraws(), batch_size=4, num_workers=2, shuffle=True, workers=workers)

    loader = load(first, 1)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    rest = str(list(batches))
    again = load(then, 2)
    again.load_state_dict(state)
    assert str(list(again)) == rest


def test_torchs_own_loader_in_processes_has_torchs_info():
    loader = torch.utils.data.DataLoader(OwnDraws(), batch_size=4, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(AttributeError, match="random_generator"):
        next(iter(loader))


@pytest.mark.parametrize("gain", [0.0, 1000.0])
def test_auto_tries_processes_after_an_epoch_of_turns_and_keeps_the_quicker(monkeypatch, caplog, gain):
    monkeypatch.setattr(_where, "_KEPT_GAIN", gain)  # However busy this machine is.
    monkeypatch.setattr(_where, "_ONE_CORE", (0.0, 10.0))
    caplog.set_level(logging.INFO, "leat")
    loader = make(workers="auto")
    where = []
    for _ in range(4):
        pids, indices = epoch(loader)
        assert indices == list(range(240))
        where.append("threads" if pids == {os.getpid()} else "processes")
    last = "processes" if gain == 0 else "threads"
    assert where == ["threads", "processes", last, last]
    (said,) = [record.message for record in caplog.records if "batches a second" in record.message]
    assert ("stays with processes" if gain == 0 else "goes back to threads") in said


def test_auto_stays_in_threads_where_nothing_else_can_be(monkeypatch, caplog):
    monkeypatch.setattr(_where, "_ONE_CORE", (0.2, 1.4))
    caplog.set_level(logging.INFO, "leat")
    dataset = Heavy(240)
    dataset.more = lambda: 0
    loader = DataLoader(dataset, batch_size=8, num_workers=2, workers="auto")
    assert epoch(loader)[0] == epoch(loader)[0] == {os.getpid()}
    assert len([record for record in caplog.records if "cannot be pickled" in record.message]) == 1


@pytest.mark.parametrize(("found", "expected"), [
    ({}, True),
    ({"threads": 1}, False),
    ({"waited": 1.0}, False),
    ({"cpu": 18.0}, False),
    ({"cpu": 2.0}, False),
    ({"items": 100_000}, False),
])  # fmt: skip
def test_turns_are_told_from_what_an_epoch_found(found, expected):
    usual = {"batches": 100, "seconds": 10.0, "items": 3000, "waited": 8.0, "cpu": 9.9, "threads": 4}
    assert _where.Epoch(**{**usual, **found}).takes_turns() is expected


@pytest.mark.parametrize(("options", "says"), [
    ({"workers": "forks"}, '"threads", "processes" or "auto"'),
    ({"workers": "auto", "num_workers": 0}, "is for num_workers= of 1 or more"),
    ({"workers": "auto", "multiprocessing_context": "spawn"}, "leave out one of them"),
])  # fmt: skip
def test_what_cannot_be_is_refused(options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        DataLoader(Heavy(8), **{"num_workers": 2, **options})


def test_a_dataset_of_the_engine_has_its_own_word(pictures):
    with pytest.raises(leat.InvalidArgument, match=r"leat.ops.Python\(fn, workers="):
        DataLoader(leat.Dataset(pictures), batch_size=8, num_workers=2, workers="processes")
