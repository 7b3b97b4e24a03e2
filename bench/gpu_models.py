"""The trainings of bench/gpu_bench.py, in torch alone: ResNet-50, and a GPT of the size of GPT-2's smallest.

Steps are as a user writes them for a card: bfloat16 by autocast, channels last for pictures, and PyTorch's own
attention. They read no loss, so that the device alone sets the pace. On a CPU, for tests, all is float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 50_304  # GPT-2's 50,257, up to the next multiple of 64.


class Bottleneck(nn.Module):
    """Three convolutions, the second of which may have a stride, and the way around them."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = 4 * width
        self.convolutions = nn.Sequential(
            nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside),
        )  # fmt: skip
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.around = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, images: Tensor) -> Tensor:
        return functional.relu(self.convolutions(images) + self.around(images))


def resnet50(classes: int = 1000) -> nn.Module:
    """He et al. 2015, with the stride in the 3 x 3 convolution, as torchvision has it."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    inside = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(count):
            layers.append(Bottleneck(inside, width, stride if number == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


class Block(nn.Module):
    """Attention to what came before, then two layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asked, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, states: Tensor) -> Tensor:
        batch, length, width = states.shape
        asked = self.asked(self.before_attention(states)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = asked.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        states = states + self.joined(seen.transpose(1, 2).reshape(batch, length, width))
        return states + self.layers(self.before_layers(states))


class Gpt(nn.Module):
    """Radford et al. 2019: tokens [B, T] give scores [B, T, vocabulary]."""

    def __init__(self, context: int = 1024, layers: int = 12, width: int = 768, heads: int = 12,
                 vocabulary: int = VOCABULARY) -> None:  # fmt: skip
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width))
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return functional.linear(self.blocks(self.tokens(tokens) + self.places(places)), self.tokens.weight)


class Training:
    """A network and its optimizer on a device. `sizes` are those of a smaller GPT, for tests."""

    def __init__(self, work: str, device: torch.device, **sizes: int) -> None:
        torch.manual_seed(0)
        self._kind = device.type
        self._is_of_images = work == "resnet50"
        if self._is_of_images:
            torch.backends.cudnn.benchmark = True
            self.network = resnet50().to(device, memory_format=torch.channels_last)
            self._optimizer: Any = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-5)
        else:
            self.network = Gpt(**sizes).to(device)
            self._optimizer = torch.optim.AdamW(self.network.parameters(), lr=6e-4, fused=device.type == "cuda")
        self.compute = self.network  # A training on several cards wraps it.

    def step(self, *fields: Tensor) -> Tensor:
        """One step on images and labels, or on windows of tokens; the loss, where it was computed."""
        with torch.autocast(self._kind, dtype=torch.bfloat16, enabled=self._kind == "cuda"):
            if self._is_of_images:
                images, labels = fields
                scores = self.compute(images.contiguous(memory_format=torch.channels_last))
            else:
                tokens = fields[0].to(torch.int64)
                scores, labels = self.compute(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
            loss = functional.cross_entropy(scores, labels)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        return loss
