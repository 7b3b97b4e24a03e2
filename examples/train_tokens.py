"""Trains a small language model on windows of tokens: .bin or .npy files of uint16.

    torchrun --nproc-per-node=4 examples/train_tokens.py s3://mine/corpus
"""

from __future__ import annotations

import sys

import leat
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CONTEXT = 64
TOKENS = 256
EPOCHS = 4


class Predictor(nn.Module):
    """The next token, from all before it in the window."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 32)
        self.memory = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.memory(self.embedding(tokens))[0])


def main(url: str) -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    network = DistributedDataParallel(Predictor())
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    # One more than the context: targets are the inputs, one further.
    dataset = leat.Dataset.tokens(url, dtype="uint16", seq_len=CONTEXT + 1)
    loader = leat.Loader(dataset, global_batch_size=16, train=True, epochs=EPOCHS)
    for epoch in range(EPOCHS):
        for batch in loader:
            tokens = batch["tokens"].long()
            optimizer.zero_grad()
            logits = network(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.3f}")
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
