"""leat.ops.Python in worker processes: the same batches, on all cores, and nothing left behind."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import itertools
import logging
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback

import numpy as np
import pytest

import leat
import worker_functions as functions
from leat import _processes, _workers
from leat.ops import Chain, DecodeImage, Filter, Python
from small_datasets import encoded, make_blobs, pixels, tar_of, write

HERE = str(pathlib.Path(__file__).parent)


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers") / "blobs"
    make_blobs(folder, 240, 300)
    return folder


def batches(source, *ops, **options) -> list:
    options = {"batch_size": 10, "shuffle": True, "batch": "dict", "output": "numpy", "ids": True, "threads": 2,
               "epochs": 2, **options}  # fmt: skip
    with leat.Loader(source, ops=list(ops), **options) as loader:
        return [batch for _ in range(options["epochs"]) for batch in loader]


def are_equal(some: list, others: list) -> bool:
    return len(some) == len(others) and all(
        list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)
        for a, b in zip(some, others)
    )


def in_processes(function, **options) -> Python:
    return Python(function, workers="processes", **options)


def is_running(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until_gone(pids) -> None:
    while any(is_running(pid) for pid in pids):  # The test's alarm ends it.
        time.sleep(0.01)


def test_functions_run_in_as_many_processes_as_threads_call_them_and_end_with_the_loader(blobs):
    with leat.Loader(blobs, batch_size=24, shuffle=True, threads=2, epochs=1, batch="dict", fields=["data"],
                     output="numpy", ops=[in_processes(functions.heavy)]) as loader:  # fmt: skip
        pids = {int(pid) for batch in loader for pid in batch["data"]}
        assert len(pids) == 2 and os.getpid() not in pids
        assert all(is_running(pid) for pid in pids)
    wait_until_gone(pids)


@pytest.mark.parametrize("op", [
    Python(functions.draws), Python(functions.draws_globally, global_rng=True), Python(functions.text_of),
    Python(functions.big), Python(functions.nothing),
], ids=lambda op: op.function.__name__)  # fmt: skip
def test_batches_draws_and_order_are_those_of_threads(blobs, op):
    def ran(workers):
        op.workers = workers
        return batches(blobs, op, batch_size=40)

    assert are_equal(ran("processes"), ran("threads"))


def test_arrays_of_several_fields_and_of_one_op_after_another(tmp_path):
    members = [(f"{i:03}.{kind}.png", encoded(pixels(i + more))) for i in range(20)
               for kind, more in (("left", 0), ("right", 20))]  # fmt: skip
    write(tmp_path / "set" / "a.tar", tar_of(members))

    def ran(workers):
        return batches(
            tmp_path / "set", *(DecodeImage(side, to=side[:-4], layout="HWC") for side in ("left.png", "right.png")),
            Python(functions.darker, field="left", workers=workers),
            Python(functions.swapped, fields=("left", "right"), workers=workers),
        )  # fmt: skip

    assert are_equal(ran("processes"), ran("threads"))


def test_an_exception_is_raised_with_the_traceback_of_its_process(blobs):
    with pytest.raises(KeyError) as raised:
        batches(blobs, in_processes(functions.fails))

    shown = "".join(traceback.format_exception(raised.type, raised.value, raised.tb))
    assert "in deep_inside" in shown and 'raise KeyError("no such word")' in shown
    assert "leat: " in shown and "a function of yours raised KeyError" in shown


def test_an_exception_that_cannot_be_pickled_keeps_its_text(blobs):
    with pytest.raises(leat.Error, match=r"OwnError: nothing fits \(7\)") as raised:
        batches(blobs, in_processes(functions.fails_oddly))
    assert "in fails_oddly" in str(raised.value.__cause__)


def test_what_a_function_may_not_give_is_refused_alike(blobs):
    def refusal(workers):
        with pytest.raises(leat.InvalidArgument) as raised:
            batches(blobs, Python(type, workers=workers))
        return str(raised.value)

    assert "which is no array of numbers" in refusal("processes")
    assert refusal("processes") == refusal("threads")


def test_a_worker_that_dies_is_an_error_that_names_the_op(blobs):
    with pytest.raises(leat.Error, match=r"Python\(dies.*died during a call \(signal SIGKILL\)"):
        batches(blobs, in_processes(functions.dies))


def test_a_function_that_does_not_arrive_says_why(blobs):
    with pytest.raises(RuntimeError, match="not in another process"):
        batches(blobs, in_processes(functions.Unwelcome()))


def test_a_function_that_cannot_be_pickled_stays_in_threads_and_is_said(blobs, caplog):
    pids = {int(pid) for batch in batches(blobs, in_processes(lambda data: os.getpid())) for pid in batch["data"]}

    assert pids == {os.getpid()}
    (said,) = [record for record in caplog.records if "stays in threads" in record.message]
    assert said.levelno == logging.WARNING
    assert "cannot be pickled" in said.message and "top level of a module" in said.message


@pytest.mark.parametrize("workers", ["auto", "processes"])
def test_a_function_is_named_and_what_it_holds_is_not_shown(blobs, workers):
    held = functools.partial(functions.held, functions.Reserved(), token="password")
    ops = [Python(functions.Reserved(), workers=workers), Python(held, workers=workers), Filter(held, workers=workers)]
    assert [repr(op) for op in ops] == [
        "Python(Reserved, per='sample')", "Python(partial(held), per='sample')", "Filter(partial(held), name=None)",
    ]  # fmt: skip
    assert batches(blobs, *ops, epochs=1)[0]["data"].tolist() == [300] * 10


def test_a_batch_and_a_chain_need_no_processes():
    with pytest.raises(leat.InvalidArgument, match='workers= are for per="sample"'):
        Python(len, per="batch", workers="processes")
    with pytest.raises(leat.InvalidArgument, match="auto, threads, processes"):
        Python(len, workers="forks")
    chain = Chain([in_processes(functions.place_of)])
    assert int(chain(b"abc")) == os.getpid()
    assert Python(len) != Python(len, workers="threads")


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
import leat, worker_functions

def read(source, **options):
    with leat.Loader(source, batch_size=10, shuffle=True, threads=2, epochs=1, batch="dict", fields=["data"],
                     output="numpy", ops=[leat.ops.Python(**options)]) as loader:
        return {{int(pid) for batch in loader for pid in batch["data"]}}
"""


def script(folder, text: str) -> list[str]:
    file = folder / "script.py"
    file.write_text(SCRIPT.format(here=HERE) + textwrap.dedent(text))
    return [sys.executable, str(file)]


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_script_with_a_guard_runs_its_own_functions(blobs, tmp_path, method):
    command = script(tmp_path, """
        import multiprocessing, os
        def own(data):
            return os.getpid()
        if __name__ == "__main__":
            multiprocessing.set_start_method(sys.argv[2])
            print(os.getpid() in read(sys.argv[1], function=own, workers="processes"))
    """)  # fmt: skip
    done = subprocess.run([*command, str(blobs), method], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"], done.stderr


def test_a_script_without_a_guard_is_not_run_again(blobs, tmp_path):
    command = script(tmp_path, """
        print("begins")
        import os
        print(os.getpid() in read(sys.argv[1], function=worker_functions.place_of, workers="processes"))
    """)  # fmt: skip
    done = subprocess.run([*command, str(blobs)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["begins", "True"]
    assert "script.py" in done.stderr and '`if __name__ == "__main__":`' in done.stderr


def test_workers_end_with_a_parent_that_is_killed_in_the_middle_of_a_call(blobs, tmp_path):
    command = script(tmp_path, """
        if __name__ == "__main__":
            read(sys.argv[1], function=worker_functions.hangs, workers="processes")
    """)
    parent = subprocess.Popen([*command, str(blobs)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    pids = [int(parent.stdout.readline()) for _ in range(2)]
    assert all(is_running(pid) for pid in pids)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until_gone(pids)


def test_ctrl_c_is_for_the_parent_alone():
    processes = _processes.Processes(2)
    shipped = _workers.ship(in_processes(functions.place_of), 0)
    pid = int(processes.call(shipped, b"", (0, 0, 0)))
    os.kill(pid, signal.SIGINT)
    assert int(processes.call(shipped, b"", (0, 0, 0))) == pid
    processes.close()


def meter(*calls: tuple[float, float], alone: float, cpu: float = 0.0, threads: int = 2) -> _workers.Meter:
    """A meter of calls, each from one moment to another, and each with this many seconds alone and of a core."""
    made = _workers.Meter()
    callers = itertools.cycle(range(threads))
    moments = sorted([(begin, 1, begin) for begin, _ in calls] + [(end, 0, begin) for begin, end in calls])
    for now, begins, began in moments:
        if begins:
            made.begin(now, next(callers))
        else:
            made.end(now, began, alone, cpu)
    return made


def test_calls_that_overlap_and_get_nothing_more_done_take_turns():
    lock = meter(*[(i * 6, i * 6 + 6) for i in range(40)], *[(i * 6 + 3, i * 6 + 9) for i in range(40)], alone=3)
    assert lock.at_a_time == pytest.approx(2, rel=0.05) and lock.gain == pytest.approx(1, rel=0.05)
    assert _workers.turns_are_taken(lock) is True

    free = meter(*[(i * 3, i * 3 + 3) for i in range(40)] * 2, alone=3)
    assert free.gain == pytest.approx(2)
    assert _workers.turns_are_taken(free) is False

    busy = meter(*[(i * 6, i * 6 + 6) for i in range(40)] * 2, alone=6, cpu=3)  # Others made it slow alone, too.
    assert busy.gain == pytest.approx(2) and busy.cores == pytest.approx(1)
    assert _workers.turns_are_taken(busy) is True

    waiting = meter(*[(i * 6, i * 6 + 6) for i in range(40)] * 2, alone=6, cpu=1)
    assert _workers.turns_are_taken(waiting) is False

    few = meter(*[(i * 10, i * 10 + 3) for i in range(40)], alone=3)
    assert few.busy == pytest.approx(120) and few.at_a_time == pytest.approx(1)
    assert _workers.turns_are_taken(few) is None, "they do not meet"


def test_short_calls_that_follow_closely_take_turns():
    """Calls shorter than the interpreter's switch interval never overlap: the next thread waits before it begins."""
    calls = [(i * 3, i * 3 + 2.95) for i in range(40)]
    lock = meter(*calls, alone=2.95)
    assert lock.at_a_time == pytest.approx(1) and lock.callers == 2 and lock.occupied > 0.98
    assert _workers.turns_are_taken(lock) is True

    assert _workers.turns_are_taken(meter(*calls, alone=2.95, threads=1)) is None, "one thread has nobody to wait for"
    assert _workers.turns_are_taken(meter(*[(i * 3, i * 3 + 2.2) for i in range(40)], alone=2.2)) is None, "gaps"

    by_chance = meter(*[(i * 4, i * 4 + 3) for i in range(40)], *[(i * 4 + 2, i * 4 + 5) for i in range(40)], alone=3)
    assert by_chance.occupied == pytest.approx(1, rel=0.05) and by_chance.at_a_time == pytest.approx(1.5, rel=0.05)
    assert by_chance.by_chance == pytest.approx(2, rel=0.05)


def test_the_gain_of_several_measurements_is_weighed_by_their_time():
    short = meter(*[(i * 3, i * 3 + 3) for i in range(10)], alone=3)
    long = meter(*[(i * 3, i * 3 + 3) for i in range(30)] * 2, alone=3)
    assert _workers.gain_of([short, long]) == pytest.approx((30 * 1 + 90 * 2) / 120)


def watched(blobs, function, caplog, epochs: int = 40) -> tuple[set[int], set[int], list[str]]:
    """The processes that ran the first batch and the last, and the lines that were said."""
    caplog.set_level(logging.INFO, "leat")
    with leat.Loader(blobs, batch_size=24, shuffle=True, threads=4, batch="dict", fields=["data"], output="numpy",
                     ops=[Python(function)]) as loader:  # fmt: skip
        seen = []
        for _ in range(epochs):
            seen += [set(batch["data"].tolist()) for batch in loader]
            if loader._workers._auto._stage == "settled":
                break
        seen += [set(batch["data"].tolist()) for _ in range(2) for batch in loader]
    return seen[0], seen[-1], [record.message for record in caplog.records if "ms a call" in record.message]


@pytest.fixture
def busy_machine(monkeypatch):
    """The measurements are right on a machine however busy."""
    monkeypatch.setattr(_workers, "GAIN", 1000.0)
    monkeypatch.setattr(_workers, "CROWDED", 0.0)


@pytest.mark.usefixtures("busy_machine")
def test_auto_moves_what_holds_the_lock(blobs, caplog, monkeypatch):
    monkeypatch.setattr(_workers, "KEPT_GAIN", 0.0)
    first, last, said = watched(blobs, functions.heavy, caplog)

    assert first == {os.getpid()} and os.getpid() not in last
    assert len(said) == 1 and "Python(heavy" in said[0] and 'workers="threads"' in said[0]


@pytest.mark.usefixtures("busy_machine")
def test_auto_goes_back_where_processes_are_no_faster(blobs, caplog, monkeypatch):
    monkeypatch.setattr(_workers, "KEPT_GAIN", 1000.0)
    first, last, said = watched(blobs, functions.heavy, caplog)

    assert first == last == {os.getpid()}
    assert len(said) == 1 and "no faster" in said[0]


@pytest.mark.usefixtures("busy_machine")
def test_workers_that_an_op_asked_for_stay_when_those_of_another_are_no_faster(tmp_path, monkeypatch):
    monkeypatch.setattr(_workers, "KEPT_GAIN", 1000.0)
    members = [(f"{i:03}.{name}", bytes(300)) for i in range(240) for name in ("asked", "auto")]
    write(tmp_path / "set" / "a.tar", tar_of(members))
    ops = [in_processes(functions.place_of, field="asked"), Python(functions.heavy, field="auto")]
    with leat.Loader(tmp_path / "set", batch_size=24, shuffle=True, threads=4, batch="dict", output="numpy",
                     ops=ops) as loader:  # fmt: skip
        epochs = 0
        while loader._workers._auto._stage != "settled":  # The test's alarm ends it.
            epochs += len([*loader]) > 0
        last = [batch for _ in range(2) for batch in loader]
        assert epochs and loader._workers._auto._where == "threads" and loader._workers._auto._functions[0].shipped
    assert all(os.getpid() not in batch["asked"] for batch in last)
    assert set(last[-1]["auto"].tolist()) == {os.getpid()}


def test_workers_that_are_dismissed_end_and_so_does_that_of_a_late_call():
    processes = _processes.Processes(2)
    shipped = _workers.ship(in_processes(functions.place_of), 0)
    pid = int(processes.call(shipped, b"", (0, 0, 0)))
    processes.dismiss()
    wait_until_gone([pid])
    late = int(processes.call(shipped, b"", (0, 0, 0)))
    assert late not in (pid, os.getpid())
    wait_until_gone([late])
    processes.close()


def test_a_call_that_waits_while_workers_are_dismissed_has_its_result(tmp_path):
    processes = _processes.Processes(1)
    shipped = _workers.ship(in_processes(functions.waits), 0)
    gate = os.fsencode(tmp_path / "gate")
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(processes.call, shipped, gate, (0, 0, 0)) for _ in range(2)]
        while not (processes._busy and processes._changed._waiters):  # The test's alarm ends it.
            time.sleep(0.01)
        processes.dismiss()
        write(tmp_path / "gate", b"")
        pids = {int(call.result()) for call in calls}
    assert len(pids) == 2 and os.getpid() not in pids
    wait_until_gone(pids)
    processes.close()


@pytest.mark.parametrize("function", [functions.place_of, functions.sleeps])
def test_auto_leaves_what_is_cheap_or_waits(blobs, caplog, function):
    first, last, said = watched(blobs, function, caplog)
    assert first == last == {os.getpid()} and said == []


@pytest.mark.usefixtures("busy_machine")
def test_auto_says_once_what_it_cannot_move(blobs, caplog):
    first, last, said = watched(blobs, lambda data: functions.heavy(data), caplog)

    assert first == last == {os.getpid()}
    assert len(said) == 1 and "cannot be pickled" in said[0]


@pytest.mark.parametrize("has_memfd", [True, False])
def test_a_region_grows_and_gives_copies(monkeypatch, has_memfd):
    if not has_memfd:
        monkeypatch.delattr(os, "memfd_create")
    region = _processes.Region.make()
    values = (b"abc", np.arange(7, dtype=np.int16), "text", b"", np.zeros((3, 0)), np.ones(1_000_000))
    for _ in range(2):
        parts = region.put(values)
        taken = region.take(parts)
        assert taken[0] == b"abc" and type(taken[0]) is bytes and taken[2] == "text" and taken[3] == b""
        assert all(np.array_equal(a, b) for a, b in zip(taken, values) if isinstance(a, np.ndarray))
        region.put((b"xyz" * 1000,))
        assert taken[1].tolist() == list(range(7)), "what was taken stays"
    region.close()


def test_a_forked_child_leaves_its_parents_workers_alone():
    processes = _processes.Processes(2)
    op = in_processes(functions.place_of)
    shipped = _workers.ship(op, 0)
    pid = int(processes.call(shipped, b"", (0, 0, 0)))
    child = os.fork()
    if child == 0:
        processes.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert int(processes.call(shipped, b"", (0, 0, 0))) == pid
    processes.close()
    wait_until_gone([pid])


@contextlib.contextmanager
def a_forked_child():
    """Has copies of all pipes while it lives."""
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_workers_end_at_once_though_a_forked_child_has_their_pipes():
    processes = _processes.Processes(3)
    shipped = _workers.ship(in_processes(functions.sleeps), 0)
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        pids = list(threads.map(lambda _: int(processes.call(shipped, b"", (0, 0, 0))), range(30)))
    with a_forked_child():
        began = time.monotonic()
        processes.stop()
        processes.close()
        assert time.monotonic() - began < 2
    wait_until_gone(pids)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this Python has no os.pidfd_open")
def test_workers_end_with_a_parent_that_is_killed_while_a_forked_child_lives(blobs, tmp_path):
    command = script(tmp_path, """
        import os, threading, time

        def fork():
            sys.stdin.readline()
            child = os.fork()
            if child == 0:
                time.sleep(100)
                os._exit(0)
            print("forked", child, flush=True)

        if __name__ == "__main__":
            threading.Thread(target=fork, daemon=True).start()
            read(sys.argv[1], function=worker_functions.hangs, workers="processes")
    """)
    parent = subprocess.Popen(
        [*command, str(blobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    pids = [int(parent.stdout.readline()) for _ in range(2)]
    print("fork", file=parent.stdin, flush=True)
    told, child = parent.stdout.readline().split()
    assert told == "forked"
    child = int(child)
    try:
        parent.kill()
        parent.wait()
        parent.stdin.close()
        parent.stdout.close()
        wait_until_gone(pids)
        assert is_running(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_call_that_does_not_return_does_not_hold_up_the_end(blobs):
    with leat.Loader(blobs, batch_size=10, train=True, threads=2, ops=[in_processes(functions.hangs)]) as loader:
        raised: list[BaseException] = []
        taker = threading.Thread(target=lambda: raised.extend(raised_of(loader)), daemon=True)
        taker.start()
        deadline = time.monotonic() + 30
        while len(busy := list(loader._workers._processes._busy)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        pids = [worker._process.pid for worker in busy]
        began = time.monotonic()
    assert len(pids) == 2 and time.monotonic() - began < 5
    taker.join(10)
    assert not taker.is_alive()
    assert len(raised) == 1 and "the loader is closed" in str(raised[0])
    wait_until_gone(pids)


def raised_of(loader):
    """The error that ends the batches of a loader that is closed meanwhile."""
    with pytest.raises(leat.Error) as raised:
        list(loader)
    return [raised.value]


def test_a_call_that_the_end_ends_says_so_and_blames_no_memory():
    processes = _processes.Processes(1)
    shipped = _workers.ship(in_processes(functions.hangs), 0)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        call = threads.submit(processes.call, shipped, b"", (0, 0, 0))
        while not processes._busy:  # The test's alarm ends it.
            time.sleep(0.01)
        processes.stop()
        with pytest.raises(leat.Error, match=r"^Python\(hangs, per='sample'\): the loader is closed"):
            call.result()
    processes.close()


def test_there_are_no_more_workers_than_can_compute_and_callers_wait_for_one():
    processes = _processes.Processes(2)
    shipped = _workers.ship(in_processes(functions.heavy), 0)
    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        pids = list(threads.map(lambda _: int(processes.call(shipped, b"", (0, 0, 0))), range(30)))
    assert len(set(pids)) == 2
    processes.close()
    wait_until_gone(pids)


@pytest.mark.parametrize(("threads", "local_ranks", "expected"), [(8, 1, 8), (8, 4, 2), (1, 4, 1), (0, 1, 6), (0, 2, 3)])
def test_ranks_of_a_node_share_the_workers(monkeypatch, threads, local_ranks, expected):
    monkeypatch.setattr(_workers._native, "launched", lambda: (4, 0, local_ranks))
    monkeypatch.setattr(_workers._native, "usable_cores", lambda: 6)
    assert _workers._most_workers(threads) == expected


def test_a_worker_that_died_between_two_calls_is_replaced():
    processes = _processes.Processes(2)
    shipped = _workers.ship(in_processes(functions.place_of), 0)
    pid = int(processes.call(shipped, b"", (0, 0, 0)))
    os.kill(pid, signal.SIGKILL)
    wait_until_gone([pid])
    with pytest.raises(leat.Error, match="SIGKILL"):
        processes.call(shipped, b"", (0, 0, 0))
    assert int(processes.call(shipped, b"", (0, 0, 0))) != pid
    processes.close()
