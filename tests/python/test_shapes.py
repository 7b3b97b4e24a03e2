"""Pictures of several sizes: as a Ragged, filled up to one size, alone, and to collate."""

from __future__ import annotations

import json
import struct
import sys
import types

import numpy as np
import pytest

import leat
from leat import errors
from leat.ops import (
    Cast,
    Chain,
    DecodeImage,
    DecodeMask,
    LoadNpy,
    Normalize,
    PadTo,
    ParseJson,
    Python,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from small_datasets import encoded, pixels, run_python, tar_of, write

N = 24
GAUGES = ("leat_runtime_reserved_bytes", "leat_runtime_executor_tasks")


def size_of(number: int) -> tuple[int, int]:
    """Height and width."""
    return 5 + number * 7 % 13, 6 + number * 5 % 11


def picture(number: int) -> np.ndarray:
    height, width = size_of(number)
    return pixels(number, width, height)


def chw(number: int) -> np.ndarray:
    return picture(number).transpose(2, 0, 1)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uneven")
    for number in range(N):
        write(folder / f"{number:02}.png", encoded(picture(number)))
    return folder


def load(source, **options):
    options = {"batch_size": 4, "shuffle": False, "drop_last": False, "ids": True,
               "rank": 0, "world_size": 1, "output": "numpy", "batch": "dict", **options}  # fmt: skip
    if "global_batch_size" in options:
        del options["batch_size"]
    return leat.Loader(source, **options)


def by_sample(loader) -> dict[int, np.ndarray]:
    found = {}
    for batch in loader:
        for index, image in zip(batch["index"], batch["image"]):
            found[int(index)] = np.array(image)
    return found


def hash_of(loader) -> str:
    for _ in loader:
        pass
    return loader.stats()[-1]["content_hash"]


def test_ragged_pictures_have_their_own_shapes(uneven):
    loader = load(uneven, ops=[DecodeImage(ragged=True)])
    for step, batch in enumerate(loader):
        images = batch["image"]
        assert isinstance(images, leat.Ragged) and len(images) == 4
        numbers = range(step * 4, step * 4 + 4)
        assert images.shapes.tolist() == [[3, *size_of(n)] for n in numbers]
        assert images.values.ndim == 1 and images.offsets[-1] == len(images.values)
        for image, number in zip(images, numbers):
            np.testing.assert_array_equal(image, chw(number))
        assert np.shares_memory(images[1], images.values)
        assert images.tolist()[-1] == chw(numbers[-1]).tolist()
        assert "3 dimensions" in repr(images)
    assert step == N / 4 - 1


def test_a_ragged_of_a_torch_type_that_numpy_has_not_pads_and_becomes_lists():
    torch = pytest.importorskip("torch")
    values = torch.arange(12).to(torch.bfloat16)
    rows = leat.Ragged(values, torch.tensor([0, 2, 2, 6])).pad(value=-1)
    assert rows.dtype == torch.bfloat16
    assert rows.tolist() == [[0, 1, -1, -1], [-1] * 4, [2, 3, 4, 5]]
    of_pairs = leat.Ragged(values.reshape(6, 2), torch.tensor([1, 2, 4])).pad(3)
    assert of_pairs.tolist() == [[[2, 3], [0, 0], [0, 0]], [[4, 5], [6, 7], [0, 0]]]
    assert leat.Ragged(values, torch.tensor([0, 2, 2, 6])).tolist() == [[0, 1], [], [2, 3, 4, 5]]
    assert leat.Ragged(values.to(torch.uint8), torch.tensor([0, 2, 2, 6])).tolist() == [b"\0\1", b"", b"\2\3\4\5"]
    tokens = leat.Ragged(values.to(torch.uint16), torch.tensor([0, 1, 3])).pad()
    assert tokens.dtype == torch.uint16 and tokens.tolist() == [[0, 0], [1, 2]]


class OfJax:
    """As an array of jax's: neither NumPy's nor torch's."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.dtype = array.dtype

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.array


@pytest.mark.parametrize("is_there", [False, True])
def test_a_ragged_of_jax_pads_to_an_array_of_jax(monkeypatch, is_there):
    if is_there:
        kind, asarray = (jax := pytest.importorskip("jax", reason="jax is not installed")).Array, jax.numpy.asarray
    else:
        kind = asarray = OfJax
        monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(numpy=types.SimpleNamespace(asarray=asarray)))
    pictures = np.arange(10, dtype=np.float32), np.array([0, 6, 10]), np.array([[1, 2, 3], [1, 4, 1]])
    padded = leat.Ragged(*map(asarray, pictures)).pad((4, 3), value=-1)
    assert isinstance(padded, kind) and padded.dtype == np.float32
    np.testing.assert_array_equal(padded, leat.Ragged(*pictures).pad((4, 3), value=-1))


def test_ragged_in_torch(uneven):
    torch = pytest.importorskip("torch")
    (batch, *_) = load(uneven, ops=[DecodeImage(ragged=True), Cast("float16")], output="torch")
    images = batch["image"]
    assert all(isinstance(image, torch.Tensor) for image in list(images))
    assert images[2].dtype == torch.float16 and tuple(images[2].shape) == (3, *size_of(2))
    nested = images.to_nested()
    assert [tuple(one.shape) for one in nested.unbind()] == [(3, *size_of(n)) for n in range(4)]
    padded = images.pad((20, 30), value=-1)
    assert padded.dtype == torch.float16 and tuple(padded.shape) == (4, 3, 20, 30)
    assert bool((padded[0, :, size_of(0)[0] :] == -1).all())


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_ops_before_it_are_those_of_a_chain(uneven, layout, mode):
    ops = [RandomHorizontalFlip(), Resize(7), Normalize(0.4, 0.3)]
    decode = {"mode": mode, "layout": layout}
    loader = load(uneven, ops=[DecodeImage(ragged=True, **decode), *ops], seed=9, shuffle=True)
    chain = Chain([DecodeImage(**decode), *ops])
    for index, image in by_sample(loader).items():
        data = (uneven / f"{index:02}.png").read_bytes()
        np.testing.assert_array_equal(image, chain(data, 9, 0, index))


def test_a_fixed_size_is_ragged_too_where_that_was_said(uneven):
    (batch, *_) = load(uneven, ops=[DecodeImage(ragged=True), RandomResizedCrop(8)])
    assert isinstance(batch["image"], leat.Ragged)
    assert batch["image"].shapes.tolist() == [[3, 8, 8]] * 4


def test_a_ragged_pads():
    ragged = leat.Ragged(np.arange(10), np.array([0, 6, 10]), np.array([[1, 2, 3], [1, 4, 1]]))
    assert ragged.pad().shape == (2, 1, 4, 3)
    assert ragged.pad((4, 3), value=-1)[1, 0].tolist() == [[n, -1, -1] for n in (6, 7, 8, 9)]
    assert ragged.pad((1, 4, 4)).shape == (2, 1, 4, 4)
    hwc = leat.Ragged(np.arange(18), np.array([0, 12, 18]), np.array([[2, 2, 3], [1, 2, 3]]))
    assert hwc.pad((9, 9)).shape == (2, 9, 9, 3)
    # One row high: (H, W, C) or (C, H, W).
    flat = leat.Ragged(np.arange(51), np.array([0, 15, 51]), np.array([[1, 5, 3], [1, 12, 3]]))
    with pytest.raises(errors.InvalidArgument, match=r"\(C, H, W\) or \(H, W, C\); give.* \(1, 16, 20\) or \(16, 20, 3\)"):
        flat.pad((16, 20))
    assert flat.pad((16, 20, 3)).shape == (2, 16, 20, 3)
    with pytest.raises(errors.InvalidArgument, match=r"sample 1 of the batch is \(1, 4, 1\); give"):
        ragged.pad((3, 3))
    with pytest.raises(errors.InvalidArgument, match="3 dimensions"):
        ragged.pad(9)


def filled(numbers, height, width, fill=0, dtype=np.uint8) -> np.ndarray:
    images = np.full((len(numbers), 3, height, width), fill, dtype)
    for row, number in zip(images, numbers):
        own = chw(number)
        row[:, : own.shape[1], : own.shape[2]] = own
    return images


def test_pad_to_fills_up_to_the_batchs_largest(uneven):
    ops = [DecodeImage(), PadTo("largest", fill=9)]
    for step, batch in enumerate(load(uneven, ops=ops, fields=["image", "image_size", "index"], ids=False)):
        numbers = range(step * 4, step * 4 + 4)
        sizes = np.array([size_of(n) for n in numbers])
        np.testing.assert_array_equal(batch["image_size"], sizes)
        assert batch["image_size"].dtype == np.int64
        np.testing.assert_array_equal(batch["image"], filled(numbers, *sizes.max(axis=0), fill=9))
    assert list(batch) == ["image", "image_size", "index"]


@pytest.mark.parametrize("op, size", [(PadTo(multiple=32), (32, 32)), (PadTo((20, 40)), (20, 40)), (PadTo(19), (19, 19))])
def test_pad_to_a_size_or_a_multiple(uneven, op, size):
    for step, batch in enumerate(load(uneven, ops=[DecodeImage(), op])):
        numbers = range(step * 4, step * 4 + 4)
        np.testing.assert_array_equal(batch["image"], filled(numbers, *size))
        assert "image_size" not in batch


def test_pad_to_behind_a_normalize_fills_with_its_numbers(uneven):
    ops = [Normalize(0.5, 0.5), PadTo((20, 20), fill=-1.5)]
    (batch, *_) = load(uneven, ops=[DecodeImage(layout="HWC"), *ops])
    data = (uneven / "01.png").read_bytes()
    own = Chain([DecodeImage(layout="HWC"), ops[0]])(data)
    image = batch["image"][1]
    assert image.shape == (20, 20, 3) and image.dtype == np.float32
    np.testing.assert_array_equal(image[: own.shape[0], : own.shape[1]], own)
    assert (image[own.shape[0] :] == -1.5).all() and (image[:, own.shape[1] :] == -1.5).all()


def test_sizes_come_beside_a_ragged_too(uneven):
    (batch, *_) = load(uneven, ops=[DecodeImage(ragged=True)], fields=["image_size", "image"], ids=False)
    assert batch["image_size"].tolist() == [list(size_of(n)) for n in range(4)]


def test_a_batch_of_one_has_its_own_shape(uneven, tmp_path):
    for options in ({"batch_size": 1}, {"global_batch_size": 2, "rank": 1, "world_size": 2}):
        found = [(int(b["index"][0]), b["image"]) for b in load(uneven, ops=[DecodeImage()], **options)]
        assert len(found) in (N, N / 2)
        for index, image in found:
            assert isinstance(image, np.ndarray) and image.shape == (1, 3, *size_of(index))
            np.testing.assert_array_equal(image[0], chw(index))
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", np.ones((i + 1, 3 - i), np.int32))
    shapes = [batch["data"].shape for batch in load(tmp_path, batch_size=1, ops=[LoadNpy()])]
    assert shapes == [(1, 1, 3), (1, 2, 2), (1, 3, 1)]


def test_collate_sees_each_samples_own_array(uneven):
    seen = []

    def collate(samples):
        seen.extend((int(s["index"]), s["image"].copy()) for s in samples)
        return len(samples)

    assert list(load(uneven, ops=[DecodeImage()], collate=collate)) == [4] * 6
    assert [index for index, _ in seen] == list(range(N))
    for index, image in seen:
        np.testing.assert_array_equal(image, chw(index))


def test_collate_sees_arrays_lists_and_what_functions_give_of_any_shape(tmp_path):
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.full((i + 1, 4 - i), i))
    ops = [LoadNpy(to="array")]
    (samples,) = load(tmp_path, ops=ops, collate=list)
    assert [s["array"].shape for s in samples] == [(i + 1, 4 - i) for i in range(4)]
    (samples,) = load(tmp_path, ops=[*ops, Python(lambda x: x.T)], collate=list)
    assert [s["array"].tolist() for s in samples] == [[[i] * (i + 1)] * (4 - i) for i in range(4)]


def test_collate_sees_lists_out_of_json(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.json").write_text(str([i] * (i + 1)))
    (samples,) = load(tmp_path, ops=[ParseJson(to="numbers", field="data")], collate=list)
    assert [s["numbers"].tolist() for s in samples] == [[i] * (i + 1) for i in range(4)]


def test_other_shapes_are_refused_with_what_to_write(uneven):
    with pytest.raises(errors.InvalidArgument) as raised:
        list(load(uneven, ops=[DecodeImage()]))
    message = str(raised.value)
    assert '"01.png"' in message and '"00.png"' in message and "its shape is (3, 12, 11)" in message
    assert "DecodeImage(ragged=True)" in message and "leat.ops.PadTo()" in message


@pytest.mark.parametrize(
    "ops, fields, message",
    [
        ([DecodeImage(), PadTo(), Resize(8)], None, "put it behind all other ops of its field"),
        ([DecodeImage(), PadTo((9, 9))], None, r'"\d\d.png" is \d+ x \d+ \(height, width\), and PadTo has room for 9 x 9'),
        ([DecodeImage(), PadTo(fill=256)], None, r"PadTo\(fill=...\): 256 is no uint8"),
        ([DecodeImage(), PadTo()], ["image_size"], 'without "image"'),
        ([DecodeImage()], ["image", "image_size"], 'names "image_size", but there are only'),
    ],
)
def test_what_cannot_be_is_refused(uneven, ops, fields, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        list(load(uneven, ops=ops, fields=fields, ids=False))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: PadTo("smallest"), "largest"),
        (lambda: PadTo(8, multiple=4), "cannot both"),
        (lambda: PadTo(multiple=0), "multiple=0"),
        (lambda: PadTo(fill="black"), "fill='black'"),
    ],
)
def test_pad_to_is_checked_early(make, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        make()


def test_functions_take_and_give_any_size(uneven):
    def crop(image):
        return image[:, 1:, 2:]

    (batch, *_) = load(uneven, ops=[DecodeImage(ragged=True), Python(crop)])
    np.testing.assert_array_equal(batch["image"][3], chw(3)[:, 1:, 2:])
    (batch, *_) = load(uneven, ops=[DecodeImage(), Python(crop), PadTo((20, 20))])
    np.testing.assert_array_equal(batch["image"][3, :, : size_of(3)[0] - 1, : size_of(3)[1] - 2], crop(chw(3)))


def test_a_bad_samples_place_is_taken_in_its_shape(uneven, tmp_path):
    for number in range(4):
        data = (uneven / f"{number:02}.png").read_bytes()
        write(tmp_path / f"{number}.png", data[:-20] if number == 1 else data)
    fields = ["image", "image_size"]
    (batch,) = load(tmp_path, ops=[DecodeImage(ragged=True)], fields=fields, on_error="substitute")
    other = batch["index"].tolist()[1]
    assert batch["index"].tolist() == [0, other, 2, 3] and other != 1
    np.testing.assert_array_equal(batch["image"][1], chw(other))
    assert batch["image_size"][1].tolist() == list(size_of(other))


def test_a_large_picture_of_another_shape_is_decoded_within_memory_or_refused_by_its_shape(uneven, tmp_path):
    """It is bad besides, which only decoding tells: 9.3 MiB, for which 4 MiB have no room."""
    write(tmp_path / "0.png", (uneven / "00.png").read_bytes())
    large = encoded(np.zeros((1800, 1800, 3), np.uint8))
    middle = len(large) // 2
    write(tmp_path / "1.png", large[:middle] + bytes(byte ^ 0x5A for byte in large[middle : middle + 64]) + large[middle + 64 :])
    options = {"ops": [DecodeImage()], "batch_size": 2, "on_error": "substitute"}

    with pytest.raises(errors.InvalidArgument, match=r"its shape is \(3, 1800, 1800\)"):
        list(load(tmp_path, memory="4MiB", **options))

    batches = list(load(tmp_path, memory="64MiB", **options))
    assert [batch["index"].tolist() for batch in batches] == [[0, 0]]


def test_peek_is_a_copy(uneven):
    loader = load(uneven, ops=[DecodeImage(ragged=True)])
    peeked = loader.peek()["image"]
    (batch, *_) = loader
    peeked.values[:] = 0
    peeked.shapes[:] = 0
    np.testing.assert_array_equal(batch["image"][2], chw(2))


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """A shard of pictures and masks of their sizes, whose labels are numbers of rows."""
    folder = tmp_path_factory.mktemp("masked")
    members = []
    for number in range(8):
        members += [(f"{number}.image", encoded(picture(number))), (f"{number}.mask", encoded(mask(number)))]
    write(folder / "0.tar", tar_of(members))
    return folder


def mask(number: int) -> np.ndarray:
    height, width = size_of(number)
    return np.repeat(np.arange(height, dtype=np.uint8)[:, None], width, axis=1) + np.arange(width, dtype=np.uint8)


BOTH = [RandomHorizontalFlip(1)]


def test_masks_are_filled_up_beside_their_pictures(masked):
    ops = [DecodeImage("image"), DecodeMask("mask", dtype="int64"), *BOTH, PadTo(multiple=16)]
    fields = ["image", "mask", "image_size", "mask_size"]
    for step, batch in enumerate(load(masked, ops=ops, fields=fields, ids=False)):
        assert batch["mask"].shape == (4, *batch["image"].shape[2:]) and batch["mask"].shape[2] % 16 == 0
        np.testing.assert_array_equal(batch["image_size"], batch["mask_size"])
        for row in range(4):
            number = step * 4 + row
            height, width = size_of(number)
            image, labels = batch["image"][row], batch["mask"][row]
            np.testing.assert_array_equal(image[:, :height, :width], chw(number)[:, :, ::-1])
            np.testing.assert_array_equal(labels[:height, :width], mask(number)[:, ::-1])
            assert (image[:, height:] == 0).all() and (labels[height:] == 255).all()
            assert (labels[:, width:] == 255).all() and labels.dtype == np.int64


def test_masks_are_ragged_beside_their_pictures(masked):
    ops = [DecodeImage("image", ragged=True), DecodeMask("mask", ragged=True), *BOTH]
    for step, batch in enumerate(load(masked, ops=ops)):
        for row, (image, labels) in enumerate(zip(batch["image"], batch["mask"])):
            np.testing.assert_array_equal(image, chw(step * 4 + row)[:, :, ::-1])
            np.testing.assert_array_equal(labels, mask(step * 4 + row)[:, ::-1])


def test_a_function_of_both_gives_any_size(masked):
    def crop(image, labels):
        return image[:, 1:], labels[1:]

    ops = [DecodeImage("image", ragged=True), DecodeMask("mask", ragged=True), Python(crop, fields=("image", "mask"))]
    (batch, _) = load(masked, ops=ops)
    assert batch["image"].shapes[:, 1].tolist() == [size_of(n)[0] - 1 for n in range(4)]
    np.testing.assert_array_equal(batch["mask"][3], mask(3)[1:])


RAGGED = {"ops": [DecodeImage(ragged=True), RandomHorizontalFlip()], "shuffle": True, "seed": 6}


@pytest.mark.parametrize("ops", [RAGGED["ops"], [DecodeImage(), RandomHorizontalFlip(), PadTo()]])
def test_ranks_and_resume_deliver_the_same_bytes(uneven, ops):
    options = {**RAGGED, "ops": ops}
    whole = int(hash_of(load(uneven, **options)), 16)
    ranks = [load(uneven, **{**options, "global_batch_size": 6, "rank": r, "world_size": 2}) for r in range(2)]
    assert sum(int(hash_of(loader), 16) for loader in ranks) % 2**128 == whole

    first = load(uneven, **options)
    begun = iter(first)
    for _ in range(2):
        next(begun)
    state = first.state_dict()
    first.close()
    parts = int(first.stats()[-1]["content_hash"], 16)
    second = load(uneven, **options)
    second.load_state_dict(state)
    assert (parts + int(hash_of(second), 16)) % 2**128 == whole


def test_the_content_hash_is_the_documented_one(uneven):
    xxhash = pytest.importorskip("xxhash")

    def expected(has_shape: bool) -> int:
        total = 0
        for i in range(N):
            data = struct.pack("<QQ", 0, i) + b"image\0" + chw(i).tobytes()
            if has_shape:
                data += struct.pack("<3q", 3, *size_of(i))
            total += xxhash.xxh3_128_intdigest(data)
        return total % 2**128

    for ops in ([DecodeImage(ragged=True)], [DecodeImage(), PadTo(multiple=8, fill=3)]):
        assert int(hash_of(load(uneven, ops=ops)), 16) == expected(True)
    for options in ({"batch_size": 1}, {"collate": lambda samples: None}):
        assert int(hash_of(load(uneven, ops=[DecodeImage()], **options)), 16) == expected(False)


def test_equal_sizes_hash_as_they_always_did(pictures):
    ops = [DecodeImage()]
    known = hash_of(load(pictures, ops=ops))
    assert hash_of(load(pictures, ops=ops, batch_size=1)) == known
    assert hash_of(load(pictures, ops=ops, collate=len)) == known


@pytest.mark.parametrize("last", [[], [PadTo()], [Python(lambda image: image)]])
def test_decoded_samples_of_a_cache_are_the_same(uneven, serve, last):
    served = serve(uneven)
    ops = [DecodeImage(ragged=not last or not isinstance(last[0], PadTo)), RandomHorizontalFlip(), *last]
    options = {"global_batch_size": 4, "shuffle": True, "seed": 6, "ops": ops, "epochs": 3}

    def epochs(**more):
        with served.loader(**options, **more) as loader:
            for _ in range(3):
                for _ in loader:
                    pass
            return loader.stats()

    plain = epochs()
    kept = epochs(cache=leat.Cache(ram=2**23, form="decoded"))
    assert [e["content_hash"] for e in kept] == [e["content_hash"] for e in plain]
    assert kept[2]["cache"]["decoded_hits"] == N


@pytest.fixture(scope="module")
def uneasy(tmp_path_factory):
    """Small pictures, and now and then one of a hundred times their pixels."""
    folder = tmp_path_factory.mktemp("uneasy")
    for number in range(40):
        side = 300 if number % 8 == 7 else 30
        image = np.full((side, side, 3), number, np.uint8)
        write(folder / f"{number:02}.png", encoded(image))
    return folder


@pytest.mark.parametrize(
    "ops",
    [
        [DecodeImage(ragged=True)],
        [DecodeImage(), PadTo()],
        [DecodeImage(ragged=True), Python(lambda image: image)],
    ],
)
def test_memory_holds_what_nobody_could_have_guessed(uneasy, ops):
    # One batch of four needs up to 4 x 270 KB, padded, and the pictures themselves.
    loader = load(uneasy, ops=ops, memory="1600KiB")
    expected = hash_of(load(uneasy, ops=ops))
    for _ in range(3):
        for batch in loader:
            number = int(batch["index"][0])
            assert batch["image"][0][0, 0, 0] == number
    assert loader.stats()[0]["content_hash"] == expected
    del batch
    loader.close()
    assert [loader.metrics()[name] for name in GAUGES] == [0, 0]


HOARD = """
import json, pathlib, sys
import leat
from leat.ops import DecodeImage

def memory(name):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024

loader = leat.research.Loader(sys.argv[1], batch_size=8, shuffle=False, ops=[DecodeImage(ragged=True)],
                     memory=sys.argv[2], threads=2, tune=False, output="numpy")
before = memory("VmRSS")
pathlib.Path("/proc/self/clear_refs").write_text("5")
batches = iter(loader)
seen = len(next(batches)["image"])
quiet = 0
while quiet < 2_000:  # Until nothing is done any more but what waits for us.
    quiet = 0 if loader.metrics()["leat_runtime_executor_tasks"] else quiet + 1
ahead = memory("VmHWM") - before
seen += sum(len(batch["image"]) for batch in batches)
print(json.dumps({"ahead": ahead, "seen": seen}))
"""


def test_large_pictures_wait_for_memory_and_not_in_it(tmp_path):
    # Twelve of 7 MB that nobody has seen the like of, all of them asked for at once.
    mib = 2**20
    for number in range(96):
        side = 1500 if number % 8 == 7 else 10
        write(tmp_path / f"{number:02}.png", encoded(np.zeros((side, side, 3), np.uint8)))
    done = run_python(HOARD, tmp_path, "40MiB", timeout=80)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["seen"] == 96
    # memory=, the part of the next batch beyond its guess, and two decoders'
    # own.
    assert found["ahead"] < (40 + 14 + 20) * mib


def test_a_guess_is_never_why_there_is_no_room(tmp_path):
    # A picture needs 2 x 2.2 MB; half as much again is more than there is.
    for number in range(8):
        write(tmp_path / f"{number}.png", encoded(np.zeros((850, 850, 3), np.uint8)))
    loader = load(tmp_path, ops=[DecodeImage(ragged=True)], memory="6MiB", batch_size=1)
    for _ in range(3):
        assert sum(len(batch["image"]) for batch in loader) == 8
    loader = load(tmp_path, ops=[DecodeImage(ragged=True)], memory="6MiB", batch_size=2)
    with pytest.raises(errors.ResourceExhausted, match="the values of a batch of 2 samples need"):
        list(loader)


def test_pictures_that_can_never_fit_say_what_they_need(uneasy):
    with pytest.raises(errors.ResourceExhausted, match=r"the values of a batch of 4 samples need .* or more, but memory="):
        list(load(uneasy, ops=[DecodeImage(), PadTo()], memory="500KiB"))


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_it_ends_while_rows_wait_for_memory(uneasy, taken):
    loader = load(uneasy, ops=[DecodeImage(ragged=True)], memory="1200KiB")
    begun = iter(loader)
    for _ in range(taken):
        next(begun)
    loader.close()
    assert [loader.metrics()[name] for name in GAUGES] == [0, 0]
