"""Trains on several ranks.

torchrun --nproc-per-node=2 examples/tasks/train_ddp.py
"""
import leat
import torch
import torch.distributed as dist
from leat import ops

dist.init_process_group("gloo")
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
network = torch.nn.parallel.DistributedDataParallel(network)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
loader = leat.Loader("s3://data/photos/train", global_batch_size=16, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.Normalize("imagenet")])
for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: {len(loader)} steps")
dist.destroy_process_group()
