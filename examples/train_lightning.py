"""Trains with Lightning: its Trainer takes a leat.Loader where it takes a DataLoader.

    python examples/train_lightning.py s3://mine/digits 4       # as many processes
"""

from __future__ import annotations

import sys

import leat
import pytorch_lightning as lightning
import torch
from leat import ops
from torch import nn


class Digits(lightning.LightningDataModule):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def make_loader(self, split: str, **options: object) -> leat.Loader:
        return leat.Loader(f"{self.url}/{split}", global_batch_size=64,
                           ops=[ops.DecodeImage(mode="L"), ops.Cast("float32")],
                           fields=("image", "label"), **options)  # fmt: skip

    def train_dataloader(self) -> leat.Loader:
        return self.make_loader("train", train=True)

    def val_dataloader(self) -> leat.Loader:
        return self.make_loader("test", train=False, drop_last="join")  # Ranks meet behind the last step.


class Reader(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch, _):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.network(images), labels)
        self.log("loss", loss, on_epoch=True, on_step=False, sync_dist=True)
        return loss

    def validation_step(self, batch, _):
        images, labels = batch
        right = (self.network(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, sync_dist=True)

    def on_train_epoch_end(self):
        self.print(f"epoch {self.current_epoch}: loss {self.trainer.callback_metrics['loss']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


if __name__ == "__main__":
    trainer = lightning.Trainer(max_epochs=4, accelerator="cpu", devices=int(sys.argv[2]),
                                logger=False, enable_progress_bar=False, enable_checkpointing=False)  # fmt: skip
    trainer.fit(Reader(), datamodule=Digits(sys.argv[1]))
