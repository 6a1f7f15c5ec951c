"""A training loop without matrix products, for the oracle: torch_training.py [--seed N] [--rate X] [--steps N].

Embedding, layer norm, dropout, GELU, torch.cat, cross entropy, clipped gradients, AdamW: kernels of PyTorch's own, of which
many take structures that are not set as a whole. Prints each loss, and what the weights sum up to.
"""
import argparse

import torch
from torch import nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--rate", type=float, default=1e-3)
parser.add_argument("--steps", type=int, default=3)
options = parser.parse_args()
torch.manual_seed(options.seed)

WORDS, WIDTH, BATCH = 64, 64, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(WIDTH)) for _ in range(3))

    def forward(self, words):
        x = self.embedding(words)
        for norm, scale in zip(self.norms, self.scales):
            halves = functional.gelu(norm(x) * scale).chunk(2, dim=1)
            x = x + functional.dropout(torch.cat((halves[1], halves[0]), dim=1), 0.1)
        return x


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
words = torch.Generator().manual_seed(options.seed)
for step in range(options.steps):
    batch = torch.randint(WORDS, (2, BATCH), generator=words).pin_memory().to("cuda", non_blocking=True)
    loss = functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
print("weights", [parameter.sum().item() for parameter in model.parameters()])
