"""programs: real programs plain, recorded, and replayed within budgets: the same bits, how much memory, how much time.

Runs each program through bin/reprise exactly as a user would, and compares the lines that it prints.
"""
import glob
import json
import os
import pathlib
import re
import statistics
import tempfile

from . import common
from .memory import Sampler

BUDGETS = ("90%", "60%")  # with 100 % nothing has to move, and there is no plan
TIME_UP = {"skipped": "the section's time was up"}
RESULT_LINE = re.compile(r"loss|checksum|weights|evaluation|^iteration \d|^final", re.I)  # what a program prints of its results; the rest may hold times


def subjects(suite):
    """(name, command, may run on the simulated device)."""
    small, large = ["--steps", "12"], "--layers 6 --width 384 --heads 6 --context 128 --batch 16 --steps 24".split()
    options = small if suite.device.simulated else large
    yield "chargpt", [suite.build / "bin" / "chargpt", *options], True
    yield "chargpt_static", [suite.build / "bin" / "chargpt_static", *options], False
    # Long enough to be recorded, planned and replayed; its kernels overwrite every argument with a hash of all of them.
    cubin = suite.build / "bin" / "hash_kernels.cubin"
    larger = [] if suite.device.simulated else ["--max-kib", "16384"]  # a GPU's chunks are of 2 MiB
    yield "random_program", [suite.build / "bin" / "random_program", cubin, "7", "12" if suite.device.simulated else "40", *larger], True
    script = suite.root / "examples" / "pytorch" / "train_gpt2.py"
    yield "train_gpt2.py", [suite.python, script, "--steps", "20"], False
    # PyTorch's memory operations alone, as tests/e2e/torch_test.cpp has them on the simulated device; tensors of several chunks.
    script = suite.root / "tests" / "e2e" / "victims" / "torch_memory.py"
    elements = [str(count) for count in (131072, 262144, 777777, 1048576, 2097152, 3000001, 4194304)]
    yield "torch_memory.py", [suite.python, script, "5", "60", *elements], False


def results(finished):
    return [line for line in finished.output.splitlines() if RESULT_LINE.search(line)]


def seconds_per_iteration(finished):
    """Median time between the lines that report a loss, without the first three (warm-up, recording)."""
    times = [time for time, line in zip(finished.line_times, finished.output.splitlines()) if "loss" in line.lower()]
    gaps = [after - before for before, after in zip(times, times[1:])][3:]
    return statistics.median(gaps) if gaps else None


def simulated_peak(path):
    """What the simulated driver itself counted, in the program's process."""
    try:
        return json.loads(pathlib.Path(path).read_text()).get("peak_bytes")
    except (OSError, ValueError):
        return None


def measured(suite, command, environment, seconds, folder):
    stats = os.path.join(folder, "stats.json")
    if suite.device.simulated:
        environment = dict(environment, REPRISE_SIM_STATS=stats)
    with Sampler(suite.device.simulated) as sampler:
        finished = common.run(command, environment, seconds)
    facts = {"exit_code": finished.code, "seconds": round(finished.seconds, 3),
             "seconds_per_iteration": seconds_per_iteration(finished), "result_lines": len(results(finished))}
    peak = simulated_peak(stats) if suite.device.simulated else sampler.peak
    if peak is not None:
        facts["peak_device_bytes"] = peak
    if finished.code != 0:
        facts["problem"] = finished.problem()
    return finished, facts


def read_run_log(path):
    """The last line of each kind that sums up, and what the iterations took."""
    summary, walls = {}, {"planned": [], "on_demand": []}
    old_words = {"passive": "on_demand", "iterations_passive": "iterations_on_demand"}  # as in preload/base/run_log_keys.def
    for line in pathlib.Path(path).read_text().splitlines() if os.path.exists(path) else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("kind") == "end":
            summary.update({old_words.get(key, key): value for key, value in record.items() if key != "kind"})
        mode = old_words.get(record.get("mode"), record.get("mode"))
        if record.get("kind") == "iteration" and mode in walls:
            walls[mode].append(record.get("wall_ns", 0))
        if record.get("kind") == "divergence":
            summary["first_divergence"] = summary.get("first_divergence", record)
    for mode, values in walls.items():
        if values:
            summary[f"median_{mode}_iteration_ns"] = statistics.median(values)
    return summary


def count_launches(suite, command, folder, seconds):
    """Kernels seen by the counting shim against those that CUPTI recorded, in a plain run of the program."""
    shim = suite.build / "lib" / "probe" / "libreprise_count.so"
    if not shim.exists():
        raise common.Skipped("the counting shim is not in the build")
    output = pathlib.Path(folder) / "counts"
    cupti = next((path for pattern in ("/usr/local/cuda/lib64/libcupti.so.13", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13")
                  for path in glob.glob(pattern)), "libcupti.so.13")
    environment = suite.environment(LD_PRELOAD=str(shim), REPRISE_COUNT_OUTPUT=str(output),
                                    REPRISE_COUNT_DRIVER=str(suite.device.driver))
    if not suite.device.simulated:
        environment["REPRISE_COUNT_CUPTI"] = os.environ.get("REPRISE_CUPTI", cupti)
    finished = common.run(command, environment, seconds)
    launched, recorded, state = {}, {}, "off"
    for path in glob.glob(str(output) + ".*"):
        counts = json.loads(pathlib.Path(path).read_text())
        state = counts["cupti"]
        for total, one in ((launched, counts["launched"]), (recorded, counts["recorded"])):
            for name, count in one.items():
                total[name] = total.get(name, 0) + count
    facts = {"exit_code": finished.code, "seen_by_shim": sum(launched.values()), "cupti": state}
    if state == "on":
        facts["recorded_by_cupti"] = sum(recorded.values())
        facts["missed"] = {name: count - launched.get(name, 0) for name, count in recorded.items() if count > launched.get(name, 0)}
    return facts


def one_program(suite, command, clock):
    reprise = suite.binary("reprise")
    device = ["--device", "sim"] if suite.device.simulated else []
    facts, good = {}, True
    with tempfile.TemporaryDirectory(prefix="reprise-gpu-suite-") as folder:
        trace = os.path.join(folder, "program.trace")
        plain, facts["plain"] = measured(suite, command, suite.environment(), clock.left(), folder)
        if plain.code != 0:
            return facts, False
        if not results(plain):
            facts["plain"]["problem"] = "it printed no result line: nothing to compare"
            return facts, False

        def compared(name, arguments):
            nonlocal good
            environment = suite.environment(REPRISE_FACTS=os.path.join(folder, "facts"))
            finished, facts[name] = measured(suite, [reprise, *arguments, "--", *command], environment, clock.left(), folder)
            facts[name]["bits_equal"] = finished.code == 0 and results(finished) == results(plain)
            good = good and facts[name]["bits_equal"]
            return finished

        clock.need(10, "launches")
        try:
            facts["launches"] = count_launches(suite, command, folder, clock.left())
        except common.Skipped as skipped:
            facts["launches"] = {"problem": str(skipped)}
        compared("recorded", ["record", *device, "-o", trace])
        for budget in BUDGETS:
            if clock.left() < 10:
                facts[f"replayed at {budget}"] = TIME_UP
                continue
            plan, log = os.path.join(folder, "program.plan"), os.path.join(folder, "program.run")
            planning = common.run([reprise, "plan", trace, "--budget", budget, "-o", plan], suite.environment(), clock.left())
            name = f"replayed at {budget}"
            if planning.code != 0:
                facts[name], good = {"problem": "plan " + planning.problem()}, False
                continue
            compared(name, ["replay", *device, "--plan", plan, "--run-log", log])
            facts[name]["run"] = read_run_log(log)
        # Kernels are launched again from other bytes: one that waits for what was changed hangs the device (decision 0037).
        if clock.left() < 20:
            facts["examined"] = TIME_UP
            return facts, good
        log = os.path.join(folder, "examined.run")
        compared("examined", ["run", *device, "--budget", "60%", "--safety", "trusted", "--examine", "10", "--run-log", log,
                              "-o", os.path.join(folder, "examined.html")])
        facts["examined"]["run"] = read_run_log(log)
    return facts, good


def run(suite, document, clock):
    document["programs"] = {}
    good = True
    for name, command, simulated in subjects(suite):
        if suite.device.simulated and not simulated:
            document["programs"][name] = {"skipped": "needs a GPU"}
            continue
        if "/" in str(command[0]) and not os.path.exists(command[0]):
            document["programs"][name] = {"skipped": f"{command[0]} is not built"}
            continue
        try:
            clock.need(20, name)
            facts, well = one_program(suite, command, clock)
        except common.Skipped as skipped:
            facts, well = {"skipped": str(skipped)}, True
        document["programs"][name] = facts
        good = good and well
        common.say(f"{name}: {summary(facts)}")
    return good


def summary(facts):
    if "skipped" in facts:
        return facts["skipped"]
    parts = []
    for name, one in facts.items():
        if "problem" in one:
            parts.append(f"{name}: {one['problem']}")
        elif "bits_equal" in one:
            time = one["seconds_per_iteration"]
            parts.append(f"{name}: bits {'equal' if one['bits_equal'] else 'DIFFER'}" + (f", {time * 1e3:.4g} ms" if time else ""))
    return "; ".join(parts)
