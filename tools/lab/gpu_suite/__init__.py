"""The sections of tools/lab/gpu-suite."""
