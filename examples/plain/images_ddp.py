"""Trains a small network on a bucket's pictures, labelled by folder, on all processes.

    torchrun --nproc-per-node=2 images_ddp.py --bucket plain --prefix images/
"""

import argparse
import io

import boto3
import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class BucketImages(Dataset):
    def __init__(self, bucket, prefix):
        self.client = boto3.client("s3")  # Connects in the worker that first reads.
        self.bucket = bucket
        pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        self.keys = [entry["Key"] for page in pages for entry in page["Contents"]]
        names = sorted({key.split("/")[-2] for key in self.keys})
        self.labels = [names.index(key.split("/")[-2]) for key in self.keys]

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        body = self.client.get_object(Bucket=self.bucket, Key=self.keys[index])["Body"].read()
        pixels = np.array(Image.open(io.BytesIO(body)).convert("RGB"), dtype=np.float32)
        return torch.from_numpy(pixels / 255).permute(2, 0, 1), self.labels[index]


def network(classes):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bucket", default="plain")
    parser.add_argument("--prefix", default="images/")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8, help="of each process")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dataset = BucketImages(args.bucket, args.prefix)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler, num_workers=args.workers)
    model = DistributedDataParallel(network(1 + max(dataset.labels)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")
            torch.save(model.module.state_dict(), "images.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
