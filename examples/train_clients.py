"""Federated averaging over clients that each see their own digits alone: 200 of them, simulated.

    python examples/train_clients.py [URL-OF-A-TABLE] [--rounds 15]

The table has a row for each picture: path, class_id, client. One catalogue serves all clients: `filter`
gives each its part of it, and no object is listed or copied again. In each round, 20 clients that a seed
draws train a copy of the network on their part, and the server takes the mean of their weights.
Without a URL it deals scikit-learn's digits to 200 clients, each with most of its pictures from two classes.
"""

from __future__ import annotations

import argparse
import copy
import csv
import os
import pathlib
import random

import leat
import leat.testing
import torch
from leat import ops
from torch import nn

CLIENTS = 200
A_ROUND = 20
EPOCHS = 5  # A client's own, each time that it is drawn.


def deal(folder: pathlib.Path) -> None:
    """FOLDER/clients.csv beside the digits: each client prefers two classes and takes what is left."""
    paths = sorted((folder / "train").rglob("*.png"))
    dealt = random.Random(1)
    left = {str(label): [path for path in paths if path.parent.name == str(label)] for label in range(10)}
    each = len(paths) // CLIENTS
    with open(folder / "clients.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "class_id", "client"])
        for client in range(CLIENTS):
            liked = [str(client % 10), str((client + 1 + client // 10 % 9) % 10)]
            for number in range(each):
                label = liked[number % 2]
                if not left[label]:
                    label = dealt.choice([label for label, rest in left.items() if rest])
                path = left[label].pop()
                rows.writerow([path.relative_to(folder), label, client])


def train_client(network: nn.Module, part: leat.Dataset, number: int) -> dict[str, torch.Tensor]:
    """The weights after the client trained a copy of `network`."""
    network = copy.deepcopy(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.3)
    with leat.Loader(
        part,
        batch_size=4,
        train=True,
        seed=number,
        drop_last=False,
        fields=("image", "label"),
        ops=[ops.DecodeImage(field="image", mode="L"), ops.Cast("float32")],
        memory="32MiB",
        epochs=EPOCHS,
    ) as loader:
        for _ in range(EPOCHS):
            for images, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(images), labels).backward()
                optimizer.step()
    return network.state_dict()


def accuracy(network: nn.Module, url: str) -> float:
    """The share of the held-out digits that are read right."""
    right = total = 0
    with leat.Loader(
        url,
        batch_size=64,
        train=False,
        fields=("image", "label"),
        ops=[ops.DecodeImage(mode="L"), ops.Cast("float32")],
        epochs=1,
    ) as loader, torch.no_grad():
        for images, labels in loader:
            right += int((network(images).argmax(1) == labels).sum())
            total += len(labels)
    return right / total


def federate(table: str, test: str, rounds: int) -> float:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    rows = leat.Dataset.from_manifest(
        table, fields={"image": "path", "label": "class_id"}, columns=["client"]
    )
    parts = [rows.filter(lambda of, client=client: of["client"] == client) for client in range(CLIENTS)]
    assert sum(map(len, parts)) == len(rows), "each picture has one client"
    drawn = random.Random(0)
    for number in range(rounds):
        chosen = drawn.sample(range(CLIENTS), A_ROUND)
        states = [train_client(network, parts[client], number) for client in chosen]
        sizes = torch.tensor([float(len(parts[client])) for client in chosen])
        weights = sizes / sizes.sum()
        network.load_state_dict({
            name: sum(weight * state[name] for weight, state in zip(weights, states))
            for name in network.state_dict()
        })  # fmt: skip
        print(f"round {number}: {100 * accuracy(network, test):.1f} % of the held-out digits", flush=True)
    return accuracy(network, test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?")
    parser.add_argument("--test", help="held-out pictures, with the table's URL")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    if args.url:
        federate(args.url, args.test, args.rounds)
        return
    import digits

    folder = digits.make()
    deal(folder)
    with leat.testing.Bucket(folder.parent, latency="55ms") as bucket:
        os.environ.update(bucket.env())
        federate(f"s3://{folder.name}/clients.csv", f"s3://{folder.name}/test", args.rounds)
        told = bucket.counters()
    print(f"{CLIENTS} clients, {told['get']} GETs, {told['list']} LISTs")


if __name__ == "__main__":
    main()
