"""Reads photographs and their captions."""
import io
import json

import boto3
from model import train
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.v2.functional import pil_to_tensor

s3 = boto3.client("s3")


def read(key):
    return s3.get_object(Bucket="data", Key=key)["Body"].read()


class Captioned(Dataset):
    def __init__(self):
        self.rows = [json.loads(line) for line in read("captions.jsonl").splitlines()]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(read(self.rows[index]["path"])))
        return pil_to_tensor(image.resize((32, 32))), self.rows[index]["caption"]


loader = DataLoader(Captioned(), batch_size=16, shuffle=True, drop_last=True)
for images, captions in loader:
    train(images, captions)
