"""Trains on photographs and their masks, cropped and flipped together."""
import numpy as np
import torch
from model import train
from streaming import StreamingDataLoader, StreamingDataset
from torchvision import tv_tensors
from torchvision.transforms import v2

augment = v2.Compose([
    v2.RandomCrop(32), v2.RandomHorizontalFlip(),
    v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64}, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


class Pairs(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return augment(tv_tensors.Image(sample["image"]), tv_tensors.Mask(np.array(sample["mask"])))


pairs = Pairs(remote="s3://data/mds/voc", local="mds/voc", shuffle=True, batch_size=8)
loader = StreamingDataLoader(pairs, batch_size=8, drop_last=True)
for images, masks in loader:
    train(images, masks)
