"""Reads photographs and their captions."""
import io
import json

import boto3
from litdata import StreamingRawDataset
from model import train
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.transforms.v2.functional import pil_to_tensor

table = boto3.client("s3").get_object(Bucket="data", Key="captions.jsonl")["Body"].read()
CAPTIONS = {row["path"]: row["caption"] for row in map(json.loads, table.splitlines())}


class Captioned(StreamingRawDataset):
    def __getitems__(self, indices):
        captions = [CAPTIONS[self.items[i].path.removeprefix("s3://data/")] for i in indices]
        return list(zip(super().__getitems__(indices), captions))


def decode(data):
    return pil_to_tensor(Image.open(io.BytesIO(data)).resize((32, 32)))


loader = DataLoader(Captioned("s3://data/photos/", transform=decode), batch_size=16, shuffle=True, drop_last=True)
for images, captions in loader:
    train(images, captions)
