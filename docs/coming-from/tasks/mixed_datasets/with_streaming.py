"""Mixes two datasets: nine samples of the second for each of the first."""
from model import train
from streaming import Stream, StreamingDataLoader, StreamingDataset
from torchvision.transforms.v2.functional import pil_to_tensor


class Photos(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return pil_to_tensor(sample["image"]), sample["label"]


streams = [Stream(remote=f"s3://data/mds/{name}", local=f"mds/{name}", proportion=share)
           for name, share in (("photos", 0.1), ("night", 0.9))]
loader = StreamingDataLoader(Photos(streams=streams, shuffle=True, batch_size=16), batch_size=16, drop_last=True)
for images, labels in loader:
    train(images, labels)
