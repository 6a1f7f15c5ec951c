"""What tools/lab/gpu-compare does, part by part."""
