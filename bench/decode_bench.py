"""Decode, crop, resize, flip, normalise: images a second, chain against chain.

    python bench/decode_bench.py [--samples 200] [--runs 5] [--json]

Watch the ratio to `pillow`, which does what torchvision's transforms do on PIL
images, with the same draws. Runs are interleaved, so that a busy machine slows all
alike; median and median absolute deviation are of the runs. `leat_exact` decodes
every JPEG in full and so differs from Pillow by at most one level; `leat` may
decode at 1/2^n where a crop is at least twice the output.

The images are parts of the photographs that ship with scikit-learn and
scikit-image, 500 x 375, saved as JPEG, 4:2:0, or the files of
`--folder`. Chains whose packages are missing are left out and named.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import io
import pathlib
import statistics
import sys
import time
from typing import Callable

import measure
import numpy as np
import PIL

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
import pillow_chain  # noqa: E402

from leat.ops import (  # noqa: E402
    IMAGENET_MEAN,
    IMAGENET_STD,
    Chain,
    DecodeImage,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
)

SIZE = 224
SEED = 7
MEAN = np.asarray(IMAGENET_MEAN, np.float32)
STD = np.asarray(IMAGENET_STD, np.float32)
Work = Callable[[bytes, int], np.ndarray]


def leat_chain(exact: bool) -> Work:
    chain = Chain(
        [
            DecodeImage(exact=exact),
            RandomResizedCrop(SIZE),
            RandomHorizontalFlip(),
            Normalize(IMAGENET_MEAN, IMAGENET_STD),
        ]
    )
    return lambda data, sample: chain(data, SEED, 0, sample)


def pillow(data: bytes, sample: int) -> np.ndarray:
    return pillow_chain.train_chain(
        data, SIZE, SEED, 0, sample, IMAGENET_MEAN, IMAGENET_STD
    )


def opencv_chain(decode: Callable[[bytes], np.ndarray]) -> Work:
    """The usual one with OpenCV; INTER_LINEAR has no antialiasing, so other pixels."""
    import cv2

    cv2.setNumThreads(0)
    scale = 1 / (255 * STD)
    bias = MEAN / STD

    def work(data: bytes, sample: int) -> np.ndarray:
        image = decode(data)
        height, width = image.shape[:2]
        draws = pillow_chain.Draws(SEED, 0, sample, 1)
        x, y, w, h = pillow_chain.draw_crop(width, height, draws)
        image = cv2.resize(
            image[y : y + h, x : x + w], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR
        )
        if pillow_chain.Draws(SEED, 0, sample, 2).uniform() < 0.5:
            image = image[:, ::-1]
        planes = np.empty((3, SIZE, SIZE), np.float32)
        for c in range(3):
            np.multiply(image[:, :, c], scale[c], out=planes[c])
            planes[c] -= bias[c]
        return planes

    return work


def torchvision_chain() -> Work:
    """torch's own decoder and antialiased resize, on tensors."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)

    def work(data: bytes, sample: int) -> np.ndarray:
        raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        image = decode_jpeg(raw, mode=ImageReadMode.RGB)
        draws = pillow_chain.Draws(SEED, 0, sample, 1)
        x, y, w, h = pillow_chain.draw_crop(image.shape[2], image.shape[1], draws)
        image = functional.resized_crop(
            image, y, x, h, w, [SIZE, SIZE], antialias=True
        )
        if pillow_chain.Draws(SEED, 0, sample, 2).uniform() < 0.5:
            image = functional.horizontal_flip(image)
        image = functional.to_dtype(image, torch.float32, scale=True)
        return functional.normalize(
            image, list(IMAGENET_MEAN), list(IMAGENET_STD)
        ).numpy()

    return work


def with_cv2() -> Work:
    import cv2

    return opencv_chain(
        lambda data: cv2.cvtColor(
            cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR),
            cv2.COLOR_BGR2RGB,
        )
    )


def with_simplejpeg() -> Work:
    import simplejpeg

    return opencv_chain(
        lambda data: simplejpeg.decode_jpeg(
            data, "RGB", fastdct=False, fastupsample=False
        )
    )


MAKERS: dict[str, Callable[[], Work]] = {
    "leat": lambda: leat_chain(exact=False),
    "leat_exact": lambda: leat_chain(exact=True),
    "pillow": lambda: pillow,
    "opencv": with_cv2,
    "simplejpeg_opencv": with_simplejpeg,
    "torchvision_tensors": torchvision_chain,
}


def photographs() -> list[np.ndarray]:
    found = []
    try:
        from sklearn.datasets import load_sample_images

        found += load_sample_images().images
    except ImportError:
        pass
    try:
        from skimage import data

        for name in ("astronaut", "chelsea", "coffee", "rocket"):
            found.append(getattr(data, name)())
    except (ImportError, OSError, ValueError):
        pass
    if not found:
        sys.exit("no photographs: pip install scikit-learn, or name a --folder")
    return [image for image in found if image.shape[0] >= 300]


def make_images(samples: int, quality: int) -> list[bytes]:
    from PIL import Image

    rng = np.random.default_rng(1)
    sources = photographs()
    images = []
    for i in range(samples):
        source = sources[i % len(sources)]
        height = int(rng.integers(int(source.shape[0] * 0.6), source.shape[0] + 1))
        width = min(height * 4 // 3, source.shape[1])
        y = int(rng.integers(0, source.shape[0] - height + 1))
        x = int(rng.integers(0, source.shape[1] - width + 1))
        part = Image.fromarray(source[y : y + height, x : x + width])
        out = io.BytesIO()
        part.resize((500, 375), Image.Resampling.LANCZOS).save(
            out, "JPEG", quality=quality, subsampling=2
        )
        images.append(out.getvalue())
    return images


def run_share(name: str, images: list[bytes], first: int, step: int) -> None:
    work = WORKS[name]
    for sample in range(first, len(images), step):
        work(images[sample], sample)


WORKS: dict[str, Work] = {}
IMAGES: list[bytes] = []


def run_in_process(name: str, first: int, step: int) -> None:
    run_share(name, IMAGES, first, step)


def race(names: list[str], images: list[bytes], runs: int, workers: int) -> dict:
    """Images a second of every chain in every run; with one worker, by CPU time, so
    that other programs on the machine do not count. Our chain runs in threads;
    Python's own run in processes that were forked beforehand, which is the best for
    them."""
    rates: dict[str, list[float]] = {name: [] for name in names}
    processes = concurrent.futures.ProcessPoolExecutor(workers)
    threads = concurrent.futures.ThreadPoolExecutor(workers)
    for run in range(runs + 1):
        for name in names:
            is_ours = name.startswith("leat")
            now = time.process_time if workers == 1 else time.perf_counter
            begin = now()
            if workers == 1:
                run_share(name, images, 0, 1)
            else:
                pool = threads if is_ours else processes
                shares = [
                    pool.submit(run_in_process, name, i, workers)
                    for i in range(workers)
                ]
                for share in shares:
                    share.result()
            seconds = now() - begin
            if run > 0:  # The first warms up.
                rates[name].append(len(images) / seconds)
    processes.shutdown()
    threads.shutdown()
    return rates


def summary(rates: dict[str, list[float]]) -> list[dict]:
    base = statistics.median(rates["pillow"])
    rows = []
    for name, values in rates.items():
        median = statistics.median(values)
        rows.append(
            {
                "chain": name,
                "images_per_second": round(median, 1),
                "mad": round(statistics.median(abs(v - median) for v in values), 1),
                "to_pillow": round(median / base, 2),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--quality", type=int, default=90)
    parser.add_argument("--folder", type=pathlib.Path, help="JPEGs to use instead")
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    parser.add_argument("--quick", action="store_true", help="one short run: does it work?")
    args = parser.parse_args()
    if args.quick:
        args.samples, args.runs, args.workers = 20, 1, [1]

    missing = {}
    for name, make in MAKERS.items():
        try:
            WORKS[name] = make()
        except (ImportError, OSError, RuntimeError) as error:
            missing[name] = str(error)
    if args.folder:
        paths = sorted(args.folder.rglob("*.jp*g"))[: args.samples]
        IMAGES.extend(path.read_bytes() for path in paths)
    else:
        IMAGES.extend(make_images(args.samples, args.quality))

    for name, why in missing.items():
        print(f"decode: without {name}: {why}", file=sys.stderr)
    rows = [
        {"workers": workers, **row}
        for workers in args.workers
        for row in sorted(summary(race(list(WORKS), IMAGES, args.runs, workers)), key=lambda row: -row["images_per_second"])
    ]
    size = round(statistics.mean(map(len, IMAGES)))
    measure.report(
        f"decode: {len(IMAGES)} images of {size / 1e3:.0f} KB, {args.runs} interleaved runs, Pillow {PIL.__version__}",
        rows, args.json,
    )  # fmt: skip


if __name__ == "__main__":
    main()
