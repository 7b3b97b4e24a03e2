#!/usr/bin/env python3
"""Tries a new wheel where it is installed, with numpy and nothing else.

    try_wheel.py FOLDER

FOLDER holds ``digits``, as examples/digits.py makes it. Serves it as a bucket over TLS,
reads every picture of it once, trains the tutorial's network on it in numpy, and fails if
it reads fewer than 95 % of the digits that it has not seen. A slim wheel serves no bucket:
it takes the one that AWS's variables name.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time

import leat
import numpy as np
from leat import ops

EPOCHS = 8


def loader_of(part: str, *, train: bool, epochs: int = 1) -> leat.Loader:
    """Batches of (images, labels): [B, 1, 8, 8] float32 from 0 to 1, and [B] int64."""
    return leat.Loader(
        f"s3://digits/{part}", global_batch_size=64, train=train, seed=0, epochs=epochs, output="numpy",
        fields=("image", "label"), ops=[ops.DecodeImage(mode="L"), ops.Cast("float32")],
    )  # fmt: skip


class Network:
    """3 x 3 convolution to 32 channels, ReLU, 64 units, ReLU, 10 classes; Adam."""

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        sizes = ((9, 32), (2048, 64), (64, 10))
        self.weights = [draw.normal(0, (2 / rows) ** 0.5, (rows, columns)).astype("f4") for rows, columns in sizes]
        self.weights += [np.zeros(columns, "f4") for _, columns in sizes]
        self.moments = [(np.zeros_like(one), np.zeros_like(one)) for one in self.weights]
        self.steps = 0

    def forward(self, images: np.ndarray) -> list[np.ndarray]:
        """Each layer's input, then the scores [B, 10]."""
        first, second, third, *biases = self.weights
        padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2)).reshape(-1, 9)
        maps = np.maximum(windows @ first + biases[0], 0).reshape(len(images), -1)
        hidden = np.maximum(maps @ second + biases[1], 0)
        return [windows, maps, hidden, hidden @ third + biases[2]]

    def step(self, images: np.ndarray, labels: np.ndarray) -> float:
        windows, maps, hidden, scores = self.forward(images)
        odds = np.exp(scores - scores.max(1, keepdims=True))
        odds /= odds.sum(1, keepdims=True)
        loss = -np.log(odds[np.arange(len(labels)), labels]).mean()
        odds[np.arange(len(labels)), labels] -= 1
        third = odds / len(labels)
        second = third @ self.weights[2].T * (hidden > 0)
        first = (second @ self.weights[1].T * (maps > 0)).reshape(-1, 32)
        self.update([windows.T @ first, maps.T @ second, hidden.T @ third, first.sum(0), second.sum(0), third.sum(0)])
        return float(loss)

    def update(self, slopes: list[np.ndarray]) -> None:
        self.steps += 1
        for weight, slope, (mean, square) in zip(self.weights, slopes, self.moments):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            rate = 3e-3 * (1 - 0.999**self.steps) ** 0.5 / (1 - 0.9**self.steps)
            weight -= rate * mean / (np.sqrt(square) + 1e-8)


def train() -> float:
    """The share of the held-out digits that are read right."""
    network = Network()
    with loader_of("train", train=True, epochs=EPOCHS) as loader:
        for _ in range(EPOCHS):
            for images, labels in loader:
                loss = network.step(images, labels)
        print(f"  loss {loss:.3f} after {network.steps} steps", file=sys.stderr)
    right = seen = 0
    with loader_of("test", train=False) as loader:
        for images, labels in loader:
            right += int((network.forward(images)[-1].argmax(1) == labels).sum())
            seen += len(labels)
    assert seen == 359, seen
    return right / seen


def main() -> None:
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        if "AWS_ENDPOINT_URL" not in os.environ:
            bucket = stack.enter_context(leat.testing.Bucket(sys.argv[1], latency="5ms", tls=True))
            os.environ.update(bucket.env())
        share = train()
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}: "
          f"{share:.1%} of the held-out digits are read right, {time.monotonic() - begin:.0f} s")  # fmt: skip
    sys.exit(0 if share > 0.95 else f"fewer than 95 %: {share:.1%}")


if __name__ == "__main__":
    main()
