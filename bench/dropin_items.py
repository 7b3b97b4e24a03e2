"""The data of bench/dropin_bench.py: map-style datasets as users write
them."""

from __future__ import annotations

import io
import pathlib

import boto3
import numpy as np
import torch
from botocore import UNSIGNED
from botocore.config import Config
from PIL import Image

PICTURES = 256


def make_pictures(folder: pathlib.Path) -> None:
    """PICTURES different JPEGs of 256 x 256, about 20 KB each."""
    folder.mkdir(parents=True)
    rows, columns = np.mgrid[0:256, 0:256]
    for number in range(PICTURES):
        rng = np.random.default_rng(number)
        waves = [np.sin(rows * rng.random() / 4 + columns * rng.random() / 4) for _ in range(3)]
        noise = rng.normal(0, 12, (256, 256, 3))
        pixels = np.clip(np.dstack(waves) * 80 + 128 + noise, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:06}.jpg", quality=85)


class Gets(torch.utils.data.Dataset):
    """Each item is one boto3 GET: (its bytes as uint8 of shape (bytes,), its index).

    One client, made here, before any worker process is forked and before it has a
    connection: boto3's may then be used in threads and in forked processes alike.
    """

    def __init__(self, endpoint: str, bucket: str, size: int) -> None:
        self.bucket, self.size = bucket, size
        config = Config(signature_version=UNSIGNED, max_pool_connections=256,
                        s3={"addressing_style": "path"})  # fmt: skip
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                                   config=config)  # fmt: skip

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        key = f"{index % PICTURES:06}.jpg"
        body = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return torch.frombuffer(bytearray(body), dtype=torch.uint8), index


class Files(torch.utils.data.Dataset):
    """Each item is a file's bytes: (uint8 of shape (bytes,), its index)."""

    def __init__(self, folder: pathlib.Path, size: int) -> None:
        self.folder, self.size = folder, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.frombuffer(bytearray(self.read(index)), dtype=torch.uint8), index

    def read(self, index: int) -> bytes:
        return (self.folder / f"{index % PICTURES:06}.jpg").read_bytes()


class Pictures(Files):
    """Decoded and resized: ((3, 224, 224) uint8, its index)."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = Image.open(io.BytesIO(self.read(index))).convert("RGB").resize((224, 224))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1), index


class Python(Files):
    """A transform that holds the GIL all along: about 2 ms of interpreter."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        total = 0
        for byte in self.read(index)[:20_000]:
            total = (total * 31 + byte) % 1_000_003
        return torch.tensor([total]), index


def keep_lists(items: list[tuple[torch.Tensor, int]]) -> tuple[list[torch.Tensor], list[int]]:
    """A collate_fn for items of different lengths."""
    return [item for item, _ in items], [index for _, index in items]
