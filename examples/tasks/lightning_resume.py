"""Lightning saves the position of the loader in its checkpoint and goes on there."""
import sys

import leat
import pytorch_lightning as lightning
import torch
from leat import ops


class Classifier(lightning.LightningModule):
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.network.parameters(), lr=1e-3)


loader = leat.Loader("s3://data/photos/train", batch_size=8, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomCrop(32), ops.Normalize("imagenet")])
trainer = lightning.Trainer(max_steps=int(sys.argv[1]), accelerator="cpu", logger=False, enable_progress_bar=False)
trainer.fit(Classifier(), loader, ckpt_path=sys.argv[2] if len(sys.argv) > 2 else None)
trainer.save_checkpoint("last.ckpt")
print(f"step {trainer.global_step}, delivered {loader.state_dict()['position']}")
