"""MixUp and CutMix against torchvision v2 at the same draws; how they are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leat
from leat import _native
from leat.ops import (
    Chain,
    CutMix,
    DecodeImage,
    MixUp,
    Normalize,
    Python,
    RandomChoice,
    RandomResizedCrop,
)
from test_ops import encoded, picture
from torchvision_oracle import torch, v2


def batch_of(samples: int = 6, classes: int = 5, kind: str = "torch", layout: str = "CHW"):
    rng = np.random.default_rng(1)
    shape = (samples, 3, 14, 20) if layout == "CHW" else (samples, 14, 20, 3)
    images = rng.normal(size=shape).astype(np.float32)
    labels = rng.integers(0, classes, samples)
    if kind == "numpy":
        return {"image": images, "label": labels}
    return {"image": torch.from_numpy(images), "label": torch.from_numpy(labels)}


class Drawn:
    """A generator that gives what it is told, as both need it."""

    def __init__(self, share: float, *whole: int) -> None:
        self._share, self._whole = share, list(whole)

    def beta(self, *_):
        return self._share

    def integers(self, _):
        return self._whole.pop(0)


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_mixup_is_torchvisions(kind, is_own):
    theirs = v2.MixUp(num_classes=5)
    given = batch_of()
    for share in np.linspace(0, 1, 200):
        theirs.make_params = lambda _, share=share: {"lam": float(share)}
        images, labels = theirs(given["image"], given["label"])
        got = MixUp(num_classes=5).apply(batch_of(kind=kind), Drawn(float(share)), is_own=is_own)
        np.testing.assert_allclose(np.asarray(got["image"]), images.numpy(), atol=1e-6)
        np.testing.assert_allclose(np.asarray(got["label"]), labels.numpy(), atol=1e-6)
        assert str(got["label"].dtype).endswith("float32")


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_cutmix_is_torchvisions(kind, is_own, layout, monkeypatch):
    theirs = v2.CutMix(num_classes=5)
    given = batch_of(layout=layout)
    images = given["image"] if layout == "CHW" else given["image"].permute(0, 3, 1, 2)
    rng = np.random.default_rng(2)
    for share in rng.uniform(size=200):
        x, y = int(rng.integers(20)), int(rng.integers(14))
        drawn = [torch.tensor([x]), torch.tensor([y])]
        with monkeypatch.context() as patched:
            patched.setattr(theirs, "_dist", type("Dist", (), {"sample": lambda *_, s=share: torch.tensor(s)}))
            patched.setattr(torch, "randint", lambda *_, drawn=drawn, **__: drawn.pop(0))
            expected, labels = theirs(images, given["label"])
        op = CutMix(num_classes=5, layout=layout)
        batch = batch_of(kind=kind, layout=layout)
        got = op.apply(batch, Drawn(float(np.float32(share)), x, y), is_own=is_own)
        mixed = np.asarray(got["image"])
        mixed = mixed if layout == "CHW" else mixed.transpose(0, 3, 1, 2)
        np.testing.assert_array_equal(mixed, expected.numpy())
        np.testing.assert_allclose(np.asarray(got["label"]), labels.numpy(), atol=1e-6)


def test_what_they_are_given_stays_as_it_is():
    for kind in ("numpy", "torch"):
        for op in (MixUp(num_classes=5), CutMix(num_classes=5)):
            given = batch_of(kind=kind)
            op.apply(given, np.random.default_rng(3))
            np.testing.assert_array_equal(np.asarray(given["image"]), np.asarray(batch_of()["image"]))


def memory_of(array) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("op", [MixUp(num_classes=5), CutMix(num_classes=5)])
def test_their_own_batch_is_mixed_where_it_lies(op, kind):
    given = batch_of(kind=kind)
    got = op.apply(given, np.random.default_rng(3), is_own=True)
    expected = op.apply(batch_of(kind=kind), np.random.default_rng(3))
    assert memory_of(got["image"]) == memory_of(given["image"])
    for field in ("image", "label"):
        np.testing.assert_array_equal(np.asarray(got[field]), np.asarray(expected[field]))
    assert not np.array_equal(np.asarray(got["image"]), np.asarray(batch_of()["image"]))


def test_soft_labels_of_their_own_are_mixed_where_they_lie():
    soft = np.eye(6, dtype=np.float32)
    got = MixUp().apply(batch_of(kind="numpy") | {"label": soft}, Drawn(0.75), is_own=True)
    assert got["label"] is soft
    np.testing.assert_array_equal(soft, 0.75 * np.eye(6) + 0.25 * np.roll(np.eye(6), 1, 0))


def test_what_may_not_be_written_is_copied():
    given = batch_of(kind="numpy")
    given["image"].flags.writeable = False
    for op in (MixUp(num_classes=5), CutMix(num_classes=5)):
        op.apply(given, np.random.default_rng(3), is_own=True)
    np.testing.assert_array_equal(given["image"], batch_of(kind="numpy")["image"])


def apart(array):
    """The same numbers with others between them, which the engine does not reach."""
    wide = torch.stack((array, array), -1) if isinstance(array, torch.Tensor) else np.stack((array, array), -1)
    return wide[..., 0]


STEPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 0, "float64": 0}
"""How far the engine may be away from the others, who round more often: a unit of the type."""


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", STEPS)
def test_the_engine_blends_as_numpy_and_torch_do(dtype, kind):
    images = batch_of(kind=kind)["image"]
    if kind == "torch":
        images = images.to(getattr(torch, dtype))
    elif dtype == "bfloat16":
        images = images.astype(pytest.importorskip("ml_dtypes").bfloat16)
    else:
        images = images.astype(dtype)
    most = float(abs(images).max())
    for share in (0.0, 0.1, 1 / 3, 0.8, 1.0):
        mixed = [
            MixUp(num_classes=5).apply({"image": given, "label": np.arange(6) % 5}, Drawn(share))["image"]
            for given in (images, apart(images))
        ]
        assert mixed[0].dtype == images.dtype
        engine, other = (np.asarray(each.double() if kind == "torch" else each.astype(np.float64)) for each in mixed)
        np.testing.assert_allclose(engine, other, rtol=0, atol=STEPS[dtype] * most)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_what_the_engine_does_not_reach_is_cut_the_same(layout, kind):
    op = CutMix(num_classes=5, layout=layout)
    given = batch_of(kind=kind, layout=layout)
    lying_apart = {**given, "image": apart(given["image"])}
    for seed in range(20):
        got = [op.apply(each, np.random.default_rng(seed))["image"] for each in (given, lying_apart)]
        np.testing.assert_array_equal(np.asarray(got[0]), np.asarray(got[1]))


def test_tensors_that_torch_follows_are_left_to_it():
    given = batch_of()
    given["image"].requires_grad_()
    got = MixUp(num_classes=5).apply(given, Drawn(0.75), is_own=True)
    got["image"].sum().backward()
    np.testing.assert_allclose(given["image"].grad.numpy(), 1)


def test_numbers_in_the_other_order_of_bytes():
    given = batch_of(kind="numpy")
    swapped = given | {"image": given["image"].astype(">f4")}
    for op in (MixUp(num_classes=5), CutMix(num_classes=5)):
        got = [op.apply(each, np.random.default_rng(3))["image"] for each in (given, swapped)]
        np.testing.assert_array_equal(got[0], got[1])


WHOLE = {"planes": 2, "rows": 3, "row_bytes": 4, "first_row": 0, "part_rows": 3, "first_byte": 0, "part_bytes": 4}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda batch: _native.blend_samples(batch, 5, "float32", 0.5), "no samples of equal size"),
        (lambda batch: _native.blend_samples(batch, 0, "float32", 0.5), "no samples of equal size"),
        (lambda batch: _native.blend_samples(batch, 2, "uint8", 0.5), "uint8 are no floats"),
        (lambda batch: _native.blend_samples(batch[::2], 1, "float32", 0.5), "one after the other"),
        (lambda batch: _native.blend_samples(bytes(24), 2, "float32", 0.5), "writable"),
        (lambda batch: _native.paste_samples(batch, **WHOLE | {"planes": 5}), "no samples of that shape"),
        (lambda batch: _native.paste_samples(batch, **WHOLE | {"first_row": 1}), "beyond the sample"),
        (lambda batch: _native.paste_samples(batch, **WHOLE | {"first_byte": 1}), "beyond the sample"),
    ],
)
def test_the_engine_refuses_memory_that_is_no_batch(call, message):
    with pytest.raises((ValueError, BufferError), match=message):
        call(np.zeros(24, np.uint8))


def test_soft_labels_and_uint8_pictures():
    soft = np.full((6, 4), 0.25, np.float32)
    batch = batch_of(kind="numpy") | {"label": soft}
    np.testing.assert_allclose(MixUp().apply(batch, np.random.default_rng(0))["label"], soft)
    whole = {"image": np.arange(6 * 3 * 8 * 8, dtype=np.uint8).reshape(6, 3, 8, 8), "label": np.arange(6)}
    cut = CutMix(num_classes=6).apply(whole, np.random.default_rng(0))
    assert cut["image"].dtype == np.uint8
    share = (cut["image"] == whole["image"])[:, 0].mean(axis=(1, 2))
    np.testing.assert_allclose(cut["label"][np.arange(6), np.arange(6)], share, atol=1e-6)
    with pytest.raises(leat.InvalidArgument, match="blends floats, not uint8"):
        MixUp(num_classes=6).apply(whole, np.random.default_rng(0))


def test_shares_are_drawn_from_beta():
    rng = np.random.default_rng(4)
    given = {"image": np.eye(2, dtype=np.float32).reshape(2, 1, 1, 2), "label": np.arange(2)}
    shares = np.array([MixUp(0.4, 2).apply(given, rng)["label"][0, 0] for _ in range(4000)])
    assert abs(shares.mean() - 0.5) < 5 * shares.std() / math.sqrt(4000)
    assert abs(shares.var() - 0.25 / 1.8) < 0.006  # 1 / (4 (2 alpha + 1))


@pytest.mark.parametrize(
    ("op", "change", "message"),
    [
        (MixUp(), {}, "num_classes has to be given"),
        (MixUp(num_classes=3), {"label": np.array([0, 1, 2, 3, 0, 0])}, "reach from 0 to 3, not 0 to 2"),
        (MixUp(num_classes=3), {"label": np.array([0.5] * 6)}, "no numbers of classes"),
        (MixUp(num_classes=3), {"label": np.zeros((6, 5))}, "5 classes, not 3"),
        (MixUp(num_classes=5), {"image": np.zeros((6, 4))}, "no batch of pictures"),
        (MixUp(num_classes=5), {"label": np.arange(4)}, "6 pictures, and 4 labels"),
        (MixUp(num_classes=5, image="photo"), {}, "no field 'photo'; it has image, label"),
        (CutMix(num_classes=5), {"image": np.zeros((6, 20, 20, 3))}, "say layout="),
    ],
)
def test_what_cannot_be_mixed_raises(op, change, message):
    with pytest.raises(leat.InvalidArgument, match=message):
        op.apply(batch_of(kind="numpy") | change, np.random.default_rng(0))


def test_bad_parameters_raise():
    for make in (lambda: MixUp(0), lambda: CutMix(num_classes=0), lambda: RandomChoice([]),
                 lambda: RandomChoice([MixUp()], [0]), lambda: RandomChoice([MixUp()], [1, 1])):  # fmt: skip
        with pytest.raises(leat.InvalidArgument):
            make()
    with pytest.raises(leat.InvalidArgument, match="works on batches, and a Chain on one sample"):
        Chain([DecodeImage(), MixUp(num_classes=2)])


def photographs(tmp_path, count: int = 16):
    for i in range(count):
        folder = tmp_path / f"class{i % 3}"
        folder.mkdir(exist_ok=True)
        (folder / f"{i}.png").write_bytes(encoded(picture(40, 30, seed=i), "PNG"))


def loader(tmp_path, *mixing, **options):
    ops = [DecodeImage(), RandomResizedCrop(24), Normalize(0.5, 0.5), *mixing]
    options = {"global_batch_size": 4, "shuffle": True, "seed": 5, "fields": ("image", "label"),
               "batch": "tuple", "output": "torch", **options}  # fmt: skip
    return leat.Loader(tmp_path, ops=ops, **options)


CHOICE = RandomChoice([MixUp(num_classes=3), CutMix(num_classes=3)])


def test_batches_of_a_loader_depend_on_no_thread_and_resume(tmp_path):
    photographs(tmp_path)
    with loader(tmp_path, CHOICE) as one:
        whole = [[field.clone() for field in batch] for _ in range(2) for batch in one]
    assert whole[0][0].shape == (4, 3, 24, 24) and whole[0][1].shape == (4, 3)
    for _, labels in whole:
        np.testing.assert_allclose(labels.sum(1), 1, atol=1e-6)
    with loader(tmp_path, CHOICE, threads=3) as two:
        iterator = iter(two)
        first = [[field.clone() for field in next(iterator)] for _ in range(2)]
        state = two.state_dict()
    with loader(tmp_path, CHOICE, threads=1) as three:
        three.load_state_dict(state)
        rest = [[field.clone() for field in batch] for _ in range(2) for batch in three]
    for got, expected in zip(first + rest, whole, strict=True):
        for mine, wanted in zip(got, expected):
            assert torch.equal(mine, wanted)


def test_batches_are_mixed_differently_and_both_ways(tmp_path):
    photographs(tmp_path)
    plain = loader(tmp_path, batch="dict")
    mixed = loader(tmp_path, CHOICE, batch="dict")
    kinds = set()
    with plain, mixed:
        for _ in range(6):
            for before, after in zip(plain, mixed):
                images, neighbours = before["image"], before["image"].roll(1, 0)
                is_one_of_both = (after["image"] == images) | (after["image"] == neighbours)
                kinds.add(bool(is_one_of_both.all()))
    assert kinds == {True, False}


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_a_loader_mixes_its_batches_where_they_lie(tmp_path, output, monkeypatch):
    photographs(tmp_path)
    seen = []

    def taken(self, batch, rng, *, is_own=False):
        made = apply(self, batch, rng, is_own=is_own)
        seen.append((memory_of(batch["image"]), memory_of(made["image"])))
        return made

    apply = MixUp.apply
    monkeypatch.setattr(MixUp, "apply", taken)
    with loader(tmp_path, MixUp(num_classes=3), output=output) as one:
        for _ in one:
            pass
    assert len(seen) == 4 and all(before == after for before, after in seen)


def test_what_a_function_of_batches_kept_stays_as_it_was(tmp_path):
    photographs(tmp_path)
    kept = []

    def keep(batch):
        kept.append((batch["image"], batch["image"].clone()))
        return batch

    with loader(tmp_path, Python(keep, per="batch"), CHOICE, batch="dict") as one:
        for batch in one:
            assert not torch.equal(batch["image"], kept[-1][1])
    assert len(kept) == 4 and all(torch.equal(mine, copy) for mine, copy in kept)


def test_functions_of_batches_may_stand_around_them(tmp_path):
    photographs(tmp_path)
    seen = []
    after = Python(lambda batch: seen.append(batch[1].shape) or batch, per="batch")
    with loader(tmp_path, MixUp(num_classes=3), after) as one:
        next(iter(one))
    assert seen == [(4, 3)]
    with loader(tmp_path, after, MixUp(num_classes=3)) as one:
        with pytest.raises(leat.InvalidArgument, match="put it before other ops of batches"):
            next(iter(one))
