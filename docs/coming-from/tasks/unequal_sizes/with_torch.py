"""Reads photographs of unequal sizes, as a list of tensors."""
import torch
from model import train
from PIL import Image
from s3torchconnector import S3MapDataset
from torch.utils.data import DataLoader
from torchvision.transforms.v2.functional import pil_to_tensor

CLASSES = ["ant", "bee", "cat"]


def decode(photo):
    return pil_to_tensor(Image.open(photo)), CLASSES.index(photo.key.split("/")[-2])


def collate(samples):
    images, labels = zip(*samples)
    return list(images), torch.tensor(labels)


photos = S3MapDataset.from_prefix("s3://data/wild/", region="us-east-1", transform=decode)
loader = DataLoader(photos, batch_size=8, shuffle=True, drop_last=True, collate_fn=collate)
for images, labels in loader:
    train(images, labels)
