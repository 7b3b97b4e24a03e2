"""leat.Loader as a training loop meets it."""

from __future__ import annotations

import gc
import json
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch.distributed

import leat
from leat.ops import Cast, DecodeImage, Resize
from small_datasets import CLASSES, encoded, make_blobs, make_pictures, pixels, run_python, write

N = 60
DECODE = [DecodeImage(layout="HWC")]
DEFAULTS = {"global_batch_size": 8, "shuffle": True, "batch": "dict", "output": "numpy", "ops": DECODE}


# The pictures do not come; their catalogue does.
NEVER = "".join(f"after 0 GET {name}/ slow:60s x*\n" for name in CLASSES)


def load(folder, **options):
    return leat.Loader(folder, **{**DEFAULTS, **options})


def ids_of(batches):
    return [int(i) for batch in batches for i in batch["index"]]


def _torch_is_from(*version: int) -> bool:
    import torch

    return tuple(map(int, torch.__version__.split(".")[:2])) >= version


# Seconds that "at once" may take on a busy machine. Something that is not ended
# takes 60.
AT_ONCE = 20


def threads_of_leat() -> list[str]:
    names = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            pass  # It has just ended.
    return [name for name in names if name.startswith("leat")]


def are_threads(expected: list[str]) -> bool:
    """Soon: one that was joined may be seen for a moment more."""
    end = time.monotonic() + AT_ONCE
    while sorted(threads_of_leat()) != sorted(expected):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


# --- batches ----------------------------------------------------------------


def test_a_batch_holds_the_samples_in_their_order(pictures):
    with load(pictures, shuffle=False, ids=True) as loader:
        batches = list(loader)

    assert [len(b["index"]) for b in batches] == [8] * 7 + [4]
    assert ids_of(batches) == list(range(N))
    first = batches[0]
    assert list(first) == ["image", "label", "index", "key"]
    assert first["image"].dtype == np.uint8 and first["image"].shape == (8, 10, 12, 3)
    assert first["label"].dtype == np.int64 and first["index"].dtype == np.int64
    assert first["key"] == [f"ant/{i:05}.png" for i in range(8)]
    for batch in batches:
        for row, number in enumerate(batch["index"]):
            np.testing.assert_array_equal(batch["image"][row], pixels(number))
            assert CLASSES[batch["label"][row]] == batch["key"][row].split("/")[0]


def test_a_shuffled_epoch_is_a_permutation_and_the_next_another(pictures):
    with load(pictures, ids=True, drop_last=False) as loader:
        first, second = ids_of(loader), ids_of(loader)

    assert sorted(first) == sorted(second) == list(range(N))
    assert first != second and first != list(range(N))
    with load(pictures, ids=True, drop_last=False) as again:
        assert ids_of(again) == first


def test_fields_come_as_asked_and_in_that_order(pictures):
    with load(pictures, fields=("label", "index", "image"), batch="tuple") as loader:
        label, index, image = next(iter(loader))
    np.testing.assert_array_equal(image[3], pixels(index[3]))
    assert label.shape == (8,)

    with load(pictures, fields=["key"]) as loader:
        batch = next(iter(loader))
        assert list(batch) == ["key"]
        assert loader.stats()[0]["requests"]["get"] == 0  # Nothing has to be read.


@pytest.mark.parametrize("fields", [["picture"], ["label", "label"], "label"])
def test_fields_that_cannot_be_are_refused(pictures, fields):
    with pytest.raises(leat.InvalidArgument, match="fields"):
        load(pictures, fields=fields)


def test_bytes_come_ragged(pictures):
    with load(pictures, ops=[], shuffle=False, ids=True) as loader:
        batch = next(iter(loader))

    data = batch["data"]
    assert isinstance(data, leat.Ragged) and len(data) == 8
    assert data.values.dtype == np.uint8 and data.offsets.dtype == np.int64
    expected = [(pictures / key).read_bytes() for key in batch["key"]]
    assert data.tolist() == expected
    assert bytes(data[-1]) == expected[-1]
    with pytest.raises(IndexError):
        data[8]


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_ragged_bytes_are_padded(pictures, output):
    if output == "torch":
        pytest.importorskip("torch")
    with load(pictures, ops=[], output=output) as loader:
        data = next(iter(loader))["data"]
    samples = data.tolist()
    longest = max(map(len, samples))
    for padded, width, fill in ((data.pad(), longest, b"\0"),
                                (data.pad(longest + 3, value=9), longest + 3, b"\t")):
        assert tuple(padded.shape) == (8, width) and type(padded) is type(data.values)
        assert [bytes(np.asarray(row)) for row in padded] == [s.ljust(width, fill) for s in samples]
    with pytest.raises(leat.InvalidArgument, match=f"to={longest}"):
        data.pad(longest - 1)
    if output == "torch" and _torch_is_from(2, 5):
        assert [bytes(t.numpy()) for t in data.to_nested().unbind()] == samples


def test_shapes_that_differ_are_refused_naming_both_keys(tmp_path):
    make_pictures(tmp_path, 6)
    write(tmp_path / "cat/00005.png", encoded(pixels(5, width=13)))
    with load(tmp_path, global_batch_size=6, shuffle=False) as loader:
        with pytest.raises(leat.InvalidArgument) as caught:
            next(iter(loader))
    message = str(caught.value)
    assert "cat/00005.png" in message and "ant/00000.png" in message
    assert "Resize" in message


def test_torch_output(pictures):
    torch = pytest.importorskip("torch")
    with load(pictures, output="torch", ops=[*DECODE, Cast("float32")], shuffle=False) as loader:
        batch = next(iter(loader))
    assert batch["image"].dtype == torch.float32 and batch["image"].shape == (8, 10, 12, 3)
    assert batch["label"].dtype == torch.int64
    np.testing.assert_allclose(batch["image"][2].numpy() * 255, pixels(2), atol=1e-4)

    with load(pictures, output="torch", ops=[], drop_last="pad", global_batch_size=50,
              fields=("data", "valid")) as loader:
        first, last = loader
    assert isinstance(first["data"].values, torch.Tensor)
    assert last["valid"].dtype == torch.bool
    assert last["valid"].tolist() == [True] * 10 + [False] * 40


# --- the length and the tail of an epoch ------------------------------------


def test_what_is_dropped_is_the_last_incomplete_step(pictures):
    with load(pictures, ids=True) as loader:
        assert len(loader) == 7
        seen = ids_of(loader)
    assert len(seen) == len(set(seen)) == 56


def test_a_kept_tail_is_dealt_evenly(pictures):
    seen, lengths = [], []
    for rank in range(3):
        with load(pictures, global_batch_size=9, ids=True, drop_last=False, rank=rank,
                  world_size=3) as loader:
            batches = list(loader)
            assert len(batches) == len(loader) == 7
            seen += ids_of(batches)
            lengths.append([len(b["index"]) for b in batches])
    assert sorted(seen) == list(range(N))
    assert lengths == [[3] * 6 + [2]] * 3


@pytest.mark.parametrize(("world_size", "expected"), [
    (4, [(2, [14, 1])] * 4),
    (8, [(2, [7, 1])] * 4 + [(1, [7])] * 4),  # Four samples are no step for eight.
])
def test_a_rank_without_a_sample_in_the_tail_has_one_batch_less(pictures, world_size, expected):
    lengths = []
    for rank in range(world_size):
        with load(pictures, global_batch_size=56, drop_last="join", rank=rank,
                  world_size=world_size, ids=True) as loader:
            lengths.append((len(loader), [len(b["index"]) for b in loader]))
    assert lengths == expected


def test_padding_repeats_the_first_positions_and_says_so(pictures):
    with load(pictures, drop_last="pad", ids=True, global_batch_size=8) as loader:
        batches = list(loader)
    ids, valid = ids_of(batches), np.concatenate([b["valid"] for b in batches])
    assert len(ids) == 64 and sorted(ids[:N]) == list(range(N))
    assert ids[N:] == ids[:4]
    assert valid.dtype == bool and valid.tolist() == [True] * N + [False] * 4


def test_padding_leaves_the_content_hash_alone(pictures):
    hashes = []
    for drop_last in (False, "pad"):
        with load(pictures, drop_last=drop_last) as loader:
            list(loader)
            hashes.append(loader.stats()[0]["content_hash"])
    assert hashes[0] == hashes[1]


def test_length_and_remaining(pictures):
    with load(pictures) as loader:
        assert (len(loader), loader.remaining) == (7, 7)
        batches = iter(loader)
        for left in range(6, -1, -1):
            next(batches)
            assert loader.remaining == left
        assert next(batches, None) is None
        assert (len(loader), loader.remaining) == (7, 0)
        next(iter(loader))
        assert loader.remaining == 6


# --- epochs and iterators ---------------------------------------------------


def test_iter_starts_the_next_epoch_once_a_batch_was_delivered(pictures):
    with load(pictures, ids=True) as loader:
        iter(loader)  # Delivers nothing, so the next one is the same epoch.
        first = ids_of([next(iter(loader))])
        second = ids_of([next(iter(loader))])  # Left in the middle.
        assert [e["epoch"] for e in loader.stats()] == [0, 0, 1]
    with load(pictures, ids=True) as loader:
        epochs = [ids_of(loader) for _ in range(2)]
    assert first == epochs[0][:8] and second == epochs[1][:8]


def test_a_second_iterator_ends_the_first(pictures):
    with load(pictures) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises(leat.InvalidArgument, match="iterator"):
            next(first)
        assert len(list(second)) == 7


def test_an_iterator_at_its_end_stays_there(pictures):
    with load(pictures) as loader:
        batches = iter(loader)
        assert len(list(batches)) == 7
        assert next(batches, None) is None
        next(iter(loader))
        assert next(batches, None) is None  # Also after another has begun.


def test_peek_moves_nothing(pictures):
    with load(pictures, ids=True) as loader:
        peeked = loader.peek()
        assert loader.state_dict()["position"] == 0
        peeked["image"][:] = 0  # Its own memory.
        again = loader.peek()
        batches = list(loader)
        assert peeked["index"].tolist() == again["index"].tolist()
        assert again["index"].tolist() == batches[0]["index"].tolist()
        np.testing.assert_array_equal(again["image"], batches[0]["image"])
        assert len(batches) == 7 and [e["epoch"] for e in loader.stats()] == [0]
        assert loader.stats()[0]["requests"]["get"] == 56


def test_peek_in_the_middle_and_at_the_end(pictures):
    with load(pictures, ids=True) as loader:
        batches = iter(loader)
        next(batches)
        peeked = loader.peek()
        assert peeked["index"].tolist() == next(batches)["index"].tolist()
        list(batches)
        assert loader.peek() is None


def test_after_an_error_peek_raises_it_too_and_the_state_leads_back_to_its_batch(pictures):
    with load(pictures, ids=True) as loader:
        right = list(loader)
    of_third, is_well = np.array(right[2]["image"][5]), False

    def broken(image):
        if not is_well and np.array_equal(image, of_third):
            raise ValueError("this picture is broken")
        return image

    with load(pictures, ids=True, ops=[*DECODE, leat.ops.Python(broken)]) as loader:
        batches = iter(loader)
        assert ids_of([next(batches), next(batches)]) == ids_of(right[:2])
        with pytest.raises(ValueError, match="this picture is broken"):
            next(batches)
        time.sleep(0.1)  # The engine makes the batches after it.
        with pytest.raises(ValueError, match="this picture is broken"):
            loader.peek()
        is_well = True
        loader.load_state_dict(loader.state_dict())
        assert ids_of(loader) == ids_of(right[2:])


def test_set_epoch_decides(pictures):
    with load(pictures, ids=True) as loader:
        epochs = [ids_of(loader) for _ in range(3)]
        loader.set_epoch(1)
        assert ids_of(loader) == epochs[1]
        loader.set_epoch(0)
        assert loader.peek()["index"].tolist() == epochs[0][:8]
        assert ids_of(loader) == epochs[0]
        batches = iter(loader)
        next(batches)
        loader.set_epoch(2)
        assert ids_of(loader) == epochs[2]
        assert ids_of(loader) not in epochs  # On with 3.
        for epoch in range(2):  # As DistributedSampler is used.
            loader.set_epoch(epoch)
            assert ids_of(loader) == epochs[epoch]


def test_a_known_number_of_epochs_reads_nothing_past_the_end(pictures, serve):
    served = serve(pictures)
    with served.loader(global_batch_size=8, drop_last=False, ops=DECODE, epochs=2) as loader:
        served.reset()
        for _ in range(2):
            assert len(list(loader)) == 8
        time.sleep(0.1)
        counters = served.counters()
        # Samples that were read ahead belong to the later epoch, and the first
        # counts them as such.
        per_epoch = [e["requests"] for e in loader.stats()]
    assert counters["get"] == 2 * N
    assert [e["get"] for e in per_epoch] == [N, N]
    assert per_epoch[1]["ahead"] == 0


def test_an_unknown_number_of_epochs_reads_at_most_a_window_ahead(pictures, serve):
    served = serve(pictures)
    with served.loader(global_batch_size=8, drop_last=False, ops=DECODE,
                       max_in_flight=10) as loader:
        served.reset()
        list(loader)
        time.sleep(0.3)
        assert N < served.counters()["get"] <= N + 10
        assert 0 < loader.stats()[0]["requests"]["ahead"] <= 10
        list(loader)
        assert loader.stats()[1]["requests"]["get"] == N


# --- state ------------------------------------------------------------------


def test_state_is_a_few_json_values(pictures):
    with load(pictures) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
    assert json.loads(json.dumps(state)) == state
    assert (state["epoch"], state["position"], state["global_batch_size"]) == (0, 16, 8)
    assert len(json.dumps(state)) < 400


@pytest.mark.parametrize("taken", [0, 1, 3, 7])
@pytest.mark.parametrize("shuffle", [True, False])
def test_resume_gives_exactly_the_rest(pictures, taken, shuffle):
    options = {"ids": True, "shuffle": shuffle, "seed": 5}
    with load(pictures, **options) as loader:
        whole = [ids_of(loader), ids_of(loader)]
        whole_hash = [int(e["content_hash"], 16) for e in loader.stats()]
    with load(pictures, **options) as loader:
        batches = iter(loader)
        head = ids_of(next(batches) for _ in range(taken))
        state = loader.state_dict()
        head_hash = int(loader.stats()[0]["content_hash"], 16)
    with load(pictures, **options) as loader:
        loader.load_state_dict(json.loads(json.dumps(state)))
        length = len(loader)
        assert loader.remaining == (length if taken == length else length - taken)
        loader.set_epoch(state["epoch"])  # Changes nothing: it is that epoch.
        assert loader.peek() is not None
        loader.set_epoch(state["epoch"])
        rest = ids_of(loader)
        assert len(loader) == length
        if taken < length:
            assert head + rest == whole[0]
            assert ids_of(loader) == whole[1]
            rest_hash = int(loader.stats()[0]["content_hash"], 16)
            assert (head_hash + rest_hash) % 2**128 == whole_hash[0]
        elif state["epoch"] == 1:  # Nothing was left of it.
            assert rest == whole[1]
        else:  # A kept tail was.
            assert head + rest == whole[0]


def test_a_loader_can_go_back_to_a_state_of_its_own(pictures):
    with load(pictures, ids=True) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        expected = ids_of(batches)
        loader.load_state_dict(state)
        assert ids_of(loader) == expected
        loader.load_state_dict(state)
        loader.set_epoch(4)
        assert loader.state_dict()["epoch"] == 4 and loader.state_dict()["position"] == 0


def test_a_batch_that_was_not_delivered_is_not_in_the_state(pictures):
    with load(pictures, ids=True) as loader:
        batches = iter(loader)
        next(batches)
        time.sleep(0.1)  # The rest has been made by now.
        loader.peek()
        assert loader.state_dict()["position"] == 8


@pytest.mark.parametrize(("changes", "says"), [
    ({"seed": 9}, "seed"),
    ({"shuffle": "none"}, "shuffle"),
    ({"samples": 61}, "samples"),
    ({"catalogue": "00"}, "catalogue"),
    ({"position": 61}, "past the end"),
    ({"position": -8}, "position"),
    ({"position": 2.5}, "position"),
    ({"epoch": "0"}, "epoch"),
    ({"leat_state": 99}, "version 99"),
    ({"global_batch_size": 0}, "global_batch_size"),
])
@pytest.mark.parametrize("batch", ["global_batch_size", "batch_size"])
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(pictures, changes, says, batch):
    with leat.Loader(pictures, ops=DECODE, shuffle=True, ids=True, **{batch: 8}) as loader:
        next(iter(loader))
        before = loader.state_dict()
        with pytest.raises(leat.InvalidArgument, match=says):
            loader.load_state_dict({**before, **changes})
        with pytest.raises(leat.InvalidArgument):
            loader.load_state_dict({})
        assert loader.state_dict() == before
        assert len(list(loader)) == 7


def test_a_state_whose_last_step_is_too_short_for_these_ranks_leaves_the_batch_size_as_it_was(pictures):
    with load(pictures, global_batch_size=10, shuffle=False) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with load(pictures, shuffle=False) as loader:
        loader.load_state_dict(state)
        state = loader.state_dict()
    assert (state["position"], state["global_batch_size"]) == (10, 8)
    options = {"global_batch_size": None, "batch_size": 5, "shuffle": False, "rank": 0, "world_size": 4}
    with load(pictures, **options, ids=True) as loader:
        before = loader.state_dict()
        with pytest.raises(leat.InvalidArgument, match="2 of 4 ranks would get 7 batches and the others 6"):
            loader.load_state_dict(state)
        assert loader.state_dict() == before and len(loader) == 3
        assert [len(batch["index"]) for batch in loader] == [5, 5, 5]


# --- memory -----------------------------------------------------------------


def test_batches_are_writable_distinct_and_outlive_the_loader(pictures):
    loader = load(pictures, shuffle=False, ids=True)
    batches = list(loader)
    loader.close()
    del loader
    gc.collect()
    for value, batch in enumerate(batches):
        for array in (batch["image"], batch["label"], batch["index"]):
            assert array.flags.writeable and array.flags.c_contiguous
        batch["image"][:] = value
        batch["label"][:] = value
    for value, batch in enumerate(batches):
        assert (batch["image"] == value).all() and (batch["label"] == value).all()
        assert batch["index"].tolist() == list(range(8 * value, min(N, 8 * value + 8)))


def test_memory_is_used_again_once_the_last_view_is_gone(pictures):
    with load(pictures) as loader:
        for _ in range(3):
            for batch in loader:
                view = batch["image"][2:4, :5]
                del batch
                kept = view.copy()
                np.testing.assert_array_equal(view, kept)
                del view
        fresh = loader.metrics()["leat_pipeline_fresh_slots_total"]
        batches = loader.metrics()["leat_pipeline_batches_total"]
    assert batches == 21
    assert fresh < 2 * 21  # Two arrays a batch, had nothing been used again.


def test_a_view_keeps_its_memory(pictures):
    with load(pictures, shuffle=False) as loader:
        view = next(iter(loader))["image"][0]
        for _ in range(3):
            for batch in loader:
                batch["image"][:] = 0
        np.testing.assert_array_equal(view, pixels(0))


def test_views_may_die_on_any_thread_after_the_loader(pictures):
    loader = load(pictures)
    batches = list(loader)
    metrics = loader._native  # Counts on after close.
    loader.close()
    del loader
    threads = [threading.Thread(target=batches.pop) for _ in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert metrics.metrics()["leat_pipeline_slot_bytes"] == 0


def test_a_hundred_batches_held_are_all_right_and_warned_of_once(pictures, caplog):
    with load(pictures, global_batch_size=4, ids=True) as loader:
        held = []
        while len(held) < 100:
            held += list(loader)
        for batch in held:
            for row, number in enumerate(batch["index"]):
                np.testing.assert_array_equal(batch["image"][row], pixels(number))
    assert len({batch["image"].ctypes.data for batch in held}) == len(held)
    assert caplog.text.count("batches are being kept") == 1


# --- ends -------------------------------------------------------------------


def test_close_ends_every_thread_and_may_be_called_twice(pictures, serve):
    served = serve(pictures, fault_script="after 20 GET * slow:60s x*")
    assert are_threads([])
    loader = served.loader(global_batch_size=8, max_in_flight=16, ops=DECODE, shuffle=False)
    batches = iter(loader)
    batch = next(batches)
    assert threads_of_leat()
    begun = time.monotonic()
    loader.close()
    loader.close()
    assert time.monotonic() - begun < AT_ONCE
    assert are_threads([])
    assert batch["image"].shape == (8, 10, 12, 3)
    for use in (lambda: next(batches), lambda: iter(loader), loader.peek,
                lambda: loader.set_epoch(1)):
        with pytest.raises(leat.Error, match="closed"):
            use()
    assert loader.state_dict()["position"] == 8  # Can still be asked.
    assert len(loader) == 8 and loader.stats()[0]["samples"] == 8


def test_garbage_collection_ends_every_thread(pictures):
    assert are_threads([])
    loader = load(pictures)
    iterator = iter(loader)
    next(iterator)
    del loader  # The iterator still needs it.
    next(iterator)
    assert threads_of_leat()
    del iterator
    gc.collect()
    assert are_threads([])


def test_construction_reads_nothing_but_the_catalogue(pictures, serve):
    served = serve(pictures)
    served.loader(global_batch_size=8).close()  # Lists, once.
    served.reset()
    loader = served.loader(global_batch_size=8)
    time.sleep(0.1)
    counters = served.counters()
    loader.close()
    assert counters["list"] <= 1  # Whether what was kept still holds.
    assert counters["get"] <= 1  # A published catalogue, if any.


def test_close_from_another_thread_ends_a_wait(pictures, serve):
    loader = serve(pictures, fault_script=NEVER).loader(global_batch_size=8)
    caught = []

    def wait():
        try:
            next(iter(loader))
        except leat.Error as error:
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.3)
    begun = time.monotonic()
    loader.close()
    waiter.join(timeout=AT_ONCE)
    assert time.monotonic() - begun < AT_ONCE and not waiter.is_alive()
    assert "closed" in str(caught[0])


def test_two_threads_may_take_turns(pictures):
    with load(pictures, ids=True) as loader:
        for _ in range(5):
            batches, seen, failed = iter(loader), [], []

            def take():
                try:
                    for batch in batches:
                        seen.extend(batch["index"].tolist())
                except BaseException as error:  # noqa: BLE001
                    failed.append(error)

            threads = [threading.Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failed
            assert len(seen) == len(set(seen)) == 56


def test_pickling_is_refused(pictures):
    with load(pictures) as loader:
        with pytest.raises(TypeError, match="each process"):
            pickle.dumps(loader)


FORK = """
import os, sys, leat
loader = leat.Loader(sys.argv[1], global_batch_size=8, shuffle=True, storage_options={"endpoint_url": sys.argv[2], "no_sign_request": True}, max_in_flight=8)
batches = iter(loader)
next(batches)  # The next ones are under way for a while.
pid = os.fork()
if pid == 0:
    told = []
    for use in (lambda: next(batches), lambda: iter(loader), loader.peek,
                lambda: loader.set_epoch(3),
                lambda: loader.load_state_dict(loader.state_dict())):
        try:
            use()
        except leat.Error as error:
            told.append(str(error))
    if len(told) != 5 or not all("fork" in text and "spawn" in text for text in told):
        os._exit(3)
    if sys.argv[3] == "close":
        loader.close()
    elif sys.argv[3] == "delete":
        del loader, batches
    sys.exit(7)  # Through atexit.
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
assert len(list(batches)) == 6  # The parent's goes on.
print("fine")
"""


@pytest.mark.parametrize("child", ["close", "delete", "exit"])
def test_a_forked_child_raises_instead_of_hanging(pictures, serve, child):
    served = serve(pictures, latency="150ms")
    done = run_python(FORK, served.url, served.bucket.url, child, timeout=30)
    assert done.stdout == "fine\n", done.stderr


FORK_OF_A_BUSY_PARENT = """
import os, signal, sys, threading, leat
loader = leat.Loader(sys.argv[1], global_batch_size=8, shuffle=True, rank=0, world_size=1)
is_over = threading.Event()
def iterate():
    while not is_over.is_set():
        list(loader)
thread = threading.Thread(target=iterate)
thread.start()
uses = (loader.state_dict, lambda: len(loader), lambda: loader.remaining, loader.stats, loader.recent, loader.metrics,
        loader.ledger, loader.decisions, loader.explain, lambda: repr(loader))
codes = []
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # Ends a child that waits for a lock of the parent's threads.
        told = []
        for use in uses:
            try:
                use()
            except leat.Error as error:
                told.append("fork" in str(error) and "spawn" in str(error))
        os._exit(7 if told == [True] * len(uses) else 3)
    _, status = os.waitpid(pid, 0)
    codes.append(os.waitstatus_to_exitcode(status))
    if codes[-1] != 7:
        break
is_over.set()
thread.join()
print(set(codes))
"""


def test_a_forked_child_raises_whatever_the_parents_threads_held(pictures):
    done = run_python(FORK_OF_A_BUSY_PARENT, pictures, timeout=90)
    assert done.stdout == "{7}\n", done.stderr


EXIT = """
import sys, threading, time, leat
loader = leat.Loader(sys.argv[1], global_batch_size=8, storage_options={"endpoint_url": sys.argv[2], "no_sign_request": True}, max_in_flight=16, shuffle=False)
batches = iter(loader)
next(batches)
if sys.argv[3] == "raise":
    print(time.time(), flush=True)
    raise RuntimeError("as training scripts do")
if sys.argv[3] == "thread":
    threading.Thread(target=lambda: list(batches), daemon=True).start()
    time.sleep(0.2)
print(time.time())
"""


@pytest.mark.parametrize("how", ["plain", "raise", "thread"])
def test_the_interpreter_exits_at_once(pictures, serve, how):
    served = serve(pictures, fault_script="after 20 GET * slow:60s x*")
    done = run_python(EXIT, served.url, served.bucket.url, how, timeout=80, SPDLOG_LEVEL="leat=warn")
    ended = time.time()
    assert ended - float(done.stdout) < AT_ONCE
    if how == "raise":
        assert done.returncode == 1 and "as training scripts do" in done.stderr
        return
    assert done.returncode == 0
    if how == "thread":  # It is told, and says so as far as Python lets it.
        assert done.stderr == "" or done.stderr.startswith("Exception in thread")
        assert "terminate" not in done.stderr and "Fatal" not in done.stderr
    else:
        assert done.stderr == ""


INTERRUPT = """
import sys, time, leat
if sys.argv[3] == "dataset":
    print("ready", flush=True)
dataset = leat.Dataset(sys.argv[1], refresh="always" if sys.argv[3] == "dataset" else "never",
                       storage_options={"endpoint_url": sys.argv[2], "no_sign_request": True})
loader = leat.Loader(dataset, global_batch_size=8, shuffle=True)
try:
    if sys.argv[3] == "peek":
        print("ready", flush=True)
        loader.peek()
    batches = iter(loader)
    print("ready", flush=True)
    next(batches)
finally:
    print("interrupted", time.time(), flush=True)
"""


@pytest.mark.parametrize("where", ["next", "peek", "dataset"])
def test_ctrl_c_ends_a_wait(pictures, serve, where):
    never = "after 0 LIST * slow:60s x*" if where == "dataset" else NEVER
    served = serve(pictures, fault_script=never)
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPT, served.url, served.bucket.url, where],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            sent = time.time()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=2 * AT_ONCE)
        finally:
            process.kill()
    assert time.time() - sent < AT_ONCE
    assert "KeyboardInterrupt" in err


# --- options ----------------------------------------------------------------


@pytest.mark.parametrize(("options", "says"), [
    ({"global_batch_size": 0}, "batch size is 0"),
    ({"global_batch_size": None}, "batch_size"),
    ({"global_batch_size": 8, "batch_size": 8}, "give one"),
    ({"global_batch_size": -1}, "global_batch_size"),
    ({"global_batch_size": 7, "rank": 0, "world_size": 2}, "7"),
    ({"global_batch_size": 61}, "drop_last"),
    ({"global_batch_size": 61, "rank": 0, "world_size": 61}, "world_size"),
    ({"rank": 2, "world_size": 2}, "rank"),
    ({"rank": 0, "world_size": 0}, "world_size"),
    ({"rank": 0}, "world_size"),
    ({"shuffle": "fully"}, "shuffle"),
    ({"shuffle": None}, "shuffle"),
    ({"on_error": "ignore"}, "on_error"),
    ({"batch": "list"}, "batch"),
    ({"output": "tensorflow"}, "output"),
    ({"memory": "lots"}, "lots"),
    ({"memory": -1}, "-1"),
    ({"memory": 0}, "memory"),
    ({"threads": 0}, "threads"),
    ({"max_in_flight": 0}, "max_in_flight"),
    ({"drop_last": "keep"}, "drop_last"),
    ({"ops": [Resize(4)]}, "(?i)resize|decode"),
    ({"ops": ["decode_image"]}, "leat.ops"),
])
def test_an_option_that_cannot_be_is_refused(pictures, options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        load(pictures, **options)
    assert are_threads([])


def test_the_launcher_says_who_we_are(pictures, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with load(pictures, global_batch_size=9) as loader:
        assert (loader.rank, loader.world_size) == (1, 3)
    with load(pictures, rank=0, world_size=1) as loader:
        assert (loader.rank, loader.world_size) == (0, 1)


def test_who_we_are_needs_no_launcher_that_says_it(pictures, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")  # As Lightning's launcher: without RANK.
    monkeypatch.setenv("LOCAL_RANK", "1")
    with load(pictures, rank=1, world_size=3, global_batch_size=9) as loader:
        assert (loader.rank, loader.world_size) == (1, 3)
    with pytest.raises(leat.InvalidArgument, match="WORLD_SIZE is set but RANK is not"):
        load(pictures)


def test_torch_distributed_says_who_we_are(pictures, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with load(pictures, global_batch_size=8) as loader:
        assert (loader.rank, loader.world_size) == (1, 2)
    with load(pictures, rank=0, world_size=1) as loader:
        assert (loader.rank, loader.world_size) == (0, 1)


def test_stats_split_the_wait_exactly(pictures, serve):
    served = serve(pictures, latency="200ms")
    with served.loader(global_batch_size=8, ops=DECODE) as loader:
        list(loader)
        epoch = loader.stats()[0]
    assert epoch["wait_seconds"] == pytest.approx(sum(epoch["stalls"].values()), abs=1e-9)
    assert epoch["stalls"]["storage"] >= 0.05
    assert 0.2 <= epoch["first_batch_seconds"] <= epoch["seconds"]
    assert epoch["samples"] == 56 and epoch["bytes_read"] > 56 * 300


def test_the_last_minute_is_told_over_epochs(pictures):
    with load(pictures, global_batch_size=8, epochs=2) as loader:
        list(loader), list(loader)
        told, epochs = loader.recent(), loader.stats()
    assert told["samples"] == 2 * 56
    assert 0 < told["seconds"] <= 60  # Both epochs are in it, unless they took longer.
    for cause, seconds in told["stalls"].items():
        assert seconds == pytest.approx(sum(epoch["stalls"][cause] for epoch in epochs), abs=1e-9)
    assert told["wait_seconds"] == pytest.approx(sum(told["stalls"].values()), abs=1e-9)


def test_each_epoch_says_what_it_waited_for(tmp_path):
    (tmp_path / "b").mkdir()
    for number in range(24):
        (tmp_path / "b" / f"{number:02}").write_bytes(b"x" * 100)
    with leat.testing.Bucket(tmp_path, latency="60ms") as bucket:
        loader = leat.Loader("s3://b", storage_options={"endpoint_url": bucket.url, "no_sign_request": True}, batch_size=2, max_in_flight=2, shuffle=False)
        for _ in loader:
            time.sleep(0.02)
        (epoch,) = loader.stats()
        loader.close()

    # Two samples take 60 ms, and training 20.
    assert "storage, window capped at 2 by max_in_flight=" in epoch["verdict"]
    assert epoch["late_with_full_window"] > epoch["late_batches"] / 2


def test_stats_has_the_last_epochs_of_a_loader_that_runs_for_ever(tmp_path):
    make_blobs(tmp_path, 2, 10)
    with leat.Loader(tmp_path, batch_size=2, shuffle=False) as loader:
        for _ in range(300):
            list(loader)
        epochs = [epoch["epoch"] for epoch in loader.stats()]
        assert epochs == list(range(300 - 256, 300))
        assert loader.stats()[-1]["samples"] == 2


@pytest.mark.parametrize("options", [
    {"ids": "yes"}, {"ids": 5}, {"ids": None}, {"fields": 5}, {"fields": True}, {"ops": 5}, {"ops": None},
    {"ops": 5, "sampler": leat.TokenBudget(9)}, {"output": "torch", "pin_memory": "yes"},
    {"output": "torch", "device": "cudaa"}, {"output": "torch", "device": "cuda:x"}, {"output": "torch", "device": 2.5},
    {"output": "torch", "device": -1}, {"output": "torch", "device": "meta"},
], ids=str)  # fmt: skip
def test_a_value_that_cannot_be_is_named(pictures, options):
    if options.get("output") == "torch":
        pytest.importorskip("torch")
    name = [each for each in options if each not in ("output", "sampler")][0]
    with pytest.raises(leat.InvalidArgument, match=rf"{name}=['\"]?{re.escape(str(options[name]))}"):
        leat.Loader(pictures, **{"batch_size": 2, "train": False, **options})


@pytest.mark.parametrize(("name", "value"), [("disk", 5), ("disk", b"x"), ("disk", ["a"]), ("shared", "x"), ("shared", 1)])
def test_a_value_that_a_cache_cannot_have_is_named(name, value):
    with pytest.raises(leat.InvalidArgument, match=rf"{name}={re.escape(repr(value))}; it is"):
        leat.Cache(**{"ram": "1MiB", name: value})


@pytest.mark.parametrize("value", [5, [5], b"x"], ids=str)
@pytest.mark.parametrize("name", ["include", "exclude", "extensions", "classes"])
def test_a_value_that_a_dataset_cannot_have_is_named(pictures, name, value):
    with pytest.raises(leat.InvalidArgument, match=rf"{name}={re.escape(repr(value))}; it is"):
        leat.Dataset(pictures, **{name: value})
