"""Draws rare classes as often as common ones."""
from model import train
from streaming import Stream, StreamingDataLoader, StreamingDataset
from torchvision.transforms.v2.functional import pil_to_tensor


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return pil_to_tensor(sample["image"]), sample["label"]


streams = [Stream(remote=f"s3://data/mds/rare/{name}", local=f"mds/rare/{name}", proportion=1)
           for name in ("ant", "bee", "cat")]
photos = Photos(streams=streams, epoch_size=480, shuffle=True, batch_size=16)
loader = StreamingDataLoader(photos, batch_size=16, drop_last=True)
for images, labels in loader:
    train(images, labels)
