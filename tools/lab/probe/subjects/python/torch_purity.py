"""Calls common PyTorch kernels again and again on the same inputs and compares all bits with the first result, alone and
while another kernel runs. Memory that the calls get back is poisoned in between, so a result that depends on what its
output or workspace held before is found. Prints one JSON object for each kernel."""
import json
import sys

try:
    import torch
except ImportError as error:
    print(f"no torch: {error}", file=sys.stderr)
    sys.exit(77)

REPEATS = 100
device = torch.device("cuda")
functional = torch.nn.functional
torch.manual_seed(0)


def kernels():
    x = torch.randn(64, 1024, device=device)
    weight = torch.randn(1024, device=device)
    image = torch.randn(8, 32, 56, 56, device=device)
    filters = torch.randn(32, 32, 3, 3, device=device)
    q = torch.randn(2, 8, 256, 64, device=device, dtype=torch.bfloat16)
    yield "layer norm", lambda: functional.layer_norm(x, (1024,), weight, weight)
    yield "GELU", lambda: functional.gelu(x)
    yield "cast to bf16", lambda: x.to(torch.bfloat16)
    yield "softmax", lambda: torch.softmax(x, -1)
    yield "sum", lambda: x.sum()
    yield "dropout, same seed", lambda: (torch.cuda.manual_seed(1), functional.dropout(x, 0.1))[1]
    for dtype in (torch.float32, torch.bfloat16):
        for size in (256, 1024, 4096):
            a = torch.randn(size, size, device=device).to(dtype)
            yield f"matmul {str(dtype)[6:]} {size}", lambda a=a: a @ a
    yield "convolution", lambda: functional.conv2d(image, filters, padding=1)
    yield "attention", lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    index = torch.randint(0, 64, (4096,), device=device)
    rows = torch.randn(4096, 128, device=device)
    yield "index_add (atomics)", lambda: torch.zeros(64, 128, device=device).index_add_(0, index, rows)


def poison(like, value):
    """Fills freed memory of this size with a bit pattern, so that the next allocation finds it."""
    block = torch.empty_like(like)
    block.reshape(-1).view(torch.uint8).fill_(value)
    del block


def count_equal(work, first, beside):
    side = torch.cuda.Stream()
    busy = torch.randn(4096, 4096, device=device)
    equal = 0
    for i in range(REPEATS):
        poison(first, 0xF0 + i % 16)
        if beside:
            with torch.cuda.stream(side):
                busy * 1.0001
        again = work()
        torch.cuda.synchronize()
        equal += int(torch.equal(again.reshape(-1).view(torch.uint8), first.reshape(-1).view(torch.uint8)))
        del again
    return equal


for name, work in kernels():
    reference = work().clone()
    torch.cuda.synchronize()
    for beside in (False, True):
        label = f"{name}, {'another kernel beside' if beside else 'alone'}"
        print(json.dumps({"kernel": label, "repeats": REPEATS, "equal": count_equal(work, reference, beside)}), flush=True)
print(f"torch {torch.__version__}", file=sys.stderr)
