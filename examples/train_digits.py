"""Trains a network to read handwritten digits, from PNG objects in a bucket.

    ./dev run python examples/train_digits.py               # its own bucket, 55 ms away
    ./dev run python examples/train_digits.py s3://mine/digits    # train/ and test/ below that
"""

from __future__ import annotations

import sys

import digits
import leat
import torch
from leat import ops
from torch import nn

EPOCHS = 8


def make_loader(url: str, *, train: bool, epochs: int, **store: object) -> leat.Loader:
    """Batches of (images, labels): [B, 1, 8, 8] float32 from 0 to 1, and [B] int64."""
    return leat.Loader(
        url,
        global_batch_size=64,
        train=train,
        seed=0,
        fields=("image", "label"),
        ops=[ops.DecodeImage(mode="L"), ops.Cast("float32")],
        max_in_flight=256,
        epochs=epochs,
        **store,
    )


def train(url: str, **store: object) -> float:
    """Trains on ``url``/train and returns the accuracy on ``url``/test."""
    torch.set_num_threads(1)  # One core trains, the others load.
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(1, 32, kernel_size=3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 10)),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    with make_loader(f"{url}/train", train=True, epochs=EPOCHS, **store) as loader:
        for _ in range(EPOCHS):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(images), labels)
                loss.backward()
                optimizer.step()
            epoch = loader.stats()[-1]
            print(f"epoch {epoch['epoch']}: loss {loss.item():.3f}", file=sys.stderr)

    right = 0
    with make_loader(f"{url}/test", train=False, epochs=1, **store) as loader:
        with torch.no_grad():
            for images, labels in loader:
                right += (network(images).argmax(1) == labels).sum().item()
        return right / len(loader.dataset)


def main() -> None:
    if len(sys.argv) > 1:
        accuracy = train(sys.argv[1])
    else:
        with leat.testing.Bucket(digits.make().parent, latency="55ms") as bucket:
            storage_options = {"endpoint_url": bucket.url, "no_sign_request": True}
            accuracy = train("s3://digits", storage_options=storage_options)
    print(f"{accuracy:.1%} of the held-out digits are read right")


if __name__ == "__main__":
    main()
