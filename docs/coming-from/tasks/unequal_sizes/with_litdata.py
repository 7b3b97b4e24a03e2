"""Reads photographs of unequal sizes, as a list of tensors."""
import io

import torch
from litdata import StreamingRawDataset
from model import train
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.transforms.v2.functional import pil_to_tensor

CLASSES = ["ant", "bee", "cat"]


class Photos(StreamingRawDataset):
    def __getitems__(self, indices):
        labels = [CLASSES.index(self.items[i].path.split("/")[-2]) for i in indices]
        return list(zip(super().__getitems__(indices), labels))


def collate(samples):
    images, labels = zip(*samples)
    return list(images), torch.tensor(labels)


photos = Photos("s3://data/wild/", transform=lambda data: pil_to_tensor(Image.open(io.BytesIO(data))))
loader = DataLoader(photos, batch_size=8, shuffle=True, drop_last=True, collate_fn=collate)
for images, labels in loader:
    train(images, labels)
