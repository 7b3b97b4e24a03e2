"""Goes on at the very next sample after it was stopped in the middle of an epoch."""
import os

import torch
from model import train
from streaming import StreamingDataLoader, StreamingDataset
from torchvision.transforms.v2.functional import pil_to_tensor


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return pil_to_tensor(sample["image"]), sample["label"]


photos = Photos(remote="s3://data/mds/photos", local="mds/classes", shuffle=True, batch_size=8)
loader = StreamingDataLoader(photos, batch_size=8, drop_last=True)
if os.path.exists("state.pt"):
    loader.load_state_dict(torch.load("state.pt"))
for images, labels in loader:
    train(images, labels)
    torch.save(loader.state_dict(), "state.pt")
