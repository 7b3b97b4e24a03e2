"""Hugging Face's Trainer, whose models take `pixel_values` and `labels`."""
import leat
import torch
from leat import ops
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification


class LeatTrainer(Trainer):
    def get_train_dataloader(self):
        return leat.Loader("s3://data/photos/train", batch_size=8, train=True,
                           fields={"pixel_values": "image", "labels": "label"},
                           ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.Normalize("imagenet")])


model = ViTForImageClassification(ViTConfig(
    image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=32, num_labels=3))
arguments = TrainingArguments("out", num_train_epochs=1, report_to="none", save_strategy="no", use_cpu=True)
print(f"loss {LeatTrainer(model, arguments).train().training_loss:.3f}")
