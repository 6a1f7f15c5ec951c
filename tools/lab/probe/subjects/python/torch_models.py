"""Training steps of whole models under the counting shim: GPT-2 (transformers), ResNet-18 (torchvision), a small mixture of
experts, each with random weights. What is not installed is left out, and named."""
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # random weights: nothing is fetched
try:
    import torch
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)

STEPS = 3
device = torch.device("cuda")
torch.manual_seed(0)


def train(model, loss_of, optimizer_class=torch.optim.AdamW):
    model = model.to(device).train()
    optimizer = optimizer_class(model.parameters(), lr=1e-4)
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model).backward()
        optimizer.step()
    return float(loss_of(model).detach())


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    tokens = torch.randint(0, 1000, (2, 128), device=device)
    config = GPT2Config(vocab_size=1000, n_positions=128, n_embd=256, n_layer=4, n_head=4)
    return train(GPT2LMHeadModel(config), lambda model: model(tokens, labels=tokens).loss)


def resnet():
    from torchvision.models import resnet18
    images, classes = torch.randn(8, 3, 96, 96, device=device), torch.randint(0, 10, (8,), device=device)
    return train(resnet18(num_classes=10), lambda model: torch.nn.functional.cross_entropy(model(images), classes),
                 torch.optim.SGD)


class Experts(torch.nn.Module):
    """Each row goes to one of eight networks, by index: gather, work, scatter."""

    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(128, 8)
        self.experts = torch.nn.ModuleList(torch.nn.Sequential(
            torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 128)) for _ in range(8))

    def forward(self, rows):
        weights, chosen = self.gate(rows).softmax(-1).max(-1)
        out = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            taken = (chosen == number).nonzero().squeeze(-1)
            out = out.index_add(0, taken, expert(rows[taken]) * weights[taken].unsqueeze(-1))
        return out


def mixture():
    rows = torch.randn(512, 128, device=device)
    return train(Experts(), lambda model: model(rows).square().mean())


said = {"torch": torch.__version__}
for model in (gpt2, resnet, mixture):
    try:
        said[model.__name__] = model()
    except ImportError as error:
        said[model.__name__] = f"left out: {error}"
torch.cuda.synchronize()
print(json.dumps(said))
