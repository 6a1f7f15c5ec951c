"""A Triton kernel under the counting shim."""
import json
import sys

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


x = torch.ones(1 << 16, device="cuda")
out = torch.empty_like(x)
for _ in range(50):
    add_kernel[(x.numel() // 1024,)](x, x, out, x.numel(), BLOCK=1024)
torch.cuda.synchronize()
print(json.dumps({"triton": triton.__version__, "right": bool((out == 2).all())}))
