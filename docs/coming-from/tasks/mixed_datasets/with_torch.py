"""Mixes two datasets: nine samples of the second for each of the first."""
import numpy as np
from model import train
from PIL import Image
from s3torchconnector import S3MapDataset
from torch.utils.data import ConcatDataset, DataLoader, WeightedRandomSampler
from torchvision.transforms.v2.functional import pil_to_tensor

CLASSES = ["ant", "bee", "cat", "dog"]


def decode(photo):
    return pil_to_tensor(Image.open(photo)), CLASSES.index(photo.key.split("/")[-2])


parts = [S3MapDataset.from_prefix(url, region="us-east-1", transform=decode)
         for url in ("s3://data/photos/", "s3://data/night/")]
weights = np.repeat([1 / len(parts[0]), 9 / len(parts[1])], [len(part) for part in parts])
both = ConcatDataset(parts)
loader = DataLoader(both, batch_size=16, sampler=WeightedRandomSampler(weights, len(both)), drop_last=True)
for images, labels in loader:
    train(images, labels)
