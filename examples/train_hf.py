"""Trains with Hugging Face's Trainer: two of its methods say where batches come from.

    torchrun --nproc-per-node=4 examples/train_hf.py s3://mine/digits
"""

from __future__ import annotations

import sys
import tempfile

import leat
import torch
from leat import ops
from torch import nn
from transformers import Trainer, TrainingArguments

URL = sys.argv[1]


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, image, labels):
        logits = self.network(image)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class LeatTrainer(Trainer):
    def make_loader(self, split: str, **options: object) -> leat.Loader:
        chain = [ops.DecodeImage(mode="L"), ops.Cast("float32")]
        return leat.Loader(f"{URL}/{split}", batch_size=self.args.per_device_train_batch_size,
                           fields={"image": "image", "labels": "label"}, ops=chain, **options)  # fmt: skip

    def get_train_dataloader(self) -> leat.Loader:
        return self.make_loader("train", train=True, seed=self.args.seed)

    def get_eval_dataloader(self, eval_dataset=None) -> leat.Loader:
        return self.make_loader("test", train=False, drop_last="pad")  # It gathers every step.


def accuracy(predicted) -> dict[str, float]:
    samples = len(leat.Dataset(f"{URL}/test"))  # The padding of the last step is behind them.
    right = predicted.predictions.argmax(1) == predicted.label_ids
    return {"accuracy": right[:samples].mean().item()}


if __name__ == "__main__":
    arguments = TrainingArguments(
        tempfile.gettempdir(), num_train_epochs=4, per_device_train_batch_size=16, seed=0,
        learning_rate=3e-3, logging_strategy="epoch", save_strategy="no", report_to="none",
        use_cpu=True, disable_tqdm=True)  # fmt: skip
    trainer = LeatTrainer(Reader(), arguments, compute_metrics=accuracy)
    trainer.train()
    figures = trainer.evaluate()
    if trainer.is_world_process_zero():
        for epoch, log in enumerate(log for log in trainer.state.log_history if "loss" in log):
            print(f"epoch {epoch}: loss {log['loss']:.3f}")
        print(f"accuracy {figures['eval_accuracy']:.4f}")
