"""A cloud function that reads its part of a dataset of pictures, and says what is in it.

Invoke it W times, with {"url": "s3://bucket/train", "rank": 0, "world_size": W} and so on. The answers add up to
those of the whole: the pictures of each class, and the sums from which the mean and the deviation of each channel
follow, as leat.ops.Normalize wants them. docs/howto/serverless.md says how to deploy and add up.
"""

from __future__ import annotations

from typing import Any

import leat
import numpy as np
from leat import ops

SIZE = 64  # Pixels, of each side.


def handler(event: dict[str, Any], context: Any = None) -> dict[str, Any]:
    dataset = leat.Dataset(event["url"])
    counts: dict[str, int] = dict.fromkeys(dataset.classes, 0)
    sums, squares, pixels = np.zeros(3), np.zeros(3), 0
    with leat.Loader(
        dataset,
        batch_size=32,
        train=False,
        drop_last="join",  # A part may have a batch less than another.
        rank=event["rank"],
        world_size=event["world_size"],
        epochs=1,
        fields=("image", "label"),
        ops=[ops.DecodeImage(), ops.Resize((SIZE, SIZE))],
        output="numpy",
        memory="64MiB",  # A part of the function's, which holds Python and NumPy too.
    ) as loader:
        for images, labels in loader:
            for label, count in zip(*np.unique(labels, return_counts=True)):
                counts[dataset.classes[label]] += int(count)
            values = images.astype(np.float32) / 255
            sums += values.sum(axis=(0, 2, 3), dtype=np.float64)
            squares += np.square(values).sum(axis=(0, 2, 3), dtype=np.float64)
            pixels += len(images) * SIZE * SIZE
        told = loader.stats()
    return {
        "counts": counts,
        "sums": sums.tolist(),
        "squares": squares.tolist(),
        "pixels": pixels,
        "content_hash": told[0]["content_hash"] if told else "0" * 32,
    }
