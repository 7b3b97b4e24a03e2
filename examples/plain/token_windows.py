"""Trains a small language model on windows of tokens, read by range from one object.

    python token_windows.py --bucket plain --key tokens.bin

The object is uint16, little-endian; windows follow one another without overlap.
"""

import argparse

import boto3
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TokenWindows(Dataset):
    def __init__(self, bucket, key, context):
        self.client = boto3.client("s3")  # Connects in the worker that first reads.
        self.object = {"Bucket": bucket, "Key": key}
        self.context = context
        tokens = boto3.client("s3").head_object(**self.object)["ContentLength"] // 2
        self.windows = (tokens - 1) // context  # The targets are the inputs, one further.

    def __len__(self):
        return self.windows

    def __getitem__(self, index):
        first = 2 * index * self.context
        span = f"bytes={first}-{first + 2 * self.context + 1}"
        body = self.client.get_object(**self.object, Range=span)["Body"].read()
        tokens = torch.from_numpy(np.frombuffer(body, dtype="<u2").astype(np.int64))
        return tokens[:-1], tokens[1:]


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bucket", default="plain")
    parser.add_argument("--key", default="tokens.bin")
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dataset = TokenWindows(args.bucket, args.key, args.context)
    loader = DataLoader(dataset, args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True)
    model = LanguageModel(args.vocabulary, args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
        torch.save(model.state_dict(), "tokens.pt")


if __name__ == "__main__":
    main()
