"""Trains on photographs and their masks, cropped and flipped together."""
import io

import numpy as np
import torch
from litdata import StreamingRawDataset
from model import train
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from torchvision.transforms import v2

augment = v2.Compose([
    v2.RandomCrop(32), v2.RandomHorizontalFlip(),
    v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64}, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def decode(pair):
    image, mask = (Image.open(io.BytesIO(data)) for data in pair)
    return augment(tv_tensors.Image(image), tv_tensors.Mask(np.array(mask)))


class Pairs(StreamingRawDataset):
    def setup(self, files):
        images = sorted((f for f in files if f.path.endswith(".jpg")), key=lambda f: f.path)
        masks = sorted((f for f in files if f.path.endswith(".png")), key=lambda f: f.path)
        return [list(pair) for pair in zip(images, masks)]


loader = DataLoader(Pairs("s3://data/voc/", transform=decode), batch_size=8, shuffle=True, drop_last=True)
for images, masks in loader:
    train(images, masks)
