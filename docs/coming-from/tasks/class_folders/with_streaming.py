"""Trains a classifier on photographs that lie in a folder for each class."""
import torch
from model import train
from streaming import StreamingDataLoader, StreamingDataset
from torchvision.transforms import v2

augment = v2.Compose([
    v2.ToImage(), v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return augment(sample["image"]), sample["label"]


photos = Photos(remote="s3://data/mds/photos", local="mds/photos", shuffle=True, batch_size=16)
loader = StreamingDataLoader(photos, batch_size=16, drop_last=True)
for epoch in range(2):
    for images, labels in loader:
        train(images, labels)
