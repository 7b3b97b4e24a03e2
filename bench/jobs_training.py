"""One of several trainings on one dataset: reads it for some epochs and says what came.

    jobs_training.py '{"loader": "leat" | "torch", "url": ..., "seed": 1, "epochs": 3, ...}'

It says "ready" on stdout, waits for a line on stdin, and trains (a step takes no time).
Then it reports its end, on a clock that all processes share, and its results. Leat's
stays until a second line, since the others read from its memory.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import sys
import time
import urllib.parse
from typing import Any

import numpy as np
from PIL import Image

BATCH = 32
MEAN = np.asarray([0.485, 0.456, 0.406], np.float32) * 255
STD = np.asarray([0.229, 0.224, 0.225], np.float32) * 255


def chain(data: bytes, draw: np.random.Generator) -> np.ndarray:
    """Leat's work in OPS, by Pillow and NumPy."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BILINEAR)
    left, top = (int(draw.integers(0, side - 224 + 1)) for side in image.size)
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)))
    if draw.random() < 0.5:
        pixels = pixels[:, ::-1]
    return ((pixels - MEAN) / STD).transpose(2, 0, 1)


class Photographs:
    """A torch user's dataset: a connection to the bucket in each worker."""

    def __init__(self, url: str, keys: list[str], seed: int) -> None:
        self.url = urllib.parse.urlsplit(url)
        self.keys = keys
        self.seed = seed
        self.connection: http.client.HTTPConnection | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Any, int, bytes]:
        import torch

        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.url.netloc)
            self.draw = np.random.default_rng()
        self.connection.request("GET", f"{self.url.path}/{self.keys[index]}")
        data = self.connection.getresponse().read()
        pixels = torch.from_numpy(np.ascontiguousarray(chain(data, self.draw)))
        return pixels, index, hashlib.blake2b(data, digest_size=16).digest()


def train_torch(told: dict) -> Any:
    import torch
    import torch.utils.data

    torch.manual_seed(told["seed"])
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Photographs(told["http_url"], told["keys"], told["seed"]), batch_size=BATCH, shuffle=True,
        num_workers=told["workers"], persistent_workers=True, collate_fn=collate,
    )  # fmt: skip
    yield
    for _ in range(told["epochs"]):
        ids: list[int] = []
        digest = 0
        for _images, indices, digests in loader:
            ids.extend(indices)
            digest += sum(int.from_bytes(one, "little") for one in digests)
        yield {"is_whole": sorted(ids) == list(range(len(told["keys"]))), "content": f"{digest % 2**128:032x}"}


def collate(items: list) -> tuple[Any, list[int], list[bytes]]:
    import torch

    images, indices, digests = zip(*items)
    return torch.stack(images), list(indices), list(digests)


def train_leat(told: dict) -> Any:
    import leat

    with leat.research.Loader(
        told["url"], global_batch_size=BATCH, shuffle=True, seed=told["seed"], epochs=told["epochs"], drop_last=False, ids=True,
        ops=[leat.ops.DecodeImage(), leat.ops.Resize(256), leat.ops.RandomCrop(224),
             leat.ops.RandomHorizontalFlip(), leat.ops.Normalize("imagenet")],
        hashes=told["hashes"], cache=leat.Cache(**told["cache"]) if told["cache"] else None,
        storage_options={"endpoint_url": told["endpoint"], "no_sign_request": True},
    ) as loader:  # fmt: skip
        yield
        for _ in range(told["epochs"]):
            ids = np.concatenate([batch["index"] for batch in loader])
            stats = loader.stats()[-1]
            yield {
                "is_whole": sorted(ids.tolist()) == list(range(len(told["keys"]))),
                "content": stats.get("content_hash"),
                "decoded_hits": stats["cache"]["decoded_hits"],
            }


def main() -> None:
    told = json.loads(sys.argv[1])
    training = {"torch": train_torch, "leat": train_leat}[told["loader"]](told)
    next(training)
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    epochs = []
    began = time.process_time()
    for epoch in training:
        taken = time.process_time() - began
        epochs.append({**epoch, "ended": time.monotonic(), "cpu_seconds": taken})
        began += taken
        if len(epochs) == told["epochs"]:
            print(json.dumps(epochs), flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    main()
