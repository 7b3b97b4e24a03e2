"""Validates on several ranks: each photograph is counted once, and no rank waits for another.

torchrun --nproc-per-node=2 examples/tasks/validate_ddp.py
"""
import leat
import torch
import torch.distributed as dist
from leat import ops

dist.init_process_group("gloo")
loader = leat.Loader("s3://data/photos/val", global_batch_size=8, train=False, drop_last="pad",
                     fields=("image", "label", "valid"), ops=[ops.DecodeImage(), ops.Cast("float32")])
right = torch.zeros(2)
for images, labels, valid in loader:
    predicted = images.mean((2, 3)).argmax(1)
    right += torch.tensor([(predicted == labels)[valid].sum(), valid.sum()])
dist.all_reduce(right)
if dist.get_rank() == 0:
    print(f"{right[0]:.0f} of {right[1]:.0f} right")
dist.destroy_process_group()
