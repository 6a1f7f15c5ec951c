"""Ordinary CuPy work under the counting shim: an elementwise kernel, a reduction, a product."""
import json
import sys

try:
    import cupy
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)

a = cupy.arange(512 * 512, dtype=cupy.float32).reshape(512, 512) / 262144
for _ in range(10):
    a = cupy.tanh(a @ a.T / 512) + a.sum() * 1e-9
cupy.cuda.Device().synchronize()
print(json.dumps({"cupy": cupy.__version__}))
