"""Validates on several ranks, each sample counted once."""
import io

import torch
import torch.distributed as dist
from litdata import StreamingRawDataset
from model import validate
from PIL import Image
from torch.utils.data import DataLoader, Subset
from torchvision.transforms.v2.functional import pil_to_tensor

CLASSES = ["ant", "bee", "cat"]


class Photos(StreamingRawDataset):
    def __getitems__(self, indices):
        labels = [CLASSES.index(self.items[i].path.split("/")[-2]) for i in indices]
        return list(zip(super().__getitems__(indices), labels))


dist.init_process_group("gloo")
photos = Photos("s3://data/val/", transform=lambda data: pil_to_tensor(Image.open(io.BytesIO(data))))
mine = Subset(photos, range(dist.get_rank(), len(photos), dist.get_world_size()))
counts = torch.zeros(2)
for images, labels in DataLoader(mine, batch_size=8):
    hits = validate(images, labels)
    counts += torch.tensor([hits.sum(), len(hits)])
dist.all_reduce(counts)
print(f"{counts[0]:.0f} right of {counts[1]:.0f}")
dist.destroy_process_group()
