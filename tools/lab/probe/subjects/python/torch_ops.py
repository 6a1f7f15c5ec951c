"""Ordinary PyTorch work whose launches the counting shim must see: matmul, convolution, attention, foreach Adam."""
import json
import sys

try:
    import torch
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)

device = torch.device("cuda")
torch.manual_seed(0)


def matmul():
    a = torch.randn(512, 512, device=device, dtype=torch.bfloat16)
    for _ in range(10):
        a = a @ a / 512


def convolution():
    layer = torch.nn.Conv2d(16, 32, 3, padding=1, device=device)
    layer(torch.randn(8, 16, 64, 64, device=device)).sum().backward()


def attention():
    q, k, v = (torch.randn(2, 8, 256, 64, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


def adam():
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device=device) for _ in range(8)))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(32, 256, device=device)).square().mean().backward()
        optimizer.step()


for work in (matmul, convolution, attention, adam):
    work()
torch.cuda.synchronize()
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name()}))
