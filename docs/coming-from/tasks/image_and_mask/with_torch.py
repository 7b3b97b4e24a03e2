"""Trains on photographs and their masks, cropped and flipped together."""
import csv
import io

import boto3
import numpy as np
import torch
from model import train
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

augment = v2.Compose([
    v2.RandomCrop(32), v2.RandomHorizontalFlip(),
    v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64}, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
s3 = boto3.client("s3")


def read(key):
    return s3.get_object(Bucket="data", Key=f"voc/{key}")["Body"].read()


class Pairs(Dataset):
    def __init__(self):
        self.rows = list(csv.DictReader(io.StringIO(read("pairs.csv").decode())))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        image = tv_tensors.Image(Image.open(io.BytesIO(read(self.rows[index]["image"]))))
        mask = tv_tensors.Mask(np.array(Image.open(io.BytesIO(read(self.rows[index]["mask"])))))
        return augment(image, mask)


loader = DataLoader(Pairs(), batch_size=8, shuffle=True, drop_last=True)
for images, masks in loader:
    train(images, masks)
