"""Each op of pictures on one thread, beside torchvision's: microseconds a picture.

    ./dev bench ops [--runs 7] [--only MixUp,CutMix] [--page docs/reference/ops.md] [--json]

Pictures are 224 x 224 uint8. torchvision gets each as a Pillow image and as a tensor,
and is compared by the faster of the two. Ours goes from Python into the engine and back
(`nothing` is that alone). Ops that change only some pictures change all of them here.
MixUp and CutMix get batches of 32 x 3 x 224 x 224 float32 as tensors; theirs is a new batch,
and ours the old one, as in a loader. Runs are interleaved, so that a busy machine slows all
alike: watch the ratios. `--only` measures the ops with these words in their names. `--page`
writes the page of the ops with the measurements.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import measure
import numpy as np
import PIL
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
from torchvision_oracle import F, torch, v2  # noqa: E402

from leat import ops  # noqa: E402

SIDE = 224
LEAST_SECONDS = 0.01
"""That one reading takes, or more."""
SAMPLES = 32
MEAN, STD = ops.IMAGENET_MEAN, ops.IMAGENET_STD
BILINEAR = v2.InterpolationMode.BILINEAR


def photograph() -> np.ndarray:
    """A part of one that ships with scikit-learn."""
    from sklearn.datasets import load_sample_images

    image = Image.fromarray(load_sample_images().images[0]).resize((SIDE, SIDE))
    return np.asarray(image)


CHAIN_OURS = [
    ops.RandomResizedCrop(SIDE), ops.RandomHorizontalFlip(),
    ops.RandomAffine(15, (0.1, 0.1), (0.9, 1.1), interpolation="bilinear"),
    ops.ColorJitter(0.4, 0.4, 0.4, 0.1), ops.RandomGrayscale(0.1), ops.GaussianBlur(9),
    ops.Normalize(MEAN, STD), ops.RandomErasing(),
]  # fmt: skip
CHAIN_THEIRS = [
    v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(),
    v2.RandomAffine(15, (0.1, 0.1), (0.9, 1.1), interpolation=BILINEAR),
    v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomGrayscale(0.1), v2.GaussianBlur(9),
    v2.Normalize(MEAN, STD), v2.RandomErasing(),
]  # fmt: skip

# Ours, torchvision's, and the two with the parameters that were measured.
PAIRS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("`Resize`", "`Resize`", [ops.Resize((160, 160))], [v2.Resize((160, 160), antialias=True)]),
    ("`CenterCrop`", "`CenterCrop`", [ops.CenterCrop(160)], [v2.CenterCrop(160)]),
    ("`RandomResizedCrop`", "`RandomResizedCrop`", [ops.RandomResizedCrop(SIDE)], [CHAIN_THEIRS[0]]),
    ("`RandomCrop`", "`RandomCrop`", [ops.RandomCrop(SIDE, 16)], [v2.RandomCrop(SIDE, 16)]),
    ("`Pad`", "`Pad`", [ops.Pad(16)], [v2.Pad(16)]),
    ("`Letterbox`", "", [ops.Letterbox((160, 320))], []),
    ("`FiveCrop`", "`FiveCrop`", [ops.FiveCrop(160)], [v2.FiveCrop(160)]),
    ("`TenCrop`", "`TenCrop`", [ops.TenCrop(160)], [v2.TenCrop(160)]),
    ("`RandomHorizontalFlip`", "`RandomHorizontalFlip`", [ops.RandomHorizontalFlip(1)], [v2.RandomHorizontalFlip(1)]),
    ("`RandomVerticalFlip`", "`RandomVerticalFlip`", [ops.RandomVerticalFlip(1)], [v2.RandomVerticalFlip(1)]),
    ("`RandomRotation`, nearest", "`RandomRotation`", [ops.RandomRotation(30)], [v2.RandomRotation(30)]),
    ("`RandomRotation`, bilinear", "`RandomRotation`", [ops.RandomRotation(30, "bilinear")],
     [v2.RandomRotation(30, BILINEAR)]),
    ("`RandomAffine`, bilinear", "`RandomAffine`", [CHAIN_OURS[2]], [CHAIN_THEIRS[2]]),
    ("`RandomRotation`, bicubic", "`RandomRotation`", [ops.RandomRotation(30, "bicubic")],
     [v2.RandomRotation(30, v2.InterpolationMode.BICUBIC)]),
    ("`ColorJitter`", "`ColorJitter`", [CHAIN_OURS[3]], [CHAIN_THEIRS[3]]),
    ("`Grayscale`", "`Grayscale`", [ops.Grayscale()], [v2.Grayscale()]),
    ("`RandomGrayscale`", "`RandomGrayscale`", [ops.RandomGrayscale(1)], [v2.RandomGrayscale(1)]),
    ("`GaussianBlur`, 3", "`GaussianBlur`", [ops.GaussianBlur(3)], [v2.GaussianBlur(3)]),
    ("`GaussianBlur`, 23", "`GaussianBlur`", [ops.GaussianBlur(23)], [v2.GaussianBlur(23)]),
    ("`RandomPosterize`", "`RandomPosterize`", [ops.RandomPosterize(4, 1)], [v2.RandomPosterize(4, 1)]),
    ("`RandomSolarize`", "`RandomSolarize`", [ops.RandomSolarize(128, 1)], [v2.RandomSolarize(128, 1)]),
    ("`RandomInvert`", "`RandomInvert`", [ops.RandomInvert(1)], [v2.RandomInvert(1)]),
    ("`RandomEqualize`", "`RandomEqualize`", [ops.RandomEqualize(1)], [v2.RandomEqualize(1)]),
    ("`RandomAutocontrast`", "`RandomAutocontrast`", [ops.RandomAutocontrast(1)], [v2.RandomAutocontrast(1)]),
    ("`RandomAdjustSharpness`", "`RandomAdjustSharpness`", [ops.RandomAdjustSharpness(2, 1)],
     [v2.RandomAdjustSharpness(2, 1)]),
    ("`RandAugment`", "`RandAugment`", [ops.RandAugment()], [v2.RandAugment()]),
    ("`AutoAugment`", "`AutoAugment`", [ops.AutoAugment()], [v2.AutoAugment()]),
    ("`TrivialAugmentWide`", "`TrivialAugmentWide`", [ops.TrivialAugmentWide()], [v2.TrivialAugmentWide()]),
    ("`AugMix`", "`AugMix`", [ops.AugMix()], [v2.AugMix()]),
    ("`Normalize`", "`Normalize`", [CHAIN_OURS[6]], [CHAIN_THEIRS[6]]),
    ("`RandomErasing` after `Normalize`", "both", [CHAIN_OURS[6], ops.RandomErasing(1)],
     [CHAIN_THEIRS[6], v2.RandomErasing(1)]),
]  # fmt: skip
PILLOW_ALONE = {"`RandomRotation`, bicubic"}
"""torchvision turns no tensor so."""
CHAINS = [
    ("eight ops", "eight ops", CHAIN_OURS, CHAIN_THEIRS),
    ("the same without the blur", "", [op for op in CHAIN_OURS if not isinstance(op, ops.GaussianBlur)],
     [op for op in CHAIN_THEIRS if not isinstance(op, v2.GaussianBlur)]),
]  # fmt: skip


def ours(picture: np.ndarray, chain: list[Any]) -> Callable[[], Any]:
    made = ops.Chain([ops.DecodeImage(layout="HWC"), *chain])
    sample = iter(range(10**9))
    return lambda: made(picture, sample=next(sample))


def theirs(given: Any, chain: list[Any]) -> Callable[[], Any]:
    """With floats before Normalize, as its users write it."""
    parts: list[Any] = []
    for op in chain:
        if isinstance(op, v2.Normalize):
            parts += [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
        parts.append(op)
    composed = v2.Compose(parts)
    return lambda: composed(given)


def mixing() -> list[tuple[str, str, dict[str, Callable[[], Any]]]]:
    """For batches of floats: for each sample."""
    rng = np.random.default_rng(0)
    images = torch.rand(SAMPLES, 3, SIDE, SIDE)
    own = images.clone()
    labels = torch.randint(1000, (SAMPLES,))
    rows = []
    for name in ("MixUp", "CutMix"):
        mine, other = getattr(ops, name)(num_classes=1000), getattr(v2, name)(num_classes=1000)
        ways = {
            "leat": lambda mine=mine: mine.apply({"image": own, "label": labels}, rng, is_own=True),
            "tensor": lambda other=other: other(images, labels),
        }
        rows.append((f"`{name}`, batches of {SAMPLES}", f"`{name}`", ways))
    return rows


def reading(way: Callable[[], Any], samples: int) -> dict[str, float]:
    """Microseconds a picture."""
    count, spent = 1, 0.0
    while True:
        begin = time.perf_counter()
        for _ in range(count):
            way()
        spent = time.perf_counter() - begin
        if spent >= LEAST_SECONDS:
            return {"us": spent / count / samples * 1e6}
        count *= 2


def row_of(name: str, other: str, ways: dict[str, Callable[[], Any]], runs: int, samples: int = 1) -> dict[str, Any]:
    for way in ways.values():
        way()
    readings: dict[str, list[float]] = {kind: [] for kind in ways}
    for _ in range(runs):
        for kind, way in ways.items():
            readings[kind].append(reading(way, samples)["us"])
    median = {kind: measure.spread(values)[0] for kind, values in readings.items()}
    fastest = min((us for kind, us in median.items() if kind != "leat"), default=None)
    return {
        "op": name, "torchvision": other, **{kind: round(us, 1) for kind, us in median.items()},
        "ratio": None if fastest is None else round(fastest / median["leat"], 1),
    }  # fmt: skip


def rows(runs: int, only: list[str]) -> list[dict[str, Any]]:
    def is_asked(name: str) -> bool:
        return not only or any(word in name for word in only)

    picture = photograph()
    image, tensor = Image.fromarray(picture), F.pil_to_tensor(Image.fromarray(picture))
    found = [row_of("nothing", "", {"leat": ours(picture, [])}, runs)] if is_asked("nothing") else []
    asked = [pair for pair in [*PAIRS, *CHAINS] if is_asked(pair[0])]
    for name, other, mine, their in asked:
        print(name, file=sys.stderr)
        ways = {"leat": ours(picture, mine)}
        if their:
            ways["pillow"] = theirs(image, their)
        if their and name not in PILLOW_ALONE:
            ways["tensor"] = theirs(tensor, their)
        found.append(row_of(name, other, ways, runs))
    batches = [row_of(name, other, ways, runs, SAMPLES) for name, other, ways in mixing() if is_asked(name)]
    singles = len(found) - sum(pair in CHAINS for pair in asked)
    return [*found[:singles], *batches, *found[singles:]]


COLUMNS = ("Leat", "torchvision, Pillow image", "torchvision, tensor", "times as fast")


def table(found: list[dict[str, Any]]) -> str:
    lines = ["| op | torchvision's | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    for row in found:
        cells = [row.get(kind) for kind in ("leat", "pillow", "tensor", "ratio")]
        written = ["" if cell is None else f"{cell:,.1f}" if cell < 100 else f"{cell:,.0f}" for cell in cells]
        lines.append(f"| {row['op']} | {row['torchvision']} | " + " | ".join(written) + " |")
    return "\n".join(lines)


PAGE = """# The ops of pictures, torchvision's, and their cost

Names, parameters and random distributions are those of torchvision's `transforms.v2`. Pixels equal those that it makes
of Pillow's images, byte for byte, except for a blur and `AugMix`, which are within one level. An op after these two can
widen that level. If torchvision's two backends differ, Leat follows Pillow's: `AugMix` mixes Pillow's parts, while
torchvision's mixes those of a tensor. `Letterbox` is ours. All parameters: `leat ops`, or
`help(leat.ops.RandomAffine)`.

- Ops that turn, move or shear take `"nearest"`, `"bilinear"` and `"bicubic"`.
- `RandomErasing` works on the delivered array behind `Normalize` or `Cast`, and on bytes before them.
- `MixUp` and `CutMix` work on the batch, in the thread that calls `next()`. The engine mixes the batch where it lies
  and makes no second one, in NumPy's memory and in that of a tensor on the CPU. Behind an `ops.Python(per="batch")`,
  which may have kept the batch, it mixes a copy. torch mixes a batch on a device, and JAX one of its own. Labels become
  float32 of shape `(samples, num_classes)`. `RandomChoice` draws one of several for each batch.
- `FiveCrop` and `TenCrop` give the field a first dimension of 5 and 10; only `Normalize` and
  `Cast` can come behind them.
- An op that moves pixels moves masks (nearest), boxes and keypoints of the sample by the same draw; `RandAugment` and
  similar ops change the colours of images only. `AugMix`, `FiveCrop` and `TenCrop` raise if a sample has masks, boxes
  or keypoints.
- `Chain.drawn(data, seed, epoch, sample)` returns the draws for a picture.

`./dev bench ops` measured: microseconds for a picture of 224 x 224 on one thread, the median of {runs} interleaved
runs. `nothing` is the way of a picture from Python into the engine and back; all of our times include it, but a loader
does not need it. For `MixUp` and `CutMix` the times are a thirty-second of the time for a float32 batch of 32 x 3 x
224 x 224 with labels of 1,000 classes, which both get as tensors: torchvision makes a new batch, Leat writes into the
one that it has. The last column compares with the faster of torchvision's two. Trust the ratios: the times are this
machine's.

{machine}

{table}

Eight ops are {chain}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.only and arguments.page:
        parser.error("the page has all ops: leave --only out")
    torch.set_num_threads(1)
    found = rows(max(arguments.runs, 5), [word for word in arguments.only.split(",") if word])
    if arguments.json:
        measure.report("ops", found, is_json=True)
    else:
        measure.keep("ops", found)
        print(table(found))
    if arguments.page:
        where = measure.machine()
        text = (
            f"{where['cpu']}, {where['cpus']} CPUs, load {where['load']:.1f}; Python {where['python']}, "
            f"torch {torch.__version__}, Pillow {PIL.__version__}."
        )
        chain = ", ".join(f"`{op!r}`" for op in CHAIN_OURS)
        arguments.page.write_text(
            PAGE.format(runs=max(arguments.runs, 5), machine=text, table=table(found), chain=chain)
        )


if __name__ == "__main__":
    main()
