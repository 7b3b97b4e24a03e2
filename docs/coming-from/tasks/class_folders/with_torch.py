"""Trains a classifier on photographs that lie in a folder for each class."""
import torch
from model import train
from PIL import Image
from s3torchconnector import S3MapDataset
from torch.utils.data import DataLoader
from torchvision.transforms import v2

CLASSES = ["ant", "bee", "cat"]
augment = v2.Compose([
    v2.ToImage(), v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def decode(photo):
    return augment(Image.open(photo)), CLASSES.index(photo.key.split("/")[-2])


photos = S3MapDataset.from_prefix("s3://data/photos/", region="us-east-1", transform=decode)
loader = DataLoader(photos, batch_size=16, shuffle=True, drop_last=True)
for epoch in range(2):
    for images, labels in loader:
        train(images, labels)
