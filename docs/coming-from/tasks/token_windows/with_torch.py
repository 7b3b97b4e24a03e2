"""Trains a language model on windows of a file of tokens."""
import boto3
import numpy as np
import torch
from model import train_on_tokens
from torch.utils.data import DataLoader, Dataset


class Corpus(Dataset):
    def __init__(self, path):
        self.tokens = np.memmap(path, dtype="uint16", mode="r")

    def __len__(self):
        return len(self.tokens) // 65

    def __getitem__(self, index):
        return torch.from_numpy(self.tokens[index * 65 : (index + 1) * 65].astype(np.int64))


boto3.client("s3").download_file("data", "corpus/train.bin", "train.bin")
loader = DataLoader(Corpus("train.bin"), batch_size=10, shuffle=True, drop_last=True)
for tokens in loader:
    train_on_tokens(tokens[:, :-1], tokens[:, 1:])
