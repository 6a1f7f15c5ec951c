"""A small compiled PyTorch model, forward and backward: Inductor's Triton kernels under the counting shim."""
import json
import sys

try:
    import torch
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)

device = torch.device("cuda")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 256)).to(device)
compiled = torch.compile(model)
for _ in range(5):
    compiled(torch.randn(64, 256, device=device)).square().mean().backward()
torch.cuda.synchronize()
print(json.dumps({"torch": torch.__version__}))
