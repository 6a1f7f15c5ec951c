"""Which calls PyTorch's allocator makes of the driver: under the counting shim, tensors of many sizes come and go. No kernel
runs, so that every call in the counts is the allocator's. Says which back-end PyTorch took of its variables."""
import json
import sys

try:
    import torch
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)

TENSORS = 200
sizes = [(1 << 10) << (i % 14) for i in range(TENSORS)]  # 1 KiB to 8 MiB
kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
peak = torch.cuda.memory_allocated()
del kept[::2]
kept += [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes[::2]]
torch.cuda.synchronize()
del kept
torch.cuda.empty_cache()
print(json.dumps({"torch": torch.__version__, "backend": torch.cuda.get_allocator_backend(), "tensors": TENSORS + TENSORS // 2,
                  "bytes": peak, "reserved_after": torch.cuda.memory_reserved()}))
