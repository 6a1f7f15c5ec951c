"""Fine-tunes the GPT-2 of train_gpt2.py with LoRA, with plain PyTorch: only the adapters of two linear layers in each
block are trained. Takes that script's options, prints what it prints, and repeats its digits as that one does.

  python3 train_gpt2_lora.py --layers 12 --width 768 --batch 8 --steps 20
"""
import torch
from torch import nn
from torch.nn import functional

from train_gpt2 import GPT2, checksum, make_batch, parse_arguments

RANK, SCALE = 8, 2.0


class Adapted(nn.Module):
    """A linear layer that stays as it is, and beside it a product of two narrow ones, which is zero to begin with."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.down = nn.Linear(linear.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.linear(x) + SCALE * self.up(self.down(x))


def main():
    options = parse_arguments()
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.device(options.device)
    generator = torch.Generator().manual_seed(options.seed)
    model = GPT2(options.vocabulary, options.length, options.width, options.heads, options.layers).requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv = Adapted(block.attention.qkv)
        block.attention.project = Adapted(block.attention.project)
    model.to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-4)
    for step in range(options.steps):
        inputs, targets = make_batch(options, generator, device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=options.amp):
            logits = model(inputs)
            loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        print("step %d loss %.9g" % (step, loss.item()), flush=True)
    print(f"checksum {checksum(model)}", flush=True)


if __name__ == "__main__":
    main()
