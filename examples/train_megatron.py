"""A GPT training as Megatron-LM's: get_batch(), forward_step(), train_step(); a blend of corpora.

    torchrun --nproc-per-node=4 examples/train_megatron.py 0.7 s3://mine/books 0.3 s3://mine/code

The three functions do not know about Leat. They get the keys that Megatron's GPTDataset
gives, and its samples, in its order.
"""

from __future__ import annotations

import sys

import leat
import torch
import torch.distributed as dist
from torch import nn

SEQ_LENGTH, GLOBAL_BATCH, MICRO_BATCH, ITERATIONS, EOD, VOCABULARY = 32, 16, 4, 60, 0, 256


class GPTModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, 64), nn.Embedding(SEQ_LENGTH, 64)
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, tokens, position_ids, labels):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        hidden = self.layer(self.words(tokens) + self.places(position_ids), src_mask=mask, is_causal=True)
        return nn.functional.cross_entropy(self.head(hidden).transpose(1, 2), labels, reduction="none")


def get_batch(data_iterator):
    data = next(data_iterator)
    return data["tokens"], data["labels"], data["loss_mask"], data["position_ids"]


def forward_step(data_iterator, model):
    tokens, labels, loss_mask, position_ids = get_batch(data_iterator)
    return (model(tokens, position_ids, labels) * loss_mask).sum() / loss_mask.sum()


def train_step(data_iterator, model, optimizer, micro_batches):
    optimizer.zero_grad()
    losses = [forward_step(data_iterator, model) / micro_batches for _ in range(micro_batches)]
    sum(losses).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    optimizer.step()
    return sum(losses).detach()


def megatrons_keys(batch):
    text = batch["tokens"].long()
    tokens, labels = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    return {
        "tokens": tokens, "labels": labels, "loss_mask": (tokens != EOD).float(),  # --eod-mask-loss
        "position_ids": torch.arange(tokens.shape[1]).expand_as(tokens),
    }  # fmt: skip


def main(data_path: list[str]) -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = GPTModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    ranks = dist.get_world_size()
    assert GLOBAL_BATCH % (MICRO_BATCH * ranks) == 0, f"{ranks} ranks of {MICRO_BATCH} do not divide {GLOBAL_BATCH} samples"
    dataset = leat.Dataset.megatron(data_path, order="megatron", seq_len=SEQ_LENGTH, split="969,30,1",
                                    samples=GLOBAL_BATCH * ITERATIONS)  # fmt: skip
    loader = leat.Loader(dataset, batch_size=MICRO_BATCH, batch="dict", output="torch", epochs=1,
                         ops=[leat.ops.Python(megatrons_keys, per="batch")])  # fmt: skip
    data_iterator = iter(loader)
    for iteration in range(ITERATIONS):
        loss = train_step(data_iterator, model, optimizer, GLOBAL_BATCH // MICRO_BATCH // ranks)
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            print(f"iteration {iteration}: loss {loss / ranks:.9f}")
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
