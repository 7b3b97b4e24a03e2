"""Silence that a loader never keeps: each ordinary line that would train on other data
than was meant raises, or says so.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import io
import logging
import os
import pathlib
import pickle
import random
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

import leat
from leat import _say
from leat._batches._batch import BatchDict
from leat._job import _agreement
from leat.ops import DecodeImage, Python
from small_datasets import encoded, make_pictures, make_shards, pixels, run_python, tar_of, write

torch = pytest.importorskip("torch", reason="torch is not installed")

SEQUENTIAL = list(range(60))


def load(folder, **options):
    return leat.Loader(folder, **{"batch_size": 8, **options})


def ids_of(loader) -> list[int]:
    with loader:
        return [int(i) for batch in loader for i in batch["index"]]


# --- whether it trains or reads ---------------------------------------------


def test_a_loader_is_told_whether_it_trains_or_reads(pictures):
    with pytest.raises(leat.InvalidArgument, match="train=True.*train=False.*shuffle="):
        load(pictures)
    with pytest.raises(leat.InvalidArgument, match="train='yes'; it is True or False"):
        load(pictures, train="yes")


def test_training_shuffles_and_leaves_out_the_incomplete_step(pictures):
    trained = ids_of(load(pictures, train=True, ids=True, seed=3))

    assert len(trained) == 56 and trained != sorted(trained)
    assert trained == ids_of(load(pictures, shuffle=True, ids=True, seed=3))


@pytest.mark.parametrize("options", [{"train": False}, {"shuffle": False}, {"train": True, "shuffle": False}])
def test_reading_keeps_the_order_and_every_sample(pictures, options):
    assert ids_of(load(pictures, ids=True, **options)) == SEQUENTIAL


def test_a_seed_of_none_is_refused_and_not_taken_for_0(pictures):
    with pytest.raises(leat.InvalidArgument, match="^seed=None; .* give a number, the same on all ranks"):
        load(pictures, train=True, seed=None)


def test_reading_leaves_nothing_out_even_if_shuffled(pictures):
    came = ids_of(load(pictures, ids=True, train=False, shuffle="full"))

    assert sorted(came) == SEQUENTIAL and came != SEQUENTIAL


# --- what a batch is --------------------------------------------------------


def test_named_fields_come_as_a_tuple_and_all_of_them_as_a_dict(pictures):
    with load(pictures, train=False, fields=("label", "image"), ops=[DecodeImage()]) as loader:
        labels, images = next(iter(loader))
    assert labels.shape == (8,) and images.shape == (8, 3, 10, 12)
    with load(pictures, train=False) as loader:
        assert list(next(iter(loader))) == ["data", "label"]
    with load(pictures, train=False, fields=("label",), batch="dict") as loader:
        assert list(next(iter(loader))) == ["label"]


def test_a_dict_is_not_unpacked_into_the_names_of_its_fields(pictures):
    says = r'batch="tuple"\) for a tuple.*batch\[.data.\]'
    with load(pictures, train=False) as loader:
        with pytest.raises(TypeError, match=says):
            for _data, _labels in loader:
                pass
        with pytest.raises(TypeError, match=says):
            for _step, (_data, _labels) in enumerate(loader):
                pass
        with pytest.raises(TypeError, match=says):
            _first, *_rest = next(iter(loader))


def test_a_dict_is_unpacked_by_no_traced_code_either(pictures):
    """A debugger or a coverage tool may change what the interpreter runs."""
    with load(pictures, train=False) as loader:
        sys.settrace(lambda *_: lambda *_: None)
        try:
            with pytest.raises(TypeError, match="unpacking it would give these names"):
                for _data, _labels in loader:
                    pass
        finally:
            sys.settrace(None)


@pytest.mark.parametrize("call", [
    "f(*batch)", "f(*batch, name=1)", "f(*batch, **{})", "f(1, *batch)", "f(*batch, 1, g(2), name=1)",
    "f(*(1, 2), *batch)", "f(*dict(batch), *batch)", "(1, *batch)", "f(1, *batch, 2 if f else 3)", "print(*batch)", "list(zip(*batch))", "f(*get())",
])  # fmt: skip
def test_a_dict_is_not_spread_over_arguments(call):
    def run(f, batch):
        return eval(call, {"f": f, "g": f, "batch": batch, "get": lambda: batch})

    batch = BatchDict(data=np.zeros(1), label=np.zeros(1))
    with pytest.raises(TypeError, match='a batch is a dict of "data", "label", and unpacking it'):
        run(lambda *args, **named: None, batch)


def test_a_wrapper_may_pass_a_dict_on():
    def wrapper(*args):
        return list(*args)

    assert wrapper(BatchDict(data=1, label=2)) == ["data", "label"]


def test_a_dict_says_which_fields_it_has():
    batch = BatchDict(data=1, label=2)

    with pytest.raises(KeyError) as raised:
        batch[0]
    assert str(raised.value) == (
        'a batch is a dict of "data", "label", and has no 0: give leat.Loader(…, batch="tuple") for a tuple in that order'
    )
    with pytest.raises(KeyError, match='^a batch is a dict of "data", "label", and has no \'image\'$'):
        batch["image"]
    assert batch.get(0) is None and 0 not in batch


def test_all_else_that_people_do_with_a_dict_goes_on(pictures):
    def model(data, label):
        return label

    with load(pictures, train=False) as loader:
        batch = next(iter(loader))
    assert isinstance(batch, dict)
    assert list(batch) == sorted(batch) == [name for name in batch] == ["data", "label"]
    assert {name: batch[name] for name in batch} == dict(batch) == {**batch}
    assert model(**batch) is batch["label"] and len(batch) == 2 and "label" in batch
    assert [name for name, _ in batch.items()] == list(batch.keys()) == [*batch]
    assert model(*batch.values()) is batch["label"] and [*[*batch], "index"] == ["data", "label", "index"]
    assert len({*batch}) == 2 and model(*[*batch]) == "label"
    assert type(pickle.loads(pickle.dumps(batch))) is BatchDict
    (_a, _one), (_b, _two) = batch.items()


def test_frameworks_move_a_dict_as_they_move_dicts(pictures):
    from torch.utils import _pytree
    from torch.utils.data._utils.pin_memory import pin_memory

    with load(pictures, train=False, fields=("label", "index"), batch="dict") as loader:
        batch = next(iter(loader))
    moved = {"pin": pin_memory(batch)} if torch.cuda.is_available() else {}
    moved["collate"] = torch.utils.data.default_collate([batch, batch])
    if hasattr(_pytree, "register_pytree_node"):
        moved["tree"] = _pytree.tree_map(lambda value: value + 1, batch)
        assert moved["tree"]["index"].tolist() == list(range(1, 9))
    for module, name in (("accelerate.utils", "send_to_device"),
                         ("lightning_fabric.utilities.apply_func", "move_data_to_device")):  # fmt: skip
        if importlib.util.find_spec(module.split(".")[0]) is not None:
            move = getattr(importlib.import_module(module), name)
            moved[name] = move(batch, torch.device("cpu"))
    for how, made in moved.items():
        assert list(made) == ["label", "index"], how
        assert all(isinstance(value, torch.Tensor) for value in made.values()), how


@pytest.mark.parametrize(("fields", "says"), [
    ({"label": "labels"}, r"the dataset has 'label' and no 'labels'.*\{'labels': 'label'\}"),
    ({"x": "labels"}, 'names "labels", but there are only'),
    ({"index": "label"}, "two fields the name 'index'"),
    ({"a": "label", "b": "label"}, "names a field twice"),
    ({"x": 3}, "or a dict from names in the batch to fields"),
    ("label", "it is a list of names"),
])
def test_a_name_that_cannot_be_given_is_refused(pictures, fields, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        load(pictures, train=False, fields=fields, ids=True)


def test_fields_come_under_the_names_that_a_model_takes(pictures):
    with load(pictures, train=False, fields={"labels": "label", "pixel_values": "data"}) as loader:
        assert list(next(iter(loader))) == ["labels", "pixel_values"]
        assert list(loader.peek()) == ["labels", "pixel_values"]
    seen = []
    with load(pictures, train=False, fields={"data": "data", "labels": "label"}, collate=seen.append) as loader:
        next(iter(loader))
    assert list(seen[0][0]) == ["data", "labels"]


def test_what_a_function_makes_is_renamed_or_refused_when_it_is_there(pictures):
    ops = [Python(lambda batch: {"x": batch["label"], "label": 1 - batch["label"]}, per="batch")]
    with load(pictures, train=False, ops=ops, fields={"labels": "label"}) as loader:
        assert list(next(iter(loader))) == ["x", "labels"]
    ops = [Python(lambda batch: {"x": batch["label"]}, per="batch")]
    with load(pictures, train=False, ops=ops, fields={"labels": "label"}) as loader:
        with pytest.raises(leat.InvalidArgument, match="'labels', but a batch has only: x"):
            next(iter(loader))


# --- what it is made of -----------------------------------------------------

AUTO = """
import sys, leat
if sys.argv[2] == "torch":
    import torch
with leat.Loader(sys.argv[1], batch_size=4, train=False, fields=["label"]) as loader:
    print(type(next(iter(loader))[0]).__module__, "torch" in sys.modules)
"""


@pytest.mark.parametrize(("program", "says"), [("torch", "torch True"), ("plain", "numpy False")])
def test_tensors_come_where_torch_is_imported(pictures, program, says):
    done = run_python(AUTO, pictures, program)

    assert done.stdout.strip() == says, done.stderr


def test_an_output_that_was_said_wins(pictures):
    with load(pictures, train=False, fields=["label"], output="numpy") as loader:
        assert isinstance(next(iter(loader))[0], np.ndarray)
    with load(pictures, train=False, fields=["label"]) as loader:
        assert isinstance(next(iter(loader))[0], torch.Tensor)


# --- padding ----------------------------------------------------------------


def test_what_padding_adds_comes_only_if_named(pictures):
    def fields(**options):
        with load(pictures, train=False, drop_last="pad", batch="dict", **options) as loader:
            return list(list(loader)[-1])

    assert fields() == ["data", "label"]
    assert fields(fields=("label", "valid")) == ["label", "valid"]
    assert fields(fields=("label",), ids=True) == ["label", "index", "key", "valid"]
    with pytest.raises(leat.InvalidArgument, match='names "valid", but there are only'):
        load(pictures, train=False, fields=("label", "valid"))


# --- ranks ------------------------------------------------------------------

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"

LATE = """
import datetime, os, sys, leat, torch.distributed as dist
{before}
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
{after}
try:
    seen = [int(i) for (index,) in loader for i in index]
except leat.InvalidArgument as error:
    print(error)
else:
    print(len(seen))
dist.destroy_process_group()
"""
MAKE = "loader = leat.Loader(sys.argv[1], batch_size=5, train=False, fields=['index']{place})"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_ranks(command: list[str], ranks: int, *, is_launched: bool = True, **environment) -> list[str]:
    """The output of each of `ranks` processes; gloo joins them.

    Unless `is_launched`, they know of each other as processes of mp.spawn do: the program
    sets what is needed just before it joins them.
    """
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1",
                 "GLOO_SOCKET_IFNAME": "lo", **environment,
                 ("RANK" if is_launched else "OWN_RANK"): str(rank),
                 ("WORLD_SIZE" if is_launched else "OWN_WORLD"): str(ranks)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    said = []
    try:
        for process in processes:
            out, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
            said.append(out)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return said


SPAWNED = 'os.environ.update(RANK=os.environ["OWN_RANK"], WORLD_SIZE=os.environ["OWN_WORLD"])'


def test_a_loader_made_before_the_process_group_does_not_read_all_on_every_rank(pictures):
    program = LATE.format(before=MAKE.format(place="") + "\n" + SPAWNED, after="")

    said = run_ranks(["-c", program, str(pictures)], 2, is_launched=False)

    for rank, words in enumerate(said):
        assert f"made as rank 0 of 1, and torch.distributed, which was initialised later, says rank {rank} of 2" in words
        assert "Make the loader after init_process_group()" in words


@pytest.mark.parametrize(("before", "after"), [
    (SPAWNED, MAKE.format(place="")),  # Made after.
    (SPAWNED + "\n" + MAKE.format(place=""), ""),  # Made before, and the launcher said the same.
    (SPAWNED + "\n" + MAKE.format(place=", rank=int(os.environ['OWN_RANK']), world_size=2"), ""),
])
def test_a_loader_that_knows_its_place_gets_its_half(pictures, before, after):
    program = LATE.format(before=before, after=after)

    assert run_ranks(["-c", program, str(pictures)], 2, is_launched=False) == ["30\n"] * 2


def test_ranks_of_ones_own_are_not_compared_with_torchs(pictures):
    """Two of four processes may be one data-parallel rank."""
    place = ", rank=int(os.environ['OWN_RANK']) // 2, world_size=2"
    program = LATE.format(before=SPAWNED, after=MAKE.format(place=place))

    assert run_ranks(["-c", program, str(pictures)], 4, is_launched=False) == ["30\n"] * 4


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """287 pictures: in steps of 26, one is left for the last, which two ranks cannot share."""
    folder = tmp_path_factory.mktemp("odd") / "pictures"
    make_pictures(folder, 287)
    return folder


def open_odd(odd, **options) -> list[int]:
    loaders = [leat.Loader(odd, global_batch_size=26, rank=rank, world_size=2, **options) for rank in range(2)]
    return [len(loader) for loader in loaders]


@pytest.mark.parametrize("options", [
    {"train": False}, {"shuffle": False}, {"shuffle": True, "drop_last": False}, {"train": True, "drop_last": False},
])  # fmt: skip
def test_ranks_that_would_get_unequal_epochs_are_refused(odd, options):
    with pytest.raises(leat.InvalidArgument) as caught:
        open_odd(odd, **options)
    message = str(caught.value)
    assert "1 of 2 ranks would get 12 batches and the others 11: of 287 samples, 1 remain" in message
    for remedy in ("drop_last=True", 'drop_last="pad"', 'drop_last="join"'):
        assert remedy in message


@pytest.mark.parametrize(("options", "lengths"), [
    ({"train": True}, [11, 11]),
    ({"train": False, "drop_last": True}, [11, 11]),
    ({"train": False, "drop_last": "pad"}, [12, 12]),
    ({"train": False, "drop_last": "join"}, [12, 11]),
])
def test_each_remedy_helps(odd, options, lengths):
    assert open_odd(odd, **options) == lengths


def test_unequal_batches_of_equally_many_steps_are_no_harm(pictures):
    ends = []
    for rank in range(3):
        with leat.Loader(pictures, global_batch_size=9, train=False, fields=["index"], rank=rank, world_size=3) as loader:
            ends.append([len(index) for (index,) in loader][-1])
    assert ends == [2, 2, 2]


def test_a_state_whose_rest_is_unequal_is_refused(odd):
    """Taken where steps were others: 273 samples are left, and 273 = 34 · 8 + 1."""
    with leat.Loader(odd, global_batch_size=7, shuffle=True, drop_last=False, seed=1) as loader:
        batches = iter(loader)
        for _ in range(2):
            next(batches)
        state = loader.state_dict()
    assert (287 - state["position"]) % 8 == 1
    with leat.Loader(odd, global_batch_size=8, shuffle=True, drop_last=False, seed=1, rank=0, world_size=2) as loader:
        with pytest.raises(leat.InvalidArgument, match="of 273 samples, 1 remain"):
            loader.load_state_dict(state)
        assert loader.state_dict()["position"] == 0


def test_a_stream_that_nobody_indexed_cannot_promise_equal_epochs(tmp_path, fresh_cache):
    make_shards(tmp_path / "shards", shards=2, samples=20, size=1000)
    options = {"global_batch_size": 4, "shuffle": "stream", "rank": 0, "world_size": 2}

    with pytest.raises(leat.InvalidArgument, match="nobody knows whether the last step has a sample for each"):
        leat.Loader(tmp_path / "shards", drop_last=False, **options)
    leat.Loader(tmp_path / "shards", **options).close()
    leat.Loader(tmp_path / "shards", drop_last="join", **options).close()


def test_the_shipped_ddp_examples_end_together_though_one_sample_is_left(tmp_path_factory, odd):
    """Each as it is but for its global batch of 64."""
    folder = tmp_path_factory.mktemp("scripts")
    data = folder / "data"
    for part in ("train", "test"):
        for path in odd.glob("*/*.png"):
            write(data / part / path.parent.name / path.name, encoded(pixels(int(path.stem), height=8, width=8)))
    for name, url in (("train_ddp.py", data / "train"), ("validate_ddp.py", data)):
        text = (EXAMPLES / name).read_text()
        assert "global_batch_size=64" in text
        (folder / name).write_text(text.replace("global_batch_size=64", "global_batch_size=26"))

        said = run_ranks([str(folder / name), str(url)], 2)

        assert said[0].count("epoch ") >= 3 and said[1] == ""


SLURM = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}


def test_one_python_of_a_slurm_script_reads_all(pictures, monkeypatch):
    """Slurm tells a batch script how many tasks the job has, though srun started none."""
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    assert ids_of(load(pictures, train=False, ids=True)) == SEQUENTIAL

    monkeypatch.setenv("SLURM_STEP_ID", "4294967291")  # The script's, where Slurm numbers it.
    assert ids_of(load(pictures, train=False, ids=True)) == SEQUENTIAL

    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with load(pictures, train=False, drop_last="join") as loader:
        assert (loader.rank, loader.world_size) == (0, 4)


# --- what is said -----------------------------------------------------------


@pytest.fixture
def said(caplog, monkeypatch):
    """said(level): the lines of that level since the last call; nothing was said before."""
    monkeypatch.setattr(_say, "_said", set())
    caplog.set_level(logging.INFO, logger="leat")

    def lines(level=logging.INFO) -> list[str]:
        found = [r.getMessage() for r in caplog.records if r.name == "leat" and r.levelno == level]
        caplog.clear()
        return [line for line in found if not re.match(r"epoch \d+: (waiting|not waiting|too short)", line)]

    return lines


def take(loader) -> None:
    with loader:
        for _ in loader:
            pass


@pytest.fixture
def class_folders(tmp_path):
    """Makes a folder with a picture in each of these class folders."""

    def make(name: str, *classes: str) -> pathlib.Path:
        for number, each in enumerate(classes):
            write(tmp_path / name / each / "0.png", encoded(pixels(number)))
        return tmp_path / name

    return make


def read(source) -> list[int]:
    with load(source, train=False, batch_size=1) as loader:
        return [int(batch["label"][0]) for batch in loader]


def test_two_lists_of_classes_that_number_one_differently_are_warned_of_once(class_folders, said):
    train = class_folders("train", "ant", "bee", "cat", "dog")
    val = class_folders("val", "ant", "cat", "dog")

    assert read(train) == [0, 1, 2, 3] and said(logging.WARNING) == []
    assert read(val) == [0, 1, 2]
    (warning,) = said(logging.WARNING)
    for words in (f"{val}: class 'cat' has label 1 here, and 2 in {train}", "classes=FIRST.classes"):
        assert words in warning
    assert read(val) == read(leat.Dataset(val)) and said(logging.WARNING) == []


def test_classes_of_another_dataset_number_the_labels_alike(class_folders, said):
    train = leat.Dataset(class_folders("train", "ant", "bee", "cat", "dog"))
    val = leat.Dataset(class_folders("val", "ant", "cat", "dog"), classes=train.classes)

    assert read(train) == [0, 1, 2, 3] and read(val) == [0, 2, 3]
    assert val.classes == train.classes == ["ant", "bee", "cat", "dog"]
    assert said(logging.WARNING) == []
    again = pickle.loads(pickle.dumps(val))
    assert again.classes == val.classes and read(again) == [0, 2, 3]


@pytest.mark.parametrize("second", [
    ("ant", "bee", "cat"),  # The same numbers, though one is missing.
    ("bee", "xylophone", "zither"),  # A third in common.
    ("oboe", "zither"),
])  # fmt: skip
def test_lists_of_classes_that_agree_or_have_little_in_common_are_not_warned_of(class_folders, said, second):
    read(class_folders("first", "ant", "bee", "cat", "dog"))
    read(class_folders("second", *second))

    assert said(logging.WARNING) == []


def test_classes_that_do_not_fit_the_folders_are_refused(class_folders, tmp_path):
    folder = class_folders("val", "ant", "emu")
    with pytest.raises(leat.InvalidArgument, match="folder 'emu/' is not among the classes given"):
        leat.Dataset(folder, classes=["ant", "bee"])
    with pytest.raises(leat.InvalidArgument, match="'ant' is named twice"):
        leat.Dataset(folder, classes=["ant", "ant", "emu"])
    with pytest.raises(leat.InvalidArgument, match="list of the folders' names"):
        leat.Dataset(folder, classes="ant")
    with pytest.raises(leat.InvalidArgument, match="no folders to label"):
        leat.Dataset(folder / "ant", classes=["ant"])
    make_shards(tmp_path / "shards", shards=1, samples=2, size=10)
    with pytest.raises(leat.InvalidArgument, match="files of many samples"):
        leat.Dataset(tmp_path / "shards", classes=["ant"])


@pytest.mark.parametrize(("options", "tail", "order"), [
    ({"train": True, "seed": 7}, "; drops 4 of the last step", "full shuffle, seed 7"),
    ({"train": False}, "; a last step of 4", "in the samples' order"),
    ({"train": False, "drop_last": "pad", "ids": True}, "; fills up the last step with 4 samples that come twice",
     "in the samples' order"),
    ({"train": False, "batch_size": 10}, "", "in the samples' order"),
    ({"sampler": leat.WeightedSampler([1.0] * 60, 30), "train": False}, "; a last step of 6",
     "30 an epoch drawn by weights, seed 0"),
    ({"sampler": leat.WeightedSampler([1.0] * 60, 30)}, "; drops 6 of the last step", "30 an epoch drawn by weights, seed 0"),
    ({"sampler": list(range(20))}, "; a last step of 4", "in a sampler's order"),
    ({"sampler": list(range(20)), "train": True}, "; drops 4 of the last step", "in a sampler's order"),
    ({"sampler": list(range(24))}, "", "in a sampler's order"),
    ({"sampler": leat.SizeBuckets(range(1, 61)), "train": True, "drop_last": "pad"},
     "; fills up the last step with 4 samples that come twice", "steps of like size, seed 0"),
])  # fmt: skip
def test_one_line_says_what_is_read_and_how(pictures, said, options, tail, order):
    loader = load(pictures, **options)
    assert said() == []  # It may never be used.
    take(loader)

    (line,) = said()
    assert re.fullmatch(
        re.escape(str(pictures)) + r": 60 samples, 3 classes(, catalogue of [^;]+ \(refresh=\))?; rank 0 of 1"
        + re.escape(tail) + "; " + re.escape(order), line.removeprefix("file://"),
    )  # fmt: skip
    take(loader := load(pictures, **options))  # An evaluation's, made for each epoch.
    assert said() == []


def test_rank_0_alone_says_it(pictures, said):
    for rank in range(2):
        take(load(pictures, batch_size=5, train=False, rank=rank, world_size=2))
        told = [line for line in said() if "60 samples" in line]
        assert ["rank 0 of 2" in line for line in told] == ([True] if rank == 0 else [])


def test_much_that_is_dropped_unasked_is_warned_of(pictures, said):
    take(load(pictures, train=True, batch_size=25))
    (warning,) = said(logging.WARNING)
    assert "each epoch leaves out 10 of 60 samples (17 %)" in warning and "drop_last=False" in warning

    take(load(pictures, train=True, batch_size=25, drop_last=True))
    take(load(pictures, train=False, batch_size=25))
    take(load(pictures, train=True, batch_size=59))  # Less than a twentieth.
    assert said(logging.WARNING) == []


def test_padding_that_nobody_can_tell_is_warned_of(pictures, said):
    take(load(pictures, train=False, drop_last="pad"))
    (warning,) = said(logging.WARNING)
    assert "4 samples that come twice" in warning and '"valid"' in warning

    take(load(pictures, train=False, drop_last="pad", fields=("label", "valid")))
    take(load(pictures, train=False, drop_last="pad", batch_size=10))
    assert said(logging.WARNING) == []


class Lengths:
    """A sampler without a len(), which gives this many samples in each epoch."""

    def __init__(self, *lengths: int) -> None:
        self._lengths, self._epoch = lengths, 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __iter__(self):
        return iter(range(self._lengths[self._epoch]))


ORDERS = {
    "sampler": (lambda: list(range(60)), "samples"),
    "sampler without a len()": (lambda: Lengths(60, 60, 60), "samples"),
    "sampler whose second epoch has a rest": (lambda: Lengths(50, 60, 60), "samples"),
    "buckets": (lambda: leat.SizeBuckets(range(1, 61)), "samples"),
    "weights": (lambda: leat.WeightedSampler([1.0] * 60), "draws"),
}


@pytest.mark.parametrize("order", ORDERS)
def test_much_that_is_dropped_of_any_order_is_warned_of_once(pictures, said, order):
    sampler, unit = ORDERS[order]
    with load(pictures, train=True, batch_size=25, sampler=sampler()) as loader:
        assert [len(list(loader)) for _ in range(3)] == [2, 2, 2]
    (warning,) = said(logging.WARNING)
    assert f"each epoch leaves out 10 of 60 {unit} (17 %), which do not fill a step of 25" in warning

    for drop_last in (True, False):
        take(load(pictures, train=True, batch_size=25, sampler=sampler(), drop_last=drop_last))
    assert said(logging.WARNING) == []


@pytest.mark.parametrize("order", ORDERS)
def test_padding_of_any_order_that_nobody_can_tell_is_warned_of_once(pictures, said, order):
    def make(**options):
        sampler, _ = ORDERS[order]
        return load(pictures, train=True, batch_size=25, sampler=sampler(), drop_last="pad", **options)

    with make() as loader:
        assert sum(len(batch["label"]) for _ in range(3) for batch in loader) in (225, 200)
    (warning,) = said(logging.WARNING)
    assert "15 samples that come twice" in warning and '"valid"' in warning

    take(make(ids=True))
    assert said(logging.WARNING) == []


@pytest.mark.parametrize(("drop_last", "comes", "tail", "warns"), [
    (None, 4, "drops 3 of the last step", "each epoch leaves out 3 of 7 samples (43 %)"),
    ("pad", 8, "fills up the last step with 1 sample that comes twice", "1 sample that comes twice, and nothing"),
    (True, 4, "drops 3 of the last step", ""),
    (False, 7, "a last step of 3", ""),
])  # fmt: skip
def test_the_tail_of_a_stream_is_said_once_it_is_known(
    tmp_path, said, caplog, fresh_cache, drop_last, comes, tail, warns
):
    def lines(level: int) -> list[str]:
        found = [r.getMessage() for r in caplog.records if r.levelno == level]
        return [line for line in found if "/shards: " in line]

    make_shards(tmp_path / "shards", shards=1, samples=7, size=100)
    options = {"shuffle": "stream", "batch_size": 4, "fields": ("index", "txt"), "drop_last": drop_last}
    with load(str(tmp_path / "shards"), **options) as loader:
        for _ in range(2):  # All is said in the first.
            assert sum(len(index) for index, _ in loader) == comes

            first, then = lines(logging.INFO)
            assert "samples not known yet" in first and "last step" not in first
            assert then.endswith(f"/shards: 7 samples; {tail}")
            assert [warns in warning for warning in lines(logging.WARNING)] == ([True] if warns else [])


def test_no_secret_of_a_url_is_said():
    assert _say.shown("https://me:pass@host/photos?X-Amz-Signature=abc") == "https://host/photos"
    azure = "abfss://photos@ada.dfs.core.windows.net/train"
    assert _say.shown(f"{azure}?sig=abc") == azure, "photos is a container, without which nothing can be opened"
    assert _say.shown("abfss://me:pass@host/x") == "abfss://host/x"
    assert _say.shown("s3://me@bucket/x") == "s3://bucket/x"


def test_a_job_of_tasks_that_srun_did_not_start_is_mentioned(pictures, said, monkeypatch):
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    take(load(pictures, train=False))

    assert "rank 0 of 1 (Slurm's job has 8 tasks, but srun did not start this process)" in said()[0]


def test_substitutes_are_said_first_by_name_and_then_by_number(tmp_path, said):
    make_pictures(tmp_path / "set", 30)
    for number in (3, 4, 17):
        (path,) = (tmp_path / "set").glob(f"*/{number:05}.png")
        path.write_bytes(b"no picture")
    options = {"train": False, "batch_size": 10, "ops": [DecodeImage()], "on_error": "substitute"}
    with load(tmp_path / "set", **options) as loader:
        for _ in loader:
            pass
        first = said(logging.WARNING)
        next(iter(loader))  # Left in the middle.
        next(iter(loader))
        then = said(logging.WARNING)

    named, counted = first[:-1], first[-1]
    # Threads find them in any order.
    for number, line in zip((3, 4, 17), sorted(named, key=lambda line: re.findall(r"\d{5}\.png", line))):
        assert f"sample {number} \"" in line and f"{number:05}.png\": " in line
        assert "another sample of the epoch takes its place" in line
    assert len(named) == 3 and "epoch 0: 3 of 30 samples were bad" in counted
    # Each is named once; the next epochs do not read it.
    assert then == [line for line in then if "of 10 samples were bad" in line] and len(then) == 1


def test_bad_samples_of_an_earlier_run_are_said_at_the_start(tmp_path, said):
    make_pictures(tmp_path / "set", 30)
    (path,) = (tmp_path / "set").glob("*/00003.png")
    path.write_bytes(b"no picture")
    options = {"train": False, "batch_size": 10, "ops": [DecodeImage()], "on_error": "substitute"}
    take(load(tmp_path / "set", **options))
    said(logging.WARNING)

    loader = load(tmp_path / "set", **options)
    (line,) = said(logging.WARNING)
    assert "1 samples are known to be bad and are passed over" in line and ".tsv names them" in line
    take(loader)
    assert [line for line in said(logging.WARNING) if "sample 3" in line] == []
    # Without on_error, it is read, and raises.
    with pytest.raises(leat.Corrupt, match="00003.png"):
        take(load(tmp_path / "set", train=False, batch_size=10, ops=[DecodeImage()]))


def test_what_was_bad_in_another_folder_or_before_a_repair_is_read(tmp_path, said):
    """Both have the names and sizes of the bad one."""
    options = {"train": False, "batch_size": 10, "ops": [DecodeImage()], "on_error": "substitute"}
    for name in ("torn", "whole"):
        make_pictures(tmp_path / name, 20)
    (path,) = (tmp_path / "torn").glob("*/00003.png")
    good = path.read_bytes()
    path.write_bytes(good[:40] + bytes(len(good) - 40))
    for _ in range(2):
        take(load(tmp_path / "torn", **options))
    assert any("1 samples are known to be bad" in line for line in said(logging.WARNING))

    take(load(tmp_path / "whole", **options))
    assert said(logging.WARNING) == []
    path.write_bytes(good)
    take(load(tmp_path / "torn", **options))
    (line,) = said(logging.WARNING)
    assert "1 written anew" in line


def test_nothing_is_said_of_a_dataset_that_is_whole(pictures, said):
    take(load(pictures, train=False, batch_size=10, on_error="substitute"))

    assert said(logging.WARNING) == []


def test_a_plain_script_reads_it_on_stderr_and_its_logging_elsewhere(pictures, tmp_path):
    program = """
import logging, sys, leat
if len(sys.argv) > 2:
    logging.basicConfig(filename=sys.argv[2], level=logging.INFO)
for batch in leat.Loader(sys.argv[1], batch_size=10, train=False):
    pass
"""
    plain = run_python(program, pictures)
    silenced = run_python(program, pictures, SPDLOG_LEVEL="leat=off")
    kept = run_python(program, pictures, tmp_path / "log")

    assert "leat: info: " in plain.stderr and "60 samples, 3 classes" in plain.stderr
    assert silenced.stderr == "" and silenced.returncode == 0
    assert "60 samples" not in kept.stderr
    assert "INFO:leat:" in (tmp_path / "log").read_text() and "60 samples" in (tmp_path / "log").read_text()


# --- ranks that were not told the same --------------------------------------


@pytest.fixture
def ranks_of_one_job(monkeypatch):
    """Makes a loader as each rank of a job of two, whose processes share a store."""
    store = torch.distributed.HashStore()
    monkeypatch.setattr(_agreement, "job_store", lambda world_size: store)

    def make(first: dict, second: dict) -> None:
        for rank, options in enumerate((first, second)):
            monkeypatch.setattr(_agreement, "_made", collections.Counter())
            load(options.pop("folder"), rank=rank, world_size=2, **{"batch_size": 5, **options}).close()

    return make


@pytest.mark.parametrize(("first", "second", "says"), [
    ({"train": True, "seed": 0}, {"train": True, "seed": 1}, "seed 1.*another rank: .*seed 0"),
    ({"train": True}, {"train": True, "batch_size": 6}, "steps of 12.*steps of 10"),
    ({"train": True}, {"train": False}, "none shuffle.*full shuffle"),
    ({"train": False}, {"train": False, "drop_last": True}, "drops the last.*keeps the last"),
    ({"sampler": SEQUENTIAL}, {"sampler": SEQUENTIAL, "drop_last": True}, "drops the last.*keeps the last"),
])
def test_ranks_that_read_in_other_orders_are_refused(pictures, ranks_of_one_job, first, second, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        ranks_of_one_job({"folder": pictures, **first}, {"folder": pictures, **second})


def test_ranks_that_read_the_same_agree(pictures, ranks_of_one_job, said):
    ranks_of_one_job({"folder": pictures, "train": True, "seed": 3}, {"folder": pictures, "shuffle": True, "seed": 3})

    assert said(logging.WARNING) == []


def test_ranks_that_read_other_places_are_told(pictures, tmp_path, ranks_of_one_job, said):
    make_pictures(tmp_path / "others", 60)
    ranks_of_one_job({"folder": pictures, "train": True}, {"folder": tmp_path / "others", "train": True})

    (warning,) = said(logging.WARNING)
    assert "loader number 1 reads" in warning and "others" in warning


# --- functions that see one field of several --------------------------------


def noise(image, rng):
    return image


def shift(image, mask, rng):
    return image, mask


@pytest.mark.parametrize(("op", "warnings"), [
    (Python(noise), 1),
    (Python(noise, independent=True), 0),
    (Python(shift, fields=("image", "mask")), 0),
    (Python(lambda image: image), 0),
    (Python(noise, per="batch", field="image"), 1),
    (Python(lambda batch, rng: batch, per="batch"), 0),
])
def test_a_function_that_draws_beside_a_mask_is_warned_of(tmp_path, said, op, warnings):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.tar", tar_of([("0.png", encoded(pixels(1))), ("0.seg.png", encoded(pixels(1)[..., 0]))]))
    ops = [leat.ops.DecodeMask("seg.png", to="mask"), DecodeImage("png"), op]
    take(leat.Loader(str(tmp_path), batch_size=1, train=False, fields=("image", "mask"), ops=ops))

    told = [text for text in said(logging.WARNING) if "sees one field alone" in text]
    assert len(told) == warnings
    assert all("DecodeMask" in text and "independent=True" in text for text in told)


LEFT, RIGHT = DecodeImage("png", to="left"), DecodeImage("seg.png", to="right")


@pytest.mark.parametrize(("ops", "left"), [
    ([LEFT, RIGHT, Python(noise, field="left")], "right"),
    ([LEFT, RIGHT, Python(noise, field="right")], "left"),
    ([LEFT, RIGHT, Python(noise)], "left"),  # Which takes that of the op before.
    ([LEFT, Python(noise), RIGHT], "right"),
    ([DecodeImage("png"), RIGHT, Python(noise)], "image"),
    ([LEFT, RIGHT, leat.ops.Resize(8, field="left", to="small"), Python(noise)], "right"),
    ([LEFT, RIGHT, leat.ops.Resize(8), Python(noise)], "left"),
    ([LEFT, RIGHT, Python(lambda image: image, field="left"), Python(noise)], "right"),
    ([LEFT, RIGHT, Python(noise, field="left", independent=True)], ""),
    ([LEFT, RIGHT, Python(shift, fields=("left", "right"))], ""),
    ([LEFT, RIGHT, Python(lambda image: image, field="left")], ""),
    ([LEFT, Python(noise)], ""),
    ([LEFT, RIGHT, Python(noise, field="0")], ""),  # Bytes, which may be a text.
    ([LEFT, RIGHT, leat.ops.ParseText("txt"), Python(noise)], ""),
    ([LEFT, RIGHT, Python(noise, per="batch", field="left")], "right"),
    ([LEFT, RIGHT, Python(noise, per="batch", field="label")], ""),
    ([LEFT, RIGHT, Python(noise, per="batch")], ""),
])  # fmt: skip
def test_a_function_that_draws_beside_a_second_image_is_warned_of(ops, left):
    told = _say.drawn_apart(ops)

    assert bool(told) == bool(left)
    if left:
        assert f"sees one field alone, so the image '{left}' stays as it is" in told and "independent=True" in told


def test_the_loader_says_so(tmp_path, said):
    picture = encoded(pixels(1))
    write(tmp_path / "a.tar", tar_of([("0.png", picture), ("0.seg.png", picture)]))
    take(leat.Loader(str(tmp_path), batch_size=1, train=False, ops=[LEFT, RIGHT, Python(noise, field="left")]))

    assert ["the image 'right' stays as it is" in line for line in said(logging.WARNING)] == [True]


LABELS = leat.ops.DecodeMask("seg.png")
MIDDLE, SMALL = leat.ops.CenterCrop, leat.ops.Resize


@pytest.mark.parametrize(("ops", "mover"), [
    ([DecodeImage("png"), LABELS, MIDDLE(32, field="image"), SMALL((32, 32), field="mask")], "CenterCrop"),
    ([DecodeImage("png"), LABELS, SMALL((80, 80), field="mask"), leat.ops.Pad(8, field="image")], "Pad"),
    ([DecodeImage("png"), MIDDLE(32, field="image"), LABELS], "CenterCrop"),  # Before the mask was read.
    ([DecodeImage("png"), LABELS, leat.ops.Letterbox(32, field="mask")], "Letterbox"),
    ([DecodeImage("png"), LABELS, MIDDLE(32, field="image"), MIDDLE(24, field="mask")], "CenterCrop"),
    ([DecodeImage("png"), LABELS, SMALL(64, field="image"), MIDDLE(32, field="image"), MIDDLE(32, field="mask")], "CenterCrop"),
    ([LEFT, RIGHT, MIDDLE(32, field="right", to="far")], "CenterCrop"),
    ([DecodeImage("png"), LABELS, SMALL((64, 64), field="image"), SMALL((16, 16), field="mask")], ""),
    ([DecodeImage("png"), LABELS, MIDDLE(32), SMALL((8, 8), field="mask")], ""),
    ([DecodeImage("png"), LABELS, SMALL(64, field="image"), SMALL(64, "nearest", field="mask"), MIDDLE(32)], ""),
    ([DecodeImage("png"), LABELS, MIDDLE(32, field="image"), MIDDLE(32, field="mask")], ""),
    ([DecodeImage("png", to="wide"), DecodeImage("png", to="near"), MIDDLE(32, field="near")], ""),  # Two views.
    ([DecodeImage("png"), LABELS, leat.ops.RandomCrop(8, independent=True, field="image")], ""),
    ([DecodeImage("png"), MIDDLE(32)], ""),
])  # fmt: skip
def test_an_op_that_moves_two_pictures_of_a_sample_apart_is_warned_of(ops, mover):
    told = _say.placed_apart(ops)

    assert bool(told) == bool(mover)
    if mover:
        assert told.startswith(f"{mover}(") and "do not move alike: decode both first" in told


def test_the_loader_says_that_two_pictures_move_apart(tmp_path, said):
    picture = encoded(pixels(1))
    write(tmp_path / "a.tar", tar_of([("0.png", picture), ("0.seg.png", picture)]))
    take(leat.Loader(str(tmp_path), batch_size=1, train=False, ops=[LEFT, RIGHT, MIDDLE(2, field="left")]))

    assert ["'right' do not move alike" in line for line in said(logging.WARNING)] == [True]


def by_python(data):
    return random.random()


def by_numpy(data):
    return np.random.random()


def by_torch(data):
    return torch.rand(())


def by_none(data):
    return 1.0


def by_once(data, asked=[]):  # noqa: B006
    return asked.append(1) or (random.random() if len(asked) == 1 else 1.0)


@pytest.mark.parametrize(("op", "says"), [
    (Python(by_python, field="data"), "global_rng=True, or give the function a parameter rng"),
    (Python(by_numpy, field="data"), "in each run it draws other numbers"),
    (Python(by_torch, field="data", workers="threads"), "global_rng=True"),
    (Python(by_python, field="data", global_rng=True), ""),
    (Python(by_none, field="data"), ""),
    (Python(by_once, field="data"), ""),
    (Python(lambda data, rng: rng.random(), field="data"), ""),
    (leat.ops.Filter(lambda data: random.random() < 2, field="data"), "skips other samples in each epoch"),
], ids=repr)  # fmt: skip
def test_a_function_that_draws_and_has_not_said_so_is_warned_of_once(pictures, said, op, says):
    with load(pictures, train=True, fields=("data",), ops=[op]) as loader:
        for _ in range(2):
            for _batch in loader:
                pass

    told = [text for text in said(logging.WARNING) if "draws from the generators" in text]
    assert len(told) == bool(says)
    assert not says or (repr(op) in told[0] and says in told[0])


@pytest.mark.parametrize(("reads", "op", "warnings"), [
    (DecodeImage("seg.png", to="mask", mode="L"), leat.ops.RandomResizedCrop(8), 1),
    (DecodeImage("seg.png", to="y"), leat.ops.Resize((8, 8)), 1),
    (DecodeImage("seg.png", to="mask", mode="L"), leat.ops.Resize((8, 8), field="mask"), 1),
    (DecodeImage("seg.png", to="mask", mode="L"), leat.ops.Resize((8, 8), field="image"), 0),
    (DecodeImage("seg.png", to="mask", mode="L"), leat.ops.Resize((8, 8), interpolation="nearest"), 0),
    (DecodeImage("seg.png", to="mask", mode="L"), leat.ops.RandomCrop(8), 0),
    (leat.ops.DecodeMask("seg.png", to="mask"), leat.ops.Resize((8, 8)), 0),
    (DecodeImage("depth.png", to="target", mode="L"), leat.ops.Resize((8, 8)), 1),
    (DecodeImage("depth.png", to="target"), leat.ops.Resize((8, 8)), 0),  # In colour.
    (DecodeImage("depth.png", to="depth", mode="L"), leat.ops.Resize((8, 8)), 0),
], ids=repr)  # fmt: skip
def test_labels_that_are_read_as_a_picture_and_blended_are_warned_of(tmp_path, said, reads, op, warnings):
    for name in ("a", "b"):
        grey = encoded(pixels(1)[..., 0])
        write(tmp_path / f"{name}.tar", tar_of([("0.png", encoded(pixels(1))), ("0.seg.png", grey), ("0.depth.png", grey)]))
    for _ in range(2):
        take(leat.Loader(str(tmp_path), batch_size=1, train=False, ops=[DecodeImage("png"), reads, op]))

    told = [text for text in said(logging.WARNING) if "named like labels" in text]
    assert len(told) == warnings
    assert all("DecodeMask" in text and "blends pixels (bilinear)" in text for text in told)


CROP = leat.ops.RandomCrop(6)


def npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(("ops", "remedy"), [
    ([leat.ops.LoadNpy("map.npy", to="map"), CROP], "DecodeMask('map.npy')"),
    ([leat.ops.LoadNpy("map.npy", to="map"), leat.ops.RandomHorizontalFlip()], "DecodeMask('map.npy')"),
    ([leat.ops.LoadNpy("map.npy", to="map", ragged=True), CROP], "DecodeMask('map.npy')"),
    ([leat.ops.LoadNpy("depth.npy"), leat.ops.Resize((6, 6))], "fields=('image', 'depth.npy')"),
    ([leat.ops.LoadNpy("depth.npy"), leat.ops.RandAugment()], "fields=('image', 'depth.npy')"),
    ([leat.ops.LoadNpy("vector.npy"), CROP], None),
    ([leat.ops.LoadNpy("map.npy"), leat.ops.ColorJitter(0.2)], None),
    ([leat.ops.DecodeMask("map.npy"), CROP], None),
    ([leat.ops.LoadNpy("map.npy", to="map"), CROP, Python(lambda image, map: (image, map), fields=("image", "map"))], None),
], ids=repr)  # fmt: skip
def test_an_array_that_stays_behind_its_picture_is_warned_of(tmp_path, said, ops, remedy):
    arrays = {"map": np.zeros((10, 12), np.uint8), "depth": np.zeros((10, 12), np.float32), "vector": np.zeros(9)}
    members = [(f"0.{name}.npy", npy(array)) for name, array in arrays.items()]
    write(tmp_path / "0.tar", tar_of([("0.png", encoded(pixels(1))), *members]))
    for _ in range(2):
        take(leat.Loader(str(tmp_path), batch_size=1, train=False, ops=[DecodeImage("png"), *ops]))

    told = [text for text in said(logging.WARNING) if "stays as it is" in text]
    assert len(told) == (remedy is not None)
    assert all(remedy in text and repr(ops[-1]) in text and repr(ops[0]) in text for text in told)


# --- calls that cannot be meant ---------------------------------------------


@pytest.mark.parametrize(("call", "says"), [
    (lambda data: leat.Loader(data, batch_size=2, train=True, ops=DecodeImage()), r"is one op; write a list of it: ops=\["),
    (lambda data: leat.Dataset(None), "None is no place"),
    (lambda data: leat.Dataset.concat([data]), "is no dataset; write leat.Dataset"),
    (lambda data: leat.Dataset(data).select([-1]), "no sample -1: samples= has numbers from 0 to 59"),
    (lambda data: leat.Dataset(data).select([60]), "no sample 60"),
])
def test_calls_that_cannot_be_meant_say_the_remedy(pictures, call, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        call(pictures)


def test_a_column_is_no_sample(pictures):
    with pytest.raises(TypeError, match="a sample has a number; columns are dataset.column"):
        leat.Dataset(pictures)["label"]
