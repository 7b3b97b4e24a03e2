"""MixUp and CutMix against torchvision v2 at the same draws; how they are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leat
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


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_mixup_is_torchvisions(kind):
    theirs = v2.MixUp(num_classes=5)
    given = batch_of()
    for share in np.linspace(0, 1, 200):
        theirs.make_params = lambda _, share=share: {"lam": float(share)}
        images, labels = theirs(given["image"], given["label"])
        got = MixUp(num_classes=5).apply(batch_of(kind=kind), Drawn(float(share)))
        np.testing.assert_allclose(np.asarray(got["image"]), images.numpy(), atol=1e-6)
        np.testing.assert_allclose(np.asarray(got["label"]), labels.numpy(), atol=1e-6)
        assert str(got["label"].dtype).endswith("float32")


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_cutmix_is_torchvisions(kind, layout, monkeypatch):
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
        got = op.apply(batch_of(kind=kind, layout=layout), Drawn(float(np.float32(share)), x, y))
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
