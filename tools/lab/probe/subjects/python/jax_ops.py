"""Ordinary JAX work under the counting shim: a jitted gradient step."""
import json
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(77)

if jax.default_backend() != "gpu":
    print(json.dumps({"missing": "jax sees no GPU"}))
    sys.exit(77)


def loss(weights, x):
    return jnp.mean(jnp.tanh(x @ weights) ** 2)


step = jax.jit(lambda weights, x: weights - 0.1 * jax.grad(loss)(weights, x))
weights = jnp.ones((256, 256))
x = jnp.ones((64, 256))
for _ in range(10):
    weights = step(weights, x)
weights.block_until_ready()
print(json.dumps({"jax": jax.__version__}))
