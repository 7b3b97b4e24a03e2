"""Functions of the user's in the chain of ops, and collate=."""

from __future__ import annotations

import io
import os
import random
import re
import sys
import sysconfig
import threading
import time
import traceback

import numpy as np
import pytest
from PIL import Image

import leat
from leat.ops import (
    Chain, DecodeImage, Normalize, ParseInt, ParseJson, ParseText, Python, RandomHorizontalFlip, RandomResizedCrop, Resize,
)  # fmt: skip
from small_datasets import encoded, make_pictures, pixels, run_python, tar_of, write

DECODE = DecodeImage(layout="HWC")


def batches(source, **options) -> list:
    options = {"batch_size": 10, "shuffle": False, "batch": "dict", "output": "numpy", **options}
    with leat.Loader(source, **options) as loader:
        return list(loader)


def test_a_function_gets_the_decoded_image_and_its_array_is_delivered(pictures):
    seen = []

    def darker(image):
        seen.append((image.dtype, image.shape, threading.current_thread() is threading.main_thread()))
        return image // 2

    found = batches(pictures, ops=[DECODE, Python(darker)], fields=["image"])

    assert {kind for kind in seen} == {(np.dtype("uint8"), (10, 12, 3), False)}
    got = np.concatenate([batch["image"] for batch in found])
    assert np.array_equal(got, np.stack([pixels(i) // 2 for i in range(60)]))


def test_on_bytes_and_one_function_after_another(pictures):
    found = batches(
        pictures, ops=[Python(len, to="size"), Python(lambda n: n + 0.5)], fields=["size", "label"]
    )

    assert set(found[0]) == {"size", "label"}
    assert found[0]["size"].dtype == np.float64
    expected = [(pictures / f"ant/{i:05}.png").stat().st_size + 0.5 for i in range(10)]
    assert found[0]["size"].tolist() == expected


@pytest.fixture
def table(pictures, tmp_path):
    """20 of the pictures, with columns of numbers, weights, words and of JSON."""
    rows = [f'ant/{i:05}.png,{i},{i / 4},word {i},"[{i}, {i + 1}]"' for i in range(20)]
    (tmp_path / "rows.csv").write_text("\n".join(["path,number,weight,words,pair", *rows]) + "\n")
    return leat.Dataset.from_manifest(
        tmp_path / "rows.csv", base=pictures, fields={"image": "path"},
        columns=["number", "weight", "words", "pair"])  # fmt: skip


def test_a_function_gets_a_number_or_a_text_of_the_catalogue(table):
    seen = set()

    def note(value):
        seen.add((type(value), getattr(value, "dtype", None), np.shape(value)))
        return value

    (batch, *_) = batches(
        table, fields=["more", "half", "count", "image"],
        ops=[Python(note, field="number", to="more"), Python(lambda n: n + 100),
             Python(note, field="weight", to="half"), Python(lambda w: w / 2),
             Python(note, field="words", to="count"), Python(lambda text: len(text.split()))])  # fmt: skip

    assert seen == {(np.ndarray, np.dtype("int64"), ()), (np.ndarray, np.dtype("float64"), ()),
                    (str, None, ())}  # fmt: skip
    assert batch["more"].tolist() == [i + 100 for i in range(10)]
    assert batch["half"].tolist() == [i / 8 for i in range(10)]
    assert batch["count"].tolist() == [2] * 10
    assert len(batch["image"]) == 10


def test_a_text_of_the_catalogue_is_parsed(table):
    ops = [ParseJson(field="pair"), ParseText(field="words")]

    (batch, *_) = batches(table, fields=["pair", "words", "number"], ops=ops)

    assert batch["pair"].tolist() == [[i, i + 1] for i in range(10)]
    assert batch["words"] == [f"word {i}" for i in range(10)]
    assert batch["number"].tolist() == list(range(10))
    with pytest.raises(leat.InvalidArgument, match="'number' is a number or a text"):
        batches(table, ops=[ParseInt(field="number")])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda torch: 3, np.int64(3)),
        (lambda torch: True, np.bool_(True)),
        (lambda torch: [[1.5, 2]], np.array([[1.5, 2.0]])),
        (lambda torch: torch.ones(2, 3).T, np.ones((3, 2), np.float32)),
        (lambda torch: np.arange(6, dtype=">i2").reshape(2, 3)[:, ::2], np.array([[0, 2], [3, 5]], "<i2")),
        (lambda torch: b"\x01\x02", np.array([1, 2], np.uint8)),
    ],
)
def test_what_a_function_may_give(pictures, made, expected):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    (batch, *_) = batches(pictures, ops=[Python(lambda data: made(torch), to="made")], fields=["made"])

    assert batch["made"].dtype == expected.dtype and batch["made"].shape == (10, *expected.shape)
    assert np.array_equal(batch["made"][4], expected)


def test_texts_and_values_of_unequal_length(tmp_path):
    members = [(f"{i:03}.json", b'{"boxes": %s}' % str(list(range(i))).encode()) for i in range(4)]
    write(tmp_path / "set" / "a.tar", tar_of(members))

    (batch,) = batches(tmp_path / "set", batch_size=4, ops=[
        ParseJson("boxes", dtype="int64", ragged=True, to="boxes"),
        Python(lambda boxes: boxes * 10, field="boxes", ragged=True),
    ])  # fmt: skip
    assert batch["boxes"].pad().tolist() == [[0, 0, 0], [0, 0, 0], [0, 10, 0], [0, 10, 20]]
    (batch,) = batches(tmp_path / "set", batch_size=4, ops=[Python(lambda data: data.decode()[:9])])
    assert batch["json"] == ['{"boxes":'] * 4
    with pytest.raises(leat.InvalidArgument, match="ragged=True"):
        batches(tmp_path / "set", batch_size=4, ops=[ParseJson("boxes", dtype="int64", ragged=True),
                                                     Python(lambda boxes: boxes)])  # fmt: skip


def drawn(source, op, **options) -> dict[int, float]:
    with leat.Loader(source, ops=[op], ids=True, fields=["data"], **{"batch": "dict", "shuffle": True, **options}) as loader:
        epochs = [batch for _ in range(2) for batch in loader]
    return {(at, int(i)): float(x) for at, batch in enumerate(epochs)
            for i, x in zip(batch["index"], batch["data"])}  # fmt: skip


@pytest.mark.parametrize(
    "op",
    [
        Python(lambda data, rng: rng.random()),
        Python(lambda data: random.random() + np.random.random(), global_rng=True),
    ],
)
def test_draws_are_of_the_seed_the_epoch_and_the_sample(pictures, op):
    once = drawn(pictures, op, batch_size=60, seed=3, threads=1)

    assert len(set(once.values())) == 120  # Each sample, each epoch another.
    for options in ({"threads": 8}, {"max_in_flight": 1}):
        assert drawn(pictures, op, batch_size=60, seed=3, **options) == once
    assert drawn(pictures, op, batch_size=60, seed=4) != once
    # Two that draw, draw differently.
    (batch, *_) = batches(pictures, fields=["data"], ops=[
        Python(lambda data, rng: [rng.random()]),
        Python(lambda value, rng: [*value, rng.random()])])  # fmt: skip
    assert np.all(batch["data"][:, 0] != batch["data"][:, 1])


def draw_from_all(data):
    torch = sys.modules.get("torch")
    return random.random() + np.random.random() + (torch.rand(()).item() if torch else 0.0)


def fail_after_drawing(data):
    raise KeyError(draw_from_all(data))


@pytest.mark.parametrize("op", [
    Python(draw_from_all, global_rng=True, workers="threads"),
    Python(lambda batch: {"data": np.full(10, draw_from_all(batch))}, per="batch", global_rng=True),
    Python(fail_after_drawing, global_rng=True, workers="threads"),
], ids=["sample", "batch", "failing"])  # fmt: skip
def test_the_programs_own_generators_draw_on_as_if_there_were_no_function(pictures, op):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def numbers():
        return random.random(), random.gauss(0, 1), np.random.random(), torch.rand(()).item()

    def seeded():
        random.seed(1), np.random.seed(2), torch.manual_seed(3)
        return numbers()

    expected = [seeded(), numbers()]
    first = seeded()
    if op.function is fail_after_drawing:
        with pytest.raises(KeyError):
            batches(pictures, fields=["data"], ops=[op])
    else:
        batches(pictures, fields=["data"], ops=[op])
    assert [first, numbers()] == expected


def explode_at_seven(data):
    if threading.current_thread() is threading.main_thread():
        raise AssertionError("called in the wrong thread")
    value = hash(data)
    if data == explode_at_seven.bytes:
        raise KeyError("no such breed")  # The line that a user looks for.
    return value % 7


def test_an_exception_keeps_its_lines_and_names_the_sample(pictures):
    explode_at_seven.bytes = (pictures / "ant/00007.png").read_bytes()
    loader = leat.Loader(pictures, batch_size=5, shuffle=False, ops=[Python(explode_at_seven)])
    steps = iter(loader)
    next(steps)

    with pytest.raises(KeyError, match="no such breed") as raised:
        next(steps)

    shown = "".join(traceback.format_exception(raised.type, raised.value, raised.tb))
    assert 'raise KeyError("no such breed")  # The line that a user looks for.' in shown
    assert "ant/00007.png" in shown
    loader.close()


def test_what_a_function_gives_must_be_numbers(pictures):
    for wrong in (lambda data: None, lambda data: {"a": 1}, lambda data: [[1], [1, 2]]):
        with pytest.raises(leat.InvalidArgument, match="function gave"):
            batches(pictures, ops=[Python(wrong)])
    with pytest.raises(leat.InvalidArgument, match=r"but that of|the same shape") as raised:
        batches(pictures, ops=[DECODE, Python(lambda image, rng: image[: rng.integers(1, 9)])])
    assert "ragged=True" in str(raised.value)


HALVES = """
import os, sys, leat
from leat.ops import Python

def half(data):
    text = os.fsdecode(b"caf\\xe9")
    {ending}

try:
    loader = leat.Loader(sys.argv[1], batch_size=4, shuffle=False, ops=[Python(half, workers="threads")])
    next(iter(loader))
except leat.{error} as raised:
    print(ascii(str(raised)))
"""


@pytest.mark.parametrize(
    ("ending", "error", "says"),
    [
        (r"return 'so \ud83d'", "InvalidArgument", ["00000.png", "whose character 3 is half of one, a lone surrogate"]),
        ("raise leat.Corrupt(text)", "Corrupt", [r"caf\udce9"]),
        ("raise leat.Skipped(text)", "Skipped", [r"caf\udce9"]),
    ],
)
def test_a_text_with_a_lone_surrogate_is_an_error_and_does_not_end_the_process(pictures, ending, error, says):
    done = run_python(HALVES.format(ending=ending, error=error), pictures)

    assert done.returncode == 0, done.stderr[-2000:]
    assert all(part in done.stdout for part in says), done.stdout


def test_options_that_cannot_be_are_refused(pictures):
    with pytest.raises(leat.InvalidArgument, match="cannot be called"):
        Python(3)
    with pytest.raises(leat.InvalidArgument, match="per='item'"):
        Python(len, per="item")
    with pytest.raises(leat.InvalidArgument, match=r"gave float64 of shape \(10, 12, 3\).*uint8.*HWC"):
        batches(pictures, ops=[DECODE, Python(lambda image: image / 2), Resize(4)])
    with pytest.raises(leat.InvalidArgument, match="collate="):
        leat.Loader(pictures, batch_size=1, shuffle=True, collate=3)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_ops_of_ours_may_follow(pictures, layout):
    decode = DecodeImage(layout=layout)
    nothing = RandomHorizontalFlip(0)  # A draw depends on the op's place in the list.
    behind = [RandomResizedCrop(8), RandomHorizontalFlip(), Normalize(0.5, 0.25)]
    options = {"fields": ["image"], "batch": "dict", "seed": 4, "shuffle": True}

    (plain, *_) = batches(pictures, ops=[decode, nothing, *behind], **options)
    (around, *_) = batches(pictures, ops=[decode, Python(lambda image: image), *behind], **options)
    (twice, *_) = batches(pictures, ops=[decode, Python(lambda i: i), behind[0], Python(lambda i: 255 - i)], **options)
    (crops, *_) = batches(pictures, ops=[decode, nothing, behind[0]], **options)

    assert np.array_equal(twice["image"], 255 - crops["image"])
    assert np.array_equal(plain["image"], around["image"])


def test_a_function_may_decode_for_ops_of_ours(pictures):
    def decode(data):
        return Image.open(io.BytesIO(data))

    (batch, *_) = batches(pictures, ops=[Python(decode), Resize((5, 6))], fields=["data"])
    (ours, *_) = batches(pictures, ops=[DECODE, Resize((5, 6))], fields=["image"])

    assert np.array_equal(batch["data"], ours["image"])


def test_per_batch(pictures):
    def mix(batch, rng):
        assert batch["image"].shape == (10, 10, 12, 3)
        return {**batch, "weight": rng.random()}

    ops = [DECODE, Python(mix, per="batch")]
    first = batches(pictures, ops=ops)
    again = batches(pictures, ops=ops)

    assert [b["weight"] for b in first] == [b["weight"] for b in again]
    assert len({b["weight"] for b in first}) == 6
    (one, *_) = batches(pictures, ops=[Python(lambda labels: labels + 100, per="batch", field="label")])
    assert one["label"].tolist() == [100] * 10
    (pair, *_) = batches(pictures, batch="tuple", ops=[Python(lambda batch: batch[::-1], per="batch")])
    assert pair[0].tolist() == [0] * 10


def test_collate(pictures):
    def stack(samples):
        assert isinstance(samples, list)
        return [(int(label), image.mean()) for image, label in samples]

    found = batches(pictures, ops=[DECODE], batch="tuple", fields=("image", "label"), collate=stack)

    assert [len(batch) for batch in found] == [10] * 6
    assert found[1][3] == (0, pixels(13).mean())
    (dicts, *_) = batches(pictures, collate=lambda samples: samples)
    assert bytes(dicts[2]["data"]) == (pictures / "ant/00002.png").read_bytes()


def test_a_chain_calls_functions_too():
    chain = Chain([DECODE, Python(lambda image, rng: image + rng.integers(0, 2, dtype=np.uint8))])

    data = encoded(pixels(1))
    one, same, other = (chain(data, 0, 0, sample) for sample in (1, 1, 2))
    assert np.array_equal(one, same)
    assert {int((image - pixels(1)).max()) for image in (one, other)} <= {0, 1}


def test_a_function_that_draws_may_call_a_chain_with_another():
    inner = Chain([Python(lambda data: random.random(), global_rng=True)])
    outer = Chain([Python(lambda data: [random.random(), float(inner(b"x")), random.random()], global_rng=True)])
    made = []

    thread = threading.Thread(target=lambda: made.append(outer(b"x", 5).tolist()), daemon=True)
    thread.start()
    thread.join(timeout=10)

    assert not thread.is_alive()
    # The outer one draws on as if the inner one drew nothing.
    without = Chain([Python(lambda data: [random.random(), random.random()], global_rng=True)])
    assert [made[0][0], made[0][2]] == without(b"x", 5).tolist()
    assert made[0][1] == float(inner(b"x"))


def test_functions_run_at_once_where_they_let_go_of_the_gil(pictures):
    most, now, lock = 0, 0, threading.Lock()

    def slow(data):
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return 0

    batches(pictures, ops=[Python(slow)], threads=6)

    assert most > 1


def test_a_state_resumes_what_functions_drew(pictures):
    ops = [Python(lambda data, rng: rng.random(), to="x")]
    options = {"batch_size": 10, "shuffle": True, "ops": ops, "fields": ["x"], "batch": "dict", "seed": 5}
    whole = leat.Loader(pictures, **options)
    steps = iter(whole)
    next(steps)
    state = whole.state_dict()
    rest = [batch["x"].tolist() for batch in steps]

    resumed = leat.Loader(pictures, **options)
    resumed.load_state_dict(state)

    assert [batch["x"].tolist() for batch in resumed] == rest


ENDINGS = """
import sys, time, leat
from leat.ops import Python
loader = leat.Loader(sys.argv[1], batch_size=4, shuffle=True, ops=[Python(lambda data: time.sleep(0.05) or len(data))])
steps = iter(loader)
next(steps)
{ending}
print("end")
"""


@pytest.mark.parametrize(
    "ending",
    ["", "loader.close()", "del loader, steps", "loader.set_epoch(7); next(iter(loader))",
     "loader.load_state_dict(loader.state_dict())", "iter(loader)"],
)  # fmt: skip
def test_it_ends_while_functions_run(tmp_path, ending):
    make_pictures(tmp_path / "many", 200)

    done = run_python(ENDINGS.format(ending=ending), tmp_path / "many", timeout=30)

    assert (done.returncode, done.stdout.strip()) == (0, "end"), done.stderr


def has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is one core with any lock")
def test_threads_that_take_turns_in_python_are_told_of_the_lock(tmp_path):
    for number in range(400):
        write(tmp_path / f"{number:03}.bin", bytes([number % 256]) * 2000)

    def holds_the_lock(data):
        return sum(byte * byte % 7 for _ in range(5) for byte in data)

    with leat.research.Loader(
        str(tmp_path), batch_size=8, shuffle=True, ops=[Python(holds_the_lock)], threads=4, tune=False
    ) as loader:
        begun, is_told, epochs = time.monotonic(), False, 0
        # On a busy machine this thread may be late, and finds all batches ready: nothing is told of such an epoch.
        while epochs < 6 or (has_gil() and not is_told and time.monotonic() - begun < 60):
            list(loader)
            epochs += 1
            verdicts = [epoch["verdict"] for epoch in loader.stats()]
            is_told = is_told or any("interpreter's lock (GIL)" in verdict for verdict in verdicts)

    assert is_told == has_gil(), verdicts


def test_an_interpreter_without_a_gil_stays_so():
    done = run_python(
        "import sys, leat; print(getattr(sys, '_is_gil_enabled', lambda: True)())",
        PYTHONWARNINGS="error",  # Which it would say it with.
    )

    assert done.stdout.strip() == str(not sysconfig.get_config_var("Py_GIL_DISABLED")), done.stderr


@pytest.mark.parametrize("call", ["next()", "iter()", "peek()", "close()", "set_epoch()", "load_state_dict()"])
def test_a_loader_within_its_own_function_is_an_error_and_no_hang(pictures, call):
    calls = {
        "next()": lambda: next(running),
        "iter()": lambda: iter(loader),
        "peek()": lambda: loader.peek(),
        "close()": lambda: loader.close(),
        "set_epoch()": lambda: loader.set_epoch(3),
        "load_state_dict()": lambda: loader.load_state_dict(loader.state_dict()),
    }

    has_begun = threading.Event()

    def meddle(image):
        has_begun.wait(30)
        calls[call]()
        return image

    with leat.Loader(pictures, batch_size=4, shuffle=False, ops=[DECODE, Python(meddle)], fields=["image"]) as loader:
        running = iter(loader)
        has_begun.set()
        with pytest.raises(leat.InvalidArgument, match=re.escape(f"{call} of a loader inside a function of its own")):
            next(running)


def test_a_loader_within_anothers_function_works(pictures):
    with leat.Loader(pictures, batch_size=1, shuffle=False, batch="dict", output="numpy", fields=["label"]) as inner:
        running, lock = iter(inner), threading.Lock()

        def look_up(image):
            with lock:
                return np.int64(len(np.asarray(next(running)["label"])))

        found = batches(pictures, ops=[DECODE, Python(look_up, to="n")], fields=["n"], epochs=1)[:1]
    assert found[0]["n"].tolist() == [1] * 10


def test_a_loader_that_is_collected_within_its_own_function_ends():
    done = run_python("""
import gc, pathlib, sys, tempfile, threading, time
import numpy as np
import leat
from leat.ops import Python

folder = pathlib.Path(tempfile.mkdtemp())
for i in range(8):
    (folder / f"{i}").write_bytes(b"x")
gc.disable()
entered, dropped = threading.Event(), threading.Event()

def collect(data):
    entered.set()
    dropped.wait(30)
    gc.collect()
    return np.int64(1)

def make():
    loader = leat.Loader(folder, batch_size=2, shuffle=False, threads=1, ops=[Python(collect, field="data", to="n")], fields=["n"])
    iter(loader)
    loader._itself = loader  # Only a collection can end it.

make()
entered.wait(30)
dropped.set()
for _ in range(300):
    if not any(name.read_text().startswith("leat-") for name in pathlib.Path("/proc/self/task").glob("*/comm")):
        print("ended")
        break
    time.sleep(0.1)
""", timeout=60)
    assert done.stdout == "ended\n", done.stderr
