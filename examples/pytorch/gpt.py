"""A small GPT (after nanoGPT's structure), and what the training scripts beside it share: options, batches, results."""
import argparse
import hashlib

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.drop(self.project(y.transpose(1, 2).reshape(batch, length, width)))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers, dropout=0.1, checkpointing=False):
        super().__init__()
        self.checkpointing = checkpointing
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens, targets):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.tokens(tokens) + self.positions(places))
        for block in self.blocks:
            if self.checkpointing and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def parser(description, **defaults):
    """The options that every script has; `defaults` change what they are without being given."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    options.add_argument("--steps", type=int, default=16)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--lr", type=float, default=6e-4)
    options.add_argument("--batch", type=int, default=16, help="sequences in a batch")
    options.add_argument("--length", type=int, default=128, help="tokens in a sequence")
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--width", type=int, default=128)
    options.add_argument("--heads", type=int, default=4)
    options.add_argument("--vocabulary", type=int, default=512)
    options.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32", help="bf16: matrix products by autocast")
    options.set_defaults(**defaults)
    return options


class Tokens:
    """Tokens that can be learned: each follows from the one before by a fixed rule, with some noise."""

    def __init__(self, options, seed, count=100_000):
        self.options = options
        self.generator = torch.Generator().manual_seed(seed)
        noise = torch.randint(4, (count,), generator=self.generator)
        self.tokens = (noise.cumsum(dim=0) * 7) % options.vocabulary

    def batch(self):
        length = self.options.length
        starts = torch.randint(len(self.tokens) - length, (self.options.batch,), generator=self.generator)
        inputs = torch.stack([self.tokens[i:i + length] for i in starts])
        targets = torch.stack([self.tokens[i + 1:i + 1 + length] for i in starts])
        return (inputs.pin_memory().to("cuda", non_blocking=True), targets.pin_memory().to("cuda", non_blocking=True))


def autocast(options):
    return torch.autocast("cuda", dtype=torch.bfloat16, enabled=options.dtype == "bf16")


def make_optimizer(model, options):
    decayed = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    others = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.95))


def warm_up(optimizer, options, step):
    for group in optimizer.param_groups:
        group["lr"] = options.lr * min(1.0, (step + 1) / 5)


def bits(loss):
    """A loss to the last bit, whatever it is."""
    return f"{loss.item():.6g} (0x{loss.detach().float().cpu().view(torch.int32).item() & 0xffffffff:08x})"


def print_weights(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    print(f"weights {digest.hexdigest()[:16]}", flush=True)
