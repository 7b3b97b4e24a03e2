"""Applies a function of one's own to each photograph."""
import io

import torch
from litdata import StreamingRawDataset
from model import train
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.transforms import v2


def frame(image):
    image[:, :4], image[:, -4:], image[..., :4], image[..., -4:] = 0, 0, 0, 0
    return image


CLASSES = ["ant", "bee", "cat"]
augment = v2.Compose([v2.ToImage(), frame, v2.ToDtype(torch.float32, scale=True),
                      v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


class Photos(StreamingRawDataset):
    def __getitems__(self, indices):
        labels = [CLASSES.index(self.items[i].path.split("/")[-2]) for i in indices]
        return list(zip(super().__getitems__(indices), labels))


photos = Photos("s3://data/photos/", transform=lambda data: augment(Image.open(io.BytesIO(data))))
loader = DataLoader(photos, batch_size=16, shuffle=True, drop_last=True)
for images, labels in loader:
    train(images, labels)
