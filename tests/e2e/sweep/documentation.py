"""What CUDA's headers say that a function may answer: the `\\return` list above its declaration. Used by sweep.py.

Nothing is copied from the headers: they are read where the toolkit has them.
"""
import functools
import pathlib
import re

# After these the context is unusable, and every later call answers them: which is how asynchronous work tells.
LASTING = {700, 702, 710, 714, 715, 716, 717, 718, 719}
# What a call of the runtime may answer when it is the first one, and starts the runtime (\note_init_rt).
AT_START = {3, 35, 100}


@functools.cache
def header(folder, name):
    return (pathlib.Path(folder) / name).read_text(encoding="utf-8", errors="replace")


@functools.cache
def numbers(folder):
    """Code by name, of the driver's and the runtime's enumerations."""
    text = header(folder, "cuda.h") + header(folder, "driver_types.h")
    return {name: int(value) for name, value in
            re.findall(r"^\s*((?:CUDA_ERROR_|CUDA_SUCCESS|cudaError)\w*)\s*=\s*(\d+)", text, re.MULTILINE)}


@functools.cache
def documented(folder, function):
    """(codes that are listed, does it also tell of earlier work) of a function; None where it has no such comment."""
    runtime = function.startswith("cuda")
    text = header(folder, "cuda_runtime_api.h" if runtime else "cuda.h")
    # The last declaration is the newest form; its comment is the nearest one above it.
    places = [m.start() for m in re.finditer(r"\b(?:CUDAAPI|CUDARTAPI)\s+" + function + r"(?:_v\d+)?\s*\(", text)]
    for place in reversed(places):
        start = text.rfind("/**", 0, place)
        end = text.find("*/", start)
        comment = text[start:end]
        if start < 0 or end > place or text.count(";", end, place) > 0 or "\\return" not in comment:
            continue
        known = numbers(folder)
        codes = {known[name] for name in re.findall(r"::(\w+)", comment[comment.index("\\return"):]) if name in known}
        return codes, "\\notefnerr" in comment or "previous, asynchronous launches" in comment
    return None


def may_answer(folder, function, code):
    """Can a program that knows nothing of Reprise see this code from this function?"""
    found = documented(folder, function)
    if found is None:
        return False
    codes, earlier = found
    return code in codes or (earlier and code in LASTING) or (function.startswith("cuda") and code in AT_START)


# In this order: what a device that has too little answers, then what it answers that is out of order.
PREFERRED = ("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OPERATING_SYSTEM", "CUDA_ERROR_INVALID_VALUE",
             "CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_DEINITIALIZED")


def code_to_inject(folder, symbol):
    """An error that this call of the driver may answer by its documentation; 999 where that lists none of these."""
    found = documented(folder, base_name(symbol))
    for name in PREFERRED:
        if found is not None and numbers(folder)[name] in found[0]:
            return numbers(folder)[name]
    return numbers(folder)["CUDA_ERROR_UNKNOWN"]


def base_name(symbol):
    return re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", symbol)
