"""Validates on several ranks, each sample counted once."""
import torch.distributed as dist
from model import validate
from streaming import StreamingDataLoader, StreamingDataset
from torchvision.transforms.v2.functional import pil_to_tensor


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return index, pil_to_tensor(sample["image"]), sample["label"]


dist.init_process_group("gloo")
photos = Photos(remote="s3://data/mds/val", local="mds/val", batch_size=8)
hits = {}
for indices, images, labels in StreamingDataLoader(photos, batch_size=8):
    hits.update(zip(indices.tolist(), validate(images, labels).tolist()))
all_hits = [None] * dist.get_world_size()
dist.all_gather_object(all_hits, hits)  # Samples that came twice are one here.
hits = {index: hit for part in all_hits for index, hit in part.items()}
print(f"{sum(hits.values())} right of {len(hits)}")
dist.destroy_process_group()
