"""Trains a small vision transformer on pictures made from a seed, with plain PyTorch, and prints every loss and a checksum
of the weights. Deterministic: two runs on the same machine print the same digits.

  python3 train_vit.py --layers 12 --width 384 --batch 64 --steps 20
"""
import argparse
import math
import os

# cuBLAS is only deterministic with a fixed workspace; it reads this when it is first used.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn
from torch.nn import functional

from train_gpt2 import checksum


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)).softmax(dim=-1)
        return self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Each patch is a vector, as it comes; its mean over patches decides on the class."""

    def __init__(self, size, patch, classes, width, heads, layers):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, width)
        self.positions = nn.Parameter(torch.randn((size // patch) ** 2, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, pictures):
        batch, channels, size, _ = pictures.shape
        side, patch = size // self.patch, self.patch
        patches = pictures.view(batch, channels, side, patch, side, patch).permute(0, 2, 4, 1, 3, 5)
        x = self.embed(patches.reshape(batch, side * side, channels * patch * patch)) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--size", type=int, default=224, help="pixels of a picture's side")
    parser.add_argument("--patch", type=int, default=16, help="pixels of a patch's side")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--amp", action="store_true", help="matrix products in bfloat16")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def make_batch(options, generator, device):
    """Pictures that can be told apart: noise, brighter in the row of pixels that their class names."""
    targets = torch.randint(options.classes, (options.batch,), generator=generator)
    pictures = torch.randn(options.batch, 3, options.size, options.size, generator=generator)
    pictures[torch.arange(options.batch), :, targets % options.size] += 1
    return pictures.to(device), targets.to(device)


def main():
    options = parse_arguments()
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.device(options.device)
    generator = torch.Generator().manual_seed(options.seed)
    model = ViT(options.size, options.patch, options.classes, options.width, options.heads, options.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(options.steps):
        inputs, targets = make_batch(options, generator, device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=options.amp):
            logits = model(inputs)
            loss = functional.cross_entropy(logits, targets)
        loss.backward()
        optimizer.step()
        print("step %d loss %.9g" % (step, loss.item()), flush=True)
    print(f"checksum {checksum(model)}", flush=True)


if __name__ == "__main__":
    main()
