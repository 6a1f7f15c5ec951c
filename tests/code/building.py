"""Compiles kernels, and asks code_check whether what their code says agrees with the truth in their source. Used by check and fuzz."""
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("REPRISE_BUILD", HERE.parents[1] / "build/release"))
NVCC = os.environ.get("NVCC", "/usr/local/cuda/bin/nvcc")
NVDISASM = os.environ.get("REPRISE_NVDISASM", "nvdisasm")


def build(source, flags, architecture, cubin):
    nvcc = [NVCC, f"-arch={architecture}", "-w", *flags]
    if "-rdc=true" in flags:
        subprocess.run([*nvcc, "-c", "-o", f"{cubin}.o", source], check=True)
        link = [NVCC, f"-arch={architecture}", "-dlink", "-cubin", "-o", cubin, f"{cubin}.o", "-lcudadevrt"]
        subprocess.run(link, check=True, stderr=subprocess.DEVNULL)
    else:
        subprocess.run([*nvcc, "-cubin", "-o", cubin, source], check=True)


def compare(source, cubin, verbose=False):
    """What code_check says of a cubin, and whether no claim is wrong."""
    with open(f"{cubin}.text", "w") as text:
        subprocess.run([NVDISASM, "-c", cubin], stdout=text, check=True)
    command = [BUILD / "bin/code_check", "truth", source, cubin, f"{cubin}.text", *(["-v"] if verbose else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode == 0
