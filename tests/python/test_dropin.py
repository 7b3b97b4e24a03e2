"""leat.torch.DataLoader gives what torch's gives: content, order, draws, errors."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import multiprocessing
import threading
import time
import traceback
import warnings

import numpy as np
import pytest
import torch
import torch.utils.data as torchs

from dropin_datasets import Broken, Counting, Drawing, Slow, StatefulShuffle, Whole, content_of
from leat.errors import InvalidArgument
from leat.torch import DataLoader, get_worker_info
from leat.torch._cores import Cores, own_clock
from leat.torch._turns import Turns
from small_datasets import run_python

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.usefixtures("no_fetcher_is_left"),
]


def plain(batch):
    """A batch as plain values, to compare."""
    if isinstance(batch, torch.Tensor):
        return ("tensor", str(batch.dtype), batch.tolist())
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [type(batch).__name__, *map(plain, batch)]
    return batch


def epochs_of(kind, dataset, epochs=2, seed=11, **arguments):
    """All batches of some epochs, and the state they left in torch's
    generator."""
    torch.manual_seed(seed)
    loader = kind(dataset, **arguments)
    batches = [[plain(batch) for batch in loader] for _ in range(epochs)]
    return batches, torch.get_rng_state().tolist(), len(loader)


def reversed_items(items):
    """A collate_fn of the user's."""
    return [index for _, index in reversed(items)]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


SAMPLERS = {
    "in order": lambda size: {},
    "shuffle": lambda size: {"shuffle": True},
    "generator": lambda size: {"shuffle": True, "generator": seeded(7)},
    "replacement": lambda size: {
        "sampler": torchs.RandomSampler(range(size), replacement=True, num_samples=2 * size)
    },
    "weights": lambda size: {"sampler": torchs.WeightedRandomSampler([1.0] * size, size + 3)},
    "subset": lambda size: {"sampler": torchs.SubsetRandomSampler(range(0, size, 3))},
    "eager": lambda size: {"sampler": Eager(size)},
    "list": lambda size: {"sampler": list(range(size - 1, -1, -2))},
    "distributed": lambda size: {
        "sampler": torchs.distributed.DistributedSampler(range(size), 3, 1)
    },
}


class Eager(torchs.Sampler):
    """Draws in iter() already, where a generator function would draw in next()."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __iter__(self):
        return iter(torch.randperm(self.size).tolist())


BATCHES = {
    "1": {},
    "7": {"batch_size": 7},
    "8, whole only": {"batch_size": 8, "drop_last": True},
    "none": {"batch_size": None},
    "own collate": {"batch_size": 5, "collate_fn": reversed_items},
}


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(("sampler", "batches"), [
    *((sampler, "7") for sampler in SAMPLERS),
    *(("shuffle", batches) for batches in BATCHES),
])
def test_the_same_seeds_give_torchs_batches(sampler, batches, workers):
    size = 41
    arguments = {**BATCHES[batches], "num_workers": workers}

    expected = epochs_of(
        torchs.DataLoader, Slow(size, 0), **arguments, **SAMPLERS[sampler](size)
    )
    ours = epochs_of(DataLoader, Slow(size), **arguments, **SAMPLERS[sampler](size))

    assert ours == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_sampler_decides_alone(workers):
    order = [[3, 1], [0], [], [7, 7, 2], (5, 6)]

    def collate(items):
        return [index for _, index in items]

    arguments = {"batch_sampler": order, "collate_fn": collate}
    expected = epochs_of(torchs.DataLoader, Slow(8, 0), **arguments)
    ours = epochs_of(DataLoader, Slow(8), num_workers=workers, **arguments)

    assert ours == expected
    assert [batch[1:] for batch in ours[0][1]] == [list(batch) for batch in order]


def test_random_arguments_give_torchs_batches():
    rng = np.random.default_rng(2024)
    for _ in range(40):
        size = int(rng.integers(1, 60))
        arguments = {
            "batch_size": int(rng.integers(1, 20)),
            "shuffle": bool(rng.integers(2)),
            "drop_last": bool(rng.integers(2)),
            "num_workers": int(rng.integers(4)),
        }
        if arguments["num_workers"]:
            arguments["prefetch_factor"] = int(rng.integers(1, 5))
            arguments["persistent_workers"] = bool(rng.integers(2))
        threads = int(rng.integers(1, 9))
        seed = int(rng.integers(1000))
        quick = {**arguments, "num_workers": 0, "seed": seed}
        quick.pop("prefetch_factor", None)
        quick.pop("persistent_workers", None)

        expected = epochs_of(torchs.DataLoader, Slow(size, 0), epochs=1, **quick)
        ours = epochs_of(
            DataLoader, Slow(size, 0.001), epochs=1, seed=seed, threads=threads, **arguments
        )

        assert ours == expected, arguments


@pytest.mark.parametrize("workers", [0, 2])
def test_items_are_fetched_at_once_and_never_more_than_asked(workers):
    data = Slow(96, 0.01)
    batches = list(DataLoader(data, batch_size=24, num_workers=workers, threads=6))

    assert 3 <= data.peak <= 6
    assert torch.cat([indices for _, indices in batches]).tolist() == list(range(96))
    assert sorted(data.fetched) == list(range(96))  # Each once.


@pytest.mark.parametrize(("quick_seconds", "own_thread"), [(60.0, True), (0.0, False)])
def test_only_slow_items_are_given_to_threads(monkeypatch, quick_seconds, own_thread):
    monkeypatch.setattr("leat.torch._threads._QUICK_SECONDS", quick_seconds)
    data = Slow(64, 0.001)
    batches = list(DataLoader(data, batch_size=8))

    assert torch.cat([indices for _, indices in batches]).tolist() == list(range(64))
    assert (data.threads == {threading.get_ident()}) == own_thread


class SlowFrom(Slow):
    """Items below `first` take no time; notes which others the calling thread fetched."""

    def __init__(self, size, first):
        super().__init__(size, 0)
        self.first, self.caller, self.in_turn = first, threading.get_ident(), []

    def __getitem__(self, index):
        if index < self.first:
            return torch.tensor(index)
        if threading.get_ident() == self.caller:
            self.in_turn.append(index)
        time.sleep(0.02)
        return torch.tensor(index)


def test_few_items_are_waited_for_in_turn_once_they_become_slow():
    data = SlowFrom(256, first=128)

    batches = list(DataLoader(data, batch_size=64))

    assert torch.cat(batches).tolist() == list(range(256))
    assert len(data.in_turn) <= 17  # Timed as one, and one more.


def test_threads_that_had_one_core_are_compared_with_none_now_and_then(monkeypatch):
    monkeypatch.setattr("leat.torch._turns.has_lock", lambda: True)
    turns = Turns()
    turns.saw_cores(1.7)
    assert not turns.are_suspected  # They compute side by side.
    turns.saw_cores(0.1)
    assert not turns.are_suspected  # They wait for something else.
    for pause in (16, 32, 64):
        turns.saw_cores(1.0)
        assert turns.are_suspected
        turns.compare(in_turn=2.0, at_once=1.0)  # As where items also wait.
        assert not turns.are_taken
        for _ in range(pause - 1):
            turns.saw_cores(1.0)
            assert not turns.are_suspected

    turns.saw_cores(1.0)
    turns.compare(in_turn=1.0, at_once=1.3)
    for _ in range(128):
        assert turns.are_taken
        turns.had_batch()
    assert not turns.are_taken
    assert turns.are_suspected  # Compared again.


def test_without_a_lock_threads_that_compute_are_compared_too(monkeypatch):
    monkeypatch.setattr("leat.torch._turns.has_lock", lambda: False)
    turns = Turns()
    turns.saw_cores(0.1)
    assert not turns.are_suspected  # They wait.
    turns.saw_cores(2.0)
    assert turns.are_suspected
    turns.compare(in_turn=1.0, at_once=2.3)
    assert turns.are_taken


def test_more_threads_are_hired_while_they_bring_more_cores():
    waiting = Cores()
    assert [waiting.judge(0.002, 0.0001) for _ in range(6)] == [True] * 6  # As of GETs.

    computing = Cores()
    assert computing.judge(0.001, 0.001) is None
    assert computing.judge(0.002, 0.002) is None  # Not sure yet.
    assert computing.judge(0.02, 0.04) is True  # Two cores: nobody knows what four bring.
    assert computing.judge(0.02, 0.042) is False  # Two, again: all there are, or a lock.
    assert computing.judge(0.02, 0.05) is True  # Now there are more.
    assert computing.judge(0.02, 0.01) is True  # Now they wait.


def test_threads_tell_their_own_time_on_a_core():
    ours = Cores()
    ours.join(own_clock())
    ours.watch()
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    assert ours._cpu_seconds() >= 0.05

    clocks = []
    ended = threading.Thread(target=lambda: clocks.append(own_clock()))
    ended.start()
    ended.join()
    ours.join(clocks[0])
    assert ours._cpu_seconds() >= 0.05  # One that has ended is left out.


@pytest.mark.parametrize("cores", [1.0, 2.0])
def test_items_that_hold_the_interpreter_go_back_to_the_calling_thread(monkeypatch, cores):
    monkeypatch.setattr("leat.torch._turns.has_lock", lambda: True)
    monkeypatch.setattr("leat.torch._threads._cores_since", lambda begin, cpu: cores)
    monkeypatch.setattr(Turns, "compare", lambda self, in_turn, at_once: decide(self, in_turn, at_once))
    compared = []

    def decide(turns, in_turn, at_once):
        compared.append((in_turn, at_once))
        turns.are_taken, turns._left = True, 1000

    data = Slow(160, 0.002)
    batches = iter(DataLoader(data, batch_size=16))
    first = [next(batches) for _ in range(4)]
    data.threads.clear()
    rest = list(batches)

    indices = torch.cat([indices for _, indices in first + rest]).tolist()
    assert indices == list(range(160))
    assert sorted(data.fetched) == list(range(160))  # Each once.
    assert len(compared) == (cores == 1.0)
    assert all(seconds > 0 for pair in compared for seconds in pair)
    assert (data.threads == {threading.get_ident()}) == (cores == 1.0)


def test_a_profiler_sees_the_batches():
    with torch.autograd.profiler.profile() as profile:
        assert len(list(DataLoader(Slow(8, 0), batch_size=4))) == 2

    seen = [event.name for event in profile.function_events if "enumerate(DataLoader)" in event.name]
    assert len(seen) == 3  # The end, too, as of torch's own.


ZERO_WORKERS = {"num_workers": 0, "prefetch_factor": None}
LIKE = {
    "workers": {"batch_size": 3, "num_workers": 2, "prefetch_factor": 3, "drop_last": True},
    "no workers": {"batch_size": 4, "shuffle": True, "collate_fn": reversed_items},
    "no batches": {"batch_size": None, "shuffle": True},
}


@pytest.mark.parametrize("arguments", LIKE.values(), ids=LIKE)
def test_one_like_torchs_has_its_batches_and_settings(arguments):
    ours = DataLoader.like(torchs.DataLoader(Slow(11, 0), generator=seeded(5), **arguments))
    expected = torchs.DataLoader(Slow(11, 0), generator=seeded(5), **{**arguments, **ZERO_WORKERS})

    assert list(map(plain, ours)) == list(map(plain, expected))
    assert ours.num_workers == arguments.get("num_workers", 0)
    assert ours.prefetch_factor == arguments.get("prefetch_factor")


def test_one_like_torchs_keeps_every_argument():
    kept = {
        "num_workers": 2, "collate_fn": reversed_items, "pin_memory": True, "timeout": 3.5, "worker_init_fn": print,
        "multiprocessing_context": multiprocessing.get_context("spawn"), "generator": seeded(1), "prefetch_factor": 3,
        "persistent_workers": True, "pin_memory_device": "cpu", "in_order": False,
    }  # fmt: skip
    known = set(inspect.signature(torchs.DataLoader.__init__).parameters) - {"self"}
    batches = {"dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"}
    assert known - batches <= set(kept), "torch has an argument that `like` does not know"
    original = torchs.DataLoader(Slow(11, 0), **{name: kept[name] for name in kept if name in known})

    ours = DataLoader.like(original, threads=5)

    assert {name: getattr(ours, name) for name in kept if name in known} == {
        name: getattr(original, name) for name in kept if name in known}  # fmt: skip
    assert ours.dataset is original.dataset and ours.batch_sampler is original.batch_sampler
    assert ours.threads == 5


def test_one_like_torchs_iterates_a_stream():
    stream = torchs.ChainDataset([Streamed()])

    ours = DataLoader.like(torchs.DataLoader(stream, batch_size=4, drop_last=True))

    assert [batch.tolist() for batch in ours] == [[0, 1, 2, 3], [4, 5, 6, 7]]


class Streamed(torchs.IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_construction_and_idling_start_no_thread():
    before = threading.active_count()
    data = Slow(30, 0.005)
    loader = DataLoader(data, batch_size=5, num_workers=3)
    assert threading.active_count() == before and data.fetched == []
    plain_loader = DataLoader(data, batch_size=5)
    batches = iter(plain_loader)
    assert threading.active_count() == before and data.fetched == []
    next(batches)
    fetched = len(data.fetched)
    time.sleep(0.05)
    assert len(data.fetched) == fetched == 5  # Without workers nothing runs ahead.
    del loader


def test_the_lookahead_is_torchs():
    data = Slow(400, 0)
    batches = iter(DataLoader(data, batch_size=4, num_workers=2, prefetch_factor=3))
    until(lambda: len(data.fetched) == 24)
    next(batches)
    until(lambda: len(data.fetched) == 28)
    time.sleep(0.05)
    assert len(data.fetched) == 28


def until(is_true, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


# --- wrong arguments --------------------------------------------------------


@pytest.mark.parametrize("arguments", [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"prefetch_factor": -1, "num_workers": 1},
    {"persistent_workers": True},
    {"multiprocessing_context": "fork"},
    {"multiprocessing_context": "none such", "num_workers": 1},
    {"multiprocessing_context": 3, "num_workers": 1},
    {"sampler": [1], "shuffle": True},
    {"batch_sampler": [[1]], "batch_size": 2},
    {"batch_sampler": [[1]], "shuffle": True},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": "4"},
    {"drop_last": "yes"},
])
def test_wrong_arguments_raise_what_torch_raises(arguments):
    with pytest.raises(Exception) as expected:
        torchs.DataLoader(Slow(4), **arguments)
    with pytest.raises(type(expected.value)) as ours:
        DataLoader(Slow(4), **arguments)

    assert str(ours.value) == str(expected.value)


def test_wrong_at_iteration_raises_what_torch_raises():
    for arguments in ({"timeout": 1}, {"num_workers": 1, "prefetch_factor": 0}):
        with pytest.raises(Exception) as expected:
            iter(torchs.DataLoader(Slow(4), **arguments))
        with pytest.raises(type(expected.value)) as ours:
            iter(DataLoader(Slow(4), **arguments))
        assert str(ours.value) == str(expected.value)


@pytest.mark.parametrize("threads", [0, -1, 2.5, True, "4"])
def test_threads_that_cannot_be_are_refused(threads):
    with pytest.raises(InvalidArgument, match="threads="):
        DataLoader(Slow(4), threads=threads)


def test_attributes_are_guarded_as_torchs():
    loader = DataLoader(Slow(4))
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3
    assert isinstance(loader, torchs.DataLoader)
    assert isinstance(loader.sampler, torchs.SequentialSampler)


# --- failing and stalling items ---------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_at_its_batch_and_spares_the_others(workers):
    data = Slow(40, fails=[13])
    batches = iter(DataLoader(data, batch_size=4, num_workers=workers))
    seen, errors = [], []
    while True:
        try:
            seen.append(next(batches)[1].tolist())
        except StopIteration:
            break
        except Broken as error:
            errors.append((len(seen), error))

    assert [(at, error.index) for at, error in errors] == [(3, 13)]
    assert seen == [list(range(i, i + 4)) for i in range(0, 40, 4) if i != 12]
    error = errors[0][1]
    assert error.args == (13, "as asked")
    text = "".join(traceback.format_exception(error))
    assert "dropin_datasets.py" in text and "raise Broken(index" in text
    assert "while fetching item 13 of batch 3" in error.__notes__


@pytest.mark.parametrize("workers", [0, 2])
def test_of_several_errors_the_first_place_wins(workers):
    class LateFirst(Slow):
        def __getitem__(self, index):
            if index == 1:
                time.sleep(0.1)
                raise ValueError("the first")
            time.sleep(0.001)
            if index > 1:
                raise KeyError("a later one")
            return super().__getitem__(index)

    with pytest.raises(ValueError, match="the first"):
        next(iter(DataLoader(LateFirst(8), batch_size=8, num_workers=workers)))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_does_not_wait_for_later_places(workers):
    go_on = threading.Event()
    data = Slow(8, fails=[2], stalls={5: go_on})
    try:
        batches = iter(DataLoader(data, batch_size=8, num_workers=workers))
        begun = time.monotonic()
        with pytest.raises(Broken):
            next(batches)
        assert time.monotonic() - begun < 20  # And not until it goes on.
        assert not go_on.is_set()
    finally:
        go_on.set()


def test_without_workers_nothing_is_fetched_behind_an_error():
    asked = []

    class FirstFails(torchs.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            asked.append(index)
            if index == 0:
                raise ValueError("the first")
            return index

    batches = iter(DataLoader(FirstFails(), batch_size=4))

    with pytest.raises(ValueError, match="the first"):
        next(batches)
    assert asked == [0]
    assert next(batches).tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_failing_collate_fn_comes_at_its_batch(workers):
    def collate(items):
        if items[0][1] == 4:
            raise RuntimeError("cannot be put together")
        return [index for _, index in items]

    batches = iter(DataLoader(Slow(12), batch_size=4, num_workers=workers, collate_fn=collate))

    assert next(batches) == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="cannot be put together") as error:
        next(batches)
    assert "while collating batch 1" in error.value.__notes__
    assert next(batches) == [8, 9, 10, 11]


def test_ten_thousand_items_one_failing_one_stalled():
    go_on = threading.Event()
    data = Slow(10_000, 0.0005, fails=[7_001], stalls={5_000: go_on})
    loader = DataLoader(data, batch_size=50, num_workers=4, shuffle=False)
    batches = iter(loader)
    seen, failed = [], 0
    for number in itertools.count():
        if number == 100:  # Holds the stalled item: all others of the lookahead come.
            until(lambda: len(data.fetched) >= 5_000 + 8 * 50)
            go_on.set()
        try:
            indices, values = next(batches)[1], None
        except StopIteration:
            break
        except Broken as error:
            failed += 1
            assert error.index == 7_001 and number == 140
            continue
        seen += indices.tolist()

    assert failed == 1
    assert seen == [i for i in range(10_000) if not 7_000 <= i < 7_050]
    assert max(data.fetched) == 9_999 and data.peak <= 64


def test_a_timeout_is_torchs_and_the_batch_still_comes():
    go_on = threading.Event()
    data = Slow(8, stalls={2: go_on})
    batches = iter(DataLoader(data, batch_size=2, num_workers=2, timeout=0.2))

    def patiently():
        """A busy machine may take longer than that for each: then it is asked again."""
        for _ in range(100):
            with contextlib.suppress(RuntimeError):
                return next(batches)
        raise AssertionError("it never came")

    assert patiently()[1].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="^DataLoader timed out after 0.2 seconds$"):
        for _ in range(8):  # Batches that arrive meanwhile begin the time anew.
            next(batches)
    go_on.set()
    assert [patiently()[1].tolist() for _ in range(3)] == [[2, 3], [4, 5], [6, 7]]
    with pytest.raises(StopIteration):
        patiently()


def test_out_of_order_delivers_what_is_there():
    go_on = threading.Event()
    data = Slow(40, stalls={0: go_on})
    batches = iter(DataLoader(data, batch_size=4, num_workers=2, in_order=False))
    seen = [next(batches)[1].tolist()[0] for _ in range(9)]
    assert sorted(seen) == list(range(4, 40, 4))
    go_on.set()
    assert next(batches)[1].tolist() == [0, 1, 2, 3]
    assert list(batches) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_pinning_is_the_last_step_and_its_error_comes_at_its_batch(monkeypatch, workers):
    def pin(batch, device=None):
        if batch == [4, 5, 6, 7]:
            raise RuntimeError("no memory to pin")
        return ("pinned", device, batch)

    monkeypatch.setattr(torchs._utils.pin_memory, "pin_memory", pin)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    loader = DataLoader(Slow(12), batch_size=4, num_workers=workers, pin_memory=True,
                        collate_fn=lambda items: [index for _, index in items])  # fmt: skip
    batches = iter(loader)

    assert next(batches) == ("pinned", "cuda", [0, 1, 2, 3])
    with pytest.raises(RuntimeError, match="no memory to pin"):
        next(batches)
    assert next(batches) == ("pinned", "cuda", [8, 9, 10, 11])


def test_pinning_without_a_device_warns_as_torch_does():
    loader = DataLoader(Slow(4), pin_memory=True)
    if not torch.accelerator.is_available():
        with pytest.warns(UserWarning, match="no accelerator is found"):
            assert len(list(loader)) == 4


# --- datasets that fetch whole batches --------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_getitems_gets_whole_batches(workers):
    data = Whole(20)
    batches = [b[1].tolist() for b in DataLoader(data, batch_size=5, num_workers=workers)]
    assert batches == [list(range(i, i + 5)) for i in range(0, 20, 5)]
    assert data.calls == 4


@pytest.mark.parametrize("wrap", [
    lambda data: torchs.Subset(data, range(19, -1, -1)),
    lambda data: torchs.Subset(torchs.Subset(data, range(20)), range(19, -1, -1)),
])
def test_torchs_wrappers_do_not_hide_single_items(wrap):
    data = Slow(20, 0.01)
    batches = list(DataLoader(wrap(data), batch_size=10, num_workers=1))
    assert torch.cat([b[1] for b in batches]).tolist() == list(range(19, -1, -1))
    assert data.peak > 2

    whole = Whole(20)
    list(DataLoader(wrap(whole), batch_size=10))
    assert whole.calls == 2


# --- workers ----------------------------------------------------------------


class Telling(torchs.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.001)
        info = get_worker_info()
        if info is None:
            return (-1, -1, -1, 0.0)
        assert info.dataset is self
        draws = info.rng
        number = draws.random_generator.random() + draws.numpy_generator.random()
        number += torch.rand((), generator=draws.torch_generator).item()
        return info.id, info.num_workers, info.seed, number


def test_worker_info_is_that_of_torchs_assignment():
    torch.manual_seed(3)
    tell = iter(DataLoader(Telling(), batch_size=4, num_workers=3))
    base_seed = tell._base_seed
    ids = [plain(batch) for batch in tell]
    assert [batch[1][2] for batch in ids] == [[i % 3] * 4 for i in range(6)]
    assert [batch[3][2] for batch in ids] == [[base_seed + i % 3] * 4 for i in range(6)]
    assert get_worker_info() is None
    assert list(DataLoader(Telling(), batch_size=24))[0][0].tolist() == [-1] * 24


def test_an_items_own_generators_do_not_depend_on_threads():
    def numbers(threads):
        torch.manual_seed(3)
        loader = DataLoader(Telling(), batch_size=4, num_workers=3, threads=threads)
        return [batch[3].tolist() for batch in loader]

    first = numbers(1)
    assert numbers(8) == first
    assert len({number for batch in first for number in batch}) == 24


@pytest.mark.parametrize("persistent", [False, True])
def test_worker_init_fn_runs_once_for_each_before_its_items(persistent):
    begun = []

    class NeedsInit(Slow):
        def __getitem__(self, index):
            assert get_worker_info().id in [worker for worker, _ in begun]
            return super().__getitem__(index)

    def init(worker):
        time.sleep(0.01)
        info = get_worker_info()
        assert (info.id, info.num_workers, info.rng) == (worker, 3, None)
        begun.append((worker, info.dataset))

    data = NeedsInit(40)
    loader = DataLoader(data, batch_size=4, num_workers=3, worker_init_fn=init,
                        persistent_workers=persistent)  # fmt: skip
    for epoch in (1, 2):
        assert len(list(loader)) == 10
        times = 1 if persistent else epoch
        assert sorted(worker for worker, _ in begun) == sorted([0, 1, 2] * times)
    assert all(dataset is data for _, dataset in begun)


def test_a_failing_worker_init_fn_comes_at_its_batches():
    def init(worker):
        if worker == 1:
            raise OSError("no such device")

    batches = iter(DataLoader(Slow(12), batch_size=4, num_workers=2, worker_init_fn=init))
    next(batches)
    with pytest.raises(OSError, match="no such device"):
        next(batches)
    assert next(batches)[1].tolist() == [8, 9, 10, 11]


# --- global random generators -----------------------------------------------


def test_items_that_draw_give_torchs_numbers_without_workers():
    import random

    def numbers(kind, **arguments):
        random.seed(1), np.random.seed(2), torch.manual_seed(3)
        return [plain(b) for b in kind(Drawing(30, 0.001), batch_size=10, shuffle=True, **arguments)]

    with pytest.warns(UserWarning, match="one after another.*threads="):
        ours = numbers(DataLoader)
    assert ours == numbers(torchs.DataLoader)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accepted = numbers(DataLoader, threads=8)
    assert [batch[1] for batch in accepted] == [batch[1] for batch in ours]  # The indices.


def test_items_that_draw_ahead_are_warned_of_once():
    with pytest.warns(UserWarning, match="does not repeat.*multiprocessing_context") as warned:
        loader = DataLoader(Drawing(60, 0.002), batch_size=5, num_workers=2)
        list(loader), list(loader)
    assert len([w for w in warned if "leat.torch" in str(w.message)]) == 1


# --- processes, iterables ---------------------------------------------------


@pytest.mark.parametrize("threads", [None, 4])
def test_processes_when_asked(threads):
    arguments = {"batch_size": 6, "shuffle": True, "num_workers": 2,
                 "multiprocessing_context": "fork"}  # fmt: skip
    expected = epochs_of(torchs.DataLoader, Slow(30), **arguments)
    data = Slow(30)
    ours = epochs_of(DataLoader, data, threads=threads, **arguments)
    assert ours == expected
    assert data.fetched == []  # Not in this process.


def test_processes_repeat_what_items_draw():
    arguments = {"batch_size": 6, "num_workers": 2, "multiprocessing_context": "fork"}
    expected = epochs_of(torchs.DataLoader, Drawing(24), **arguments)
    assert epochs_of(DataLoader, Drawing(24), **arguments) == expected


class Pid(torchs.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        time.sleep(0.01)
        if index == 21:
            raise LookupError("number 21")
        return threading.get_ident()


def test_threads_within_processes():
    loader = DataLoader(Pid(), batch_size=8, num_workers=2, threads=4, collate_fn=set,
                        multiprocessing_context="fork")  # fmt: skip
    batches = iter(loader)
    assert all(1 < len(next(batches)) <= 4 for _ in range(2))
    with pytest.raises(LookupError, match="number 21"):
        next(batches)
    assert len(next(batches)) > 1


class Named(torchs.Dataset):
    name = "none"

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.name


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_worker_init_fn_reaches_the_dataset_within_processes(context):
    loader = DataLoader(Named(), batch_size=4, num_workers=1, threads=2,
                        multiprocessing_context=context, worker_init_fn=name_it)  # fmt: skip
    assert list(loader) == [["named 0"] * 4] * 2


def name_it(worker):
    torchs.get_worker_info().dataset.name = f"named {worker}"


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_is_torchs(workers):
    arguments = {"batch_size": 4, "num_workers": workers}
    ours = [plain(batch) for batch in DataLoader(Counting(21), **arguments)]
    theirs = [plain(batch) for batch in torchs.DataLoader(Counting(21), **arguments)]

    assert ours == theirs


def test_importing_leat_does_not_import_torch():
    done = run_python(
        "import sys, leat; assert 'torch' not in sys.modules\n"
        "leat.torch.DataLoader; assert 'torch' in sys.modules\n"
        "try: leat.none_such\nexcept AttributeError as error: print(error)"
    )
    assert done.stdout == "module 'leat' has no attribute 'none_such'\n", done.stderr
