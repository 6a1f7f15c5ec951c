"""The sections of tools/gpu-suite."""
