"""Trains a small network to tell which photograph a picture was cut from: on a card if there is one.

    ./dev run python examples/train_photos.py               # its own bucket, 55 ms away
    ./dev run python examples/train_photos.py s3://mine/photos    # train/ and test/ below that
"""

from __future__ import annotations

import sys

import leat
import photos
import torch
from leat import ops
from torch import nn

SEED = 0
BATCH = 32
EPOCHS = 3
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRAIN_OPS = [
    ops.DecodeImage(),
    ops.RandomResizedCrop(224, scale=(0.5, 1.0)),
    ops.RandomHorizontalFlip(),
    ops.Normalize("imagenet"),
]
TEST_OPS = [
    ops.DecodeImage(),
    ops.Resize(256),
    ops.CenterCrop(224),
    ops.Normalize("imagenet"),
]


def make_network() -> nn.Module:
    """Small enough that one CPU core trains about 300 pictures a second."""
    return nn.Sequential(
        *(nn.Conv2d(3, 32, kernel_size=7, stride=4, padding=3), nn.ReLU()),
        *(nn.Conv2d(32, 48, kernel_size=3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(48, 96, kernel_size=3, stride=2, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, len(photos.SOURCES))),
    )


class Trainer:
    """The network, as it was first drawn, and what changes it."""

    def __init__(self, device: str = "cpu") -> None:
        torch.manual_seed(SEED)
        self.network = make_network().to(device)
        self._device = device
        self._optimizer = torch.optim.Adam(self.network.parameters(), lr=2e-3)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._optimizer.zero_grad()
        nn.functional.cross_entropy(self.network(images), labels).backward()
        self._optimizer.step()

    def accuracy(self, url: str, **store: object) -> float:
        """The share of the pictures at ``url`` that it gets right."""
        loader = leat.Loader(
            url,
            global_batch_size=BATCH,
            train=False,
            fields=("image", "label"),
            ops=TEST_OPS,
            epochs=1,
            device=self._device,
            **store,
        )
        right = 0
        with loader, torch.no_grad():
            for images, labels in loader:
                right += (self.network(images).argmax(1) == labels).sum().item()
        return right / len(loader.dataset)


def train(url: str, **store: object) -> float:
    """Trains on ``url``/train and returns the accuracy on ``url``/test."""
    loader = leat.Loader(
        f"{url}/train",
        global_batch_size=BATCH,
        train=True,
        seed=SEED,
        fields=("image", "label"),
        ops=TRAIN_OPS,
        memory="64MiB",
        epochs=EPOCHS,
        device=DEVICE,
        **store,
    )
    trainer = Trainer(DEVICE)
    with loader:
        for _ in range(EPOCHS):
            for images, labels in loader:
                trainer.step(images, labels)
            epoch = loader.stats()[-1]
            print(
                f"epoch {epoch['epoch']}: {epoch['samples_per_second']:.0f} samples/s, "
                f"waited {epoch['wait_fraction']:.1%}"
            )
    return trainer.accuracy(f"{url}/test", **store)


def main() -> None:
    torch.set_num_threads(1)  # One core trains, the others load.
    if len(sys.argv) > 1:
        accuracy = train(sys.argv[1])
    else:
        with leat.testing.Bucket(photos.make().parent, latency="55ms") as bucket:
            storage_options = {"endpoint_url": bucket.url, "no_sign_request": True}
            accuracy = train("s3://photos", storage_options=storage_options)
    print(f"{accuracy:.1%} of the held-out pictures are told right")


if __name__ == "__main__":
    main()
