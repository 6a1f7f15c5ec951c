"""The rows of the page: each assumption of the design's section 11, the number that decides it, and what follows."""
from .page import Row

CHUNK = 2 << 20
ASSUMED_REMAP = 80e3  # ns a chunk: the planner's default, and the design's
ASSUMED_COPY, ASSUMED_LAUNCH = 10e3, 3e3
ASSUMED_LINK = 55e9  # of the built-in machine h200


def ratio(above, below):
    return above / below if above is not None and below else None


# 1. Interception.
def compared(facts):
    return {name: one for name, one in facts.facts("interception").items() if isinstance(one, dict) and "missed" in one}


def missed(facts):
    programs = compared(facts)
    if not programs:
        return None
    names = sorted({name for one in programs.values() for name in one["missed"]})
    total = sum(sum(one["missed"].values()) for one in programs.values())
    recorded = sum(one["kernels_recorded"] for one in programs.values())
    return f"{total} of {recorded} kernels missed, {len(programs)} programs" + (f": {', '.join(names[:5])}" if names else "")


def addresses(facts):
    one = facts.fact("interception", "cuGetProcAddress = dlsym, legacy stream")
    return None if one is None else f"{len(one['differing'])} of {one['names']} differ"


def exports(facts):
    missing = facts.suite.get("exports_that_hooks_def_lacks")
    return None if missing is None else f"{len(missing)} lack a row" + (f": {', '.join(missing[:5])}" if missing else "")


def debugger(facts):
    plain, shim = (facts.fact("interception", f"cuda-gdb, {how} the shim") for how in ("without", "with"))
    if not isinstance(plain, dict) or not isinstance(shim, dict):
        return None
    def told(one):
        return f"{'runs' if one['ran_to_the_end'] else 'does not run'}, {'stops' if one['stopped_in_kernel'] else 'does not stop'} in kernels"
    return told(shim) + (", as without" if told(shim) == told(plain) else f"; without it {told(plain)}")


# 2. Memory.
def remap(facts, gpu="busy"):
    return facts.median("vmm", "remap one chunk", gpu=gpu)


def remap_to_copy(facts):
    link = facts.machine.get("h2d_bytes_per_second")
    return ratio(remap(facts), CHUNK / link * 1e9) if link else None


def chunk_gain(facts):
    """What remapping a byte costs in chunks of 8 MiB, over that in chunks of 2 MiB."""
    def cost(mebibytes):
        parts = [facts.median("vmm", name, chunk_bytes=mebibytes << 20, count=256, gpu="busy")
                 for name in ("cuMemUnmap each chunk", "cuMemMap", "cuMemSetAccess each chunk")]
        return None if None in parts else sum(parts)
    large = cost(8)
    return None if large is None else ratio(large / 4, cost(2))


def access_gain(facts):
    return ratio(facts.median("vmm", "cuMemSetAccess each chunk", chunk_bytes=CHUNK, count=1024, gpu="idle"),
                 facts.median("vmm", "cuMemSetAccess whole range", chunk_bytes=CHUNK, count=1024, gpu="idle"))


def beside_vmm(facts, name):
    return ratio(facts.median("vmm", name, beside="VMM calls"), facts.median("vmm", name, beside="nothing"))


def mappings(facts):
    one = facts.fact("vmm", "mappings of one chunk")
    return None if one is None else one["mapped"]


def read_only(facts):
    one = facts.fact("vmm", "PROT_READ honoured")
    return None if not isinstance(one, dict) else f"honoured: {one.get('honoured')}"


def ways(facts, dependent):
    return [one for name, one in facts.facts("aliasing").items()
            if isinstance(one, dict) and name.startswith("dependent") == dependent]


def mismatches(facts, dependent):
    tried = ways(facts, dependent)
    return f"{sum(one['mismatches'] for one in tried)} mismatches, {len(tried)} ways" if tried else None


def rounds(facts):
    return min((one["rounds"] for one in ways(facts, False)), default=None)


# 3. Links.
def machine(key):
    return lambda facts: facts.machine.get(key)


def together(way):
    return lambda facts: ratio(facts.machine.get(f"{way}_together_bytes_per_second"), facts.machine.get(f"{way}_bytes_per_second"))


def compute_slowdown(facts):
    return ratio(facts.median("link", "compute kernel", beside="nothing"),
                 facts.median("link", "compute kernel", beside="both copies"))


# 4 and 6. Parameters.
def total(facts, key, programs=None):
    """Over the library programs of the section, or those of `programs`; None where none ran."""
    values = [len(one[key]) if isinstance(one[key], list) else one[key] for name, one in facts.facts("parameters").items()
              if isinstance(one, dict) and key in one and name != "probe" and (programs is None or name in programs)]
    return sum(values) if values else None


def parameter_info(facts):
    functions, without = total(facts, "functions"), total(facts, "functions_without_parameter_info")
    return None if functions is None else f"{without or 0} of {functions} functions without"


def pointers(programs):
    def value(facts):
        carry = total(facts, "launches_with_device_pointer", programs)
        none = total(facts, "launches_without_device_pointer", programs)
        return None if carry is None else f"{none or 0} of {carry + (none or 0)} launches carry no live pointer"
    return value


def torch_choices(facts):
    return {name.removeprefix("torch allocator, "): one for name, one in facts.facts("parameters").items()
            if name.startswith("torch allocator, ") and isinstance(one, dict) and isinstance(one.get("program"), dict)}


def torch_allocator(facts):
    """With what the launcher sets: the back-end, and the calls for its tensors."""
    one = torch_choices(facts).get("as the launcher sets it")
    if one is None:
        return None
    return f"{one['program']['backend']}, {one['calls'].get('cuMemAllocAsync', 0)} cuMemAllocAsync for {one['program']['tensors']} tensors"


def torch_variables(facts):
    """Which of its variables torch reads."""
    read = {name: one["program"]["backend"] for name, one in torch_choices(facts).items() if name.startswith("PYTORCH_")}
    return ", ".join(f"{name}: {backend}" for name, backend in sorted(read.items())) or None


def jax_allocator(facts):
    counts = []
    for choice in ("default", "as the launcher sets it"):
        one = facts.fact("parameters", f"jax allocator, {choice}")
        if not isinstance(one, dict):
            return None
        counts.append(sum(count for name, count in one["calls"].items() if name in ("cuMemAlloc", "cuMemAllocAsync", "cuMemMap")))
    return f"{counts[1]} allocations, by default {counts[0]}"


def tensor_map(facts):
    one = facts.fact("parameters", "address in CUtensorMap")
    if not isinstance(one, dict):
        return None
    return "at byte " + ", ".join(sorted({str(found["byte"]) for found in one["found_at"]})) if one["found_at"] else "not found"


# 7. CUPTI.
def recording(state):
    return lambda facts: ratio(facts.median("cupti", "launch call", cupti=state), facts.median("cupti", "launch call", cupti="never on"))


def text_fact(section, name):
    def value(facts):
        one = facts.fact(section, name)
        return None if one is None else str(one)
    return value


# 8. Purity.
def impure(facts):
    kernels = {name: one for name, one in facts.facts("purity").items() if isinstance(one, dict) and "equal" in one}
    if not kernels:
        return None
    bad = sorted(name for name, one in kernels.items() if one["equal"] < one["repeats"])
    return f"{len(bad)} of {len(kernels)} differ" + (f": {'; '.join(bad[:6])}" if bad else "")


def against(assumed, unit_text):
    def follows(value):
        return f"{value / assumed:.2f} x the {unit_text} that the planner assumes without a machine file"
    return follows


def none_is_good(good, bad):
    return lambda text: good if text.startswith("0 ") else bad


ROWS = [
    Row(1, "the preloaded library sees every kernel that CUPTI records", "", missed,
        none_is_good("complete for these programs", "a way to launch has no hook: find it by the names")),
    Row(1, "cuGetProcAddress gives dlsym's addresses", "", addresses,
        none_is_good("one table of hooks serves both", "hooks must be handed out by cuGetProcAddress for these names")),
    Row(1, "hooks.def has every name that the driver exports", "", exports, none_is_good("nothing to add", "rows to add")),
    Row(1, "a program with the shim runs under cuda-gdb", "", debugger,
        lambda text: "nothing to do" if text.endswith("as without") else "cuda-gdb finds the library instead of the driver: see which names it asks for"),
    Row(2, "remapping a chunk of 2 MiB, kernels running: 80 us", "ns", remap, against(ASSUMED_REMAP, "80 us")),
    Row(2, "that is up to twice the copy of the chunk, so homes are fixed", "x", remap_to_copy,
        lambda x: "fixed homes on aliased views are worth it" if x >= 0.25 else
        "a remap is small beside its copy: homes may move where that saves memory"),
    Row(2, "the same on an idle device", "ns", lambda facts: remap(facts, "idle"), lambda _: "what waiting for the GPU adds is the difference"),
    Row(2, "larger chunks cost less a byte: 8 MiB over 2 MiB", "x", chunk_gain,
        lambda x: "8 MiB for large tensors, where the waste allows" if x < 0.7 else "2 MiB: larger chunks save little"),
    Row(2, "one cuMemSetAccess for a range: each chunk over whole range", "x", access_gain,
        lambda x: "one call a range" if x > 1.2 else "no gain: either will do"),
    Row(2, "VMM calls hold up launches of another thread (99.9 %)", "x",
        lambda facts: beside_vmm(facts, "launch in another thread, 99.9 %"),
        lambda x: "none where launches must not wait: map ahead" if x > 2 else "they may run beside launches"),
    Row(2, "VMM calls stall running kernels (time of a kernel of 20 us)", "x",
        lambda facts: beside_vmm(facts, "kernel of 20 us in another thread"),
        lambda x: "remaps cost GPU time, too" if x > 1.1 else "kernels go on"),
    Row(2, "mapped ranges are many", "", mappings, lambda x: "bound what plans map below it"),
    Row(2, "PROT_READ protects", "", read_only,
        lambda text: "an audit can see hidden writes" if text.endswith("True") else "the audit unmaps: it cannot rely on protection"),
    Row(2, "aliased ranges agree at operation boundaries", "", lambda facts: mismatches(facts, False),
        none_is_good("fixed homes are sound", "fixed homes are NOT sound here: stop and look")),
    Row(2, "that was tried often: rounds, each way at least", "", rounds,
        lambda least: "as often as wanted" if least >= 10000 else "fewer than the 10000 wanted: give it more time"),
    Row(2, "they need not with programmatic dependent launch", "", lambda facts: mismatches(facts, True),
        none_is_good("not caught here; it is stripped all the same", "strip it between aliases")),
    Row(3, "host to device: 55 GB/s (built-in h200)", "bytes/s", machine("h2d_bytes_per_second"), against(ASSUMED_LINK, "55 GB/s of h200")),
    Row(3, "device to host: 55 GB/s", "bytes/s", machine("d2h_bytes_per_second"), against(ASSUMED_LINK, "55 GB/s of h200")),
    Row(3, "host to device keeps its rate while both copy", "x", together("h2d"),
        lambda x: "directions are independent" if x > 0.9 else "plans need the rate together"),
    Row(3, "device to host keeps its rate while both copy", "x", together("d2h"),
        lambda x: "directions are independent" if x > 0.9 else "plans need the rate together"),
    Row(3, "copies hardly slow a bandwidth-bound kernel", "x", machine("compute_slowdown_while_copying"),
        lambda x: "may be left out of predictions" if x < 1.05 else "predictions need it"),
    Row(3, "copies hardly slow a compute-bound kernel", "x", compute_slowdown,
        lambda x: "may be left out of predictions" if x < 1.05 else "predictions need it"),
    Row(3, "pinning (cuMemHostAlloc)", "bytes/s", lambda facts: facts.median("link", "cuMemHostAlloc"),
        lambda _: "how long the host tier takes to set up"),
    Row(3, "pinning: touch and register, best thread count", "bytes/s", lambda facts: facts.best("link", "touch and register"),
        lambda _: "registered pages, where this is the faster"),
    Row(3, "disk, read", "bytes/s", machine("ssd_read_bytes_per_second"), lambda _: "the SSD of simulations"),
    Row(3, "disk, write", "bytes/s", machine("ssd_write_bytes_per_second"), lambda _: "the SSD of simulations"),
    Row(4, "the driver tells parameters of library kernels", "", parameter_info,
        none_is_good("layouts from the driver", "these need the layout from the image, or their words scanned")),
    Row(4, "a TMA descriptor holds its address plainly", "", tensor_map,
        lambda text: "descriptors in parameters can be found" if text != "not found" else "hook cuTensorMapEncode*: nothing else finds it"),
    Row(5, "a kernel behind another: 3 us", "ns", machine("launch_latency_ns"), against(ASSUMED_LAUNCH, "3 us")),
    Row(5, "a launch call", "ns", lambda facts: facts.median("latency", "launch call, empty kernel"), lambda _: "what deferring may add is measured by bench"),
    Row(5, "an event between two streams", "ns", machine("event_wait_ns"), lambda _: "what an edge across streams costs"),
    Row(5, "a copy besides its bytes: 10 us", "ns", machine("copy_latency_ns"), against(ASSUMED_COPY, "10 us")),
    Row(5, "gates by wait-value are no better than events", "ns",
        lambda facts: facts.median("latency", "wait-value release and synchronise"), lambda _: "events only, whatever this is (section 8)"),
    Row(5, "host functions are slow", "ns", lambda facts: facts.median("latency", "host function and synchronise"), lambda _: "none on the way of a plan"),
    Row(5, "launches before one blocks", "", lambda facts: facts.median("latency", "launches before one blocks"),
        lambda _: "the dispatcher stays below it"),
    Row(6, "launches of PyTorch carry their pointers", "", pointers(("torch_ops", "torch_compile")),
        none_is_good("nothing hidden in these", "hidden pointers or none: an audit decides")),
    Row(6, "launches of all programs carry their pointers", "", pointers(None),
        none_is_good("nothing hidden in these", "hidden pointers or none: an audit decides")),
    Row(6, "launches of GPT-2, ResNet and a mixture of experts carry their pointers", "", pointers(("torch_models",)),
        none_is_good("nothing hidden in these", "hidden pointers or none: an audit decides")),
    Row(6, "torch asks the driver for each tensor, as the launcher sets it", "", torch_allocator,
        lambda text: "tensors are seen" if text.startswith("cudaMallocAsync") else "tensors are hidden: other variables are needed"),
    Row(6, "either of torch's variables would do", "", torch_variables,
        lambda text: "one name is enough" if text.count("cudaMallocAsync") == 2 else "the launcher must set both"),
    Row(6, "JAX asks the driver more often, as the launcher sets it", "", jax_allocator, lambda _: "an executable's temporaries still share one block"),
    Row(7, "recording with CUPTI: launch call on, over never on", "x", recording("on"), lambda _: "what the watching iteration costs a launch"),
    Row(7, "detached it costs nothing", "x", recording("detached"),
        lambda x: "detach after recording" if x < 1.1 else "something stays: record in a run of its own"),
    Row(7, "first enabling", "ns", lambda facts: facts.median("cupti", "first enabling"), lambda _: "the stall that recording begins with"),
    Row(7, "a second subscriber", "", text_fact("cupti", "second subscriber"),
        lambda text: "lives beside a profiler" if text == "accepted" else "under a profiler: no records of our own"),
    Row(8, "launched again, kernels give the same bits", "", impure,
        none_is_good("all tried may be launched again", "those named must not be")),
]
