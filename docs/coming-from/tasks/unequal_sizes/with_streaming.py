"""Reads photographs of unequal sizes, as a list of tensors."""
import torch
from model import train
from streaming import StreamingDataLoader, StreamingDataset
from torchvision.transforms.v2.functional import pil_to_tensor


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return pil_to_tensor(sample["image"]), sample["label"]


def collate(samples):
    images, labels = zip(*samples)
    return list(images), torch.tensor(labels)


photos = Photos(remote="s3://data/mds/wild", local="mds/wild", shuffle=True, batch_size=8)
loader = StreamingDataLoader(photos, batch_size=8, drop_last=True, collate_fn=collate)
for images, labels in loader:
    train(images, labels)
