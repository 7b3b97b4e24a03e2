"""Reads photographs and their captions."""
from model import train
from streaming import StreamingDataLoader, StreamingDataset
from torchvision.transforms.v2.functional import pil_to_tensor


class Captioned(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return pil_to_tensor(sample["image"].resize((32, 32))), sample["caption"]


captioned = Captioned(remote="s3://data/mds/captions", local="mds/captions", shuffle=True, batch_size=16)
loader = StreamingDataLoader(captioned, batch_size=16, drop_last=True)
for images, captions in loader:
    train(images, captions)
