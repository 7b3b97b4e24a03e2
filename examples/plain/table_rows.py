"""Fits a small network to the rows of a table that lies in a bucket in parts of CSV.

    python table_rows.py --bucket plain --prefix rows/

The last column of a row is what is predicted; a batch is the rows of a few parts.
"""

import argparse
import csv
import io

import boto3
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TableParts(Dataset):
    def __init__(self, bucket, prefix):
        self.client = boto3.client("s3")  # Connects in the worker that first reads.
        self.bucket = bucket
        pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        self.keys = [entry["Key"] for page in pages for entry in page["Contents"]]

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        body = self.client.get_object(Bucket=self.bucket, Key=self.keys[index])["Body"].read()
        rows = csv.reader(io.StringIO(body.decode()))
        next(rows)  # The names of the columns.
        values = torch.tensor([[float(cell) for cell in row] for row in rows])
        return values[:, :-1], values[:, -1:]


def together(parts):
    return tuple(torch.cat(values) for values in zip(*parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bucket", default="plain")
    parser.add_argument("--prefix", default="rows/")
    parser.add_argument("--columns", type=int, default=16, help="besides the last")
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--parts", type=int, default=8, help="of a batch")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dataset = TableParts(args.bucket, args.prefix)
    loader = DataLoader(dataset, args.parts, shuffle=True, num_workers=args.workers, collate_fn=together)
    model = nn.Sequential(
        nn.Linear(args.columns, args.width), nn.ReLU(),
        nn.Linear(args.width, args.width), nn.ReLU(),
        nn.Linear(args.width, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        for features, target in loader:
            loss = nn.functional.mse_loss(model(features), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
        torch.save(model.state_dict(), "table.pt")


if __name__ == "__main__":
    main()
