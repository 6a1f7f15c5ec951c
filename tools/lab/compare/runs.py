"""Runs a program, plain, changed or under Reprise, and tells what was seen of it. Peaks are measured alike for all, from
outside: on a GPU by how much less of the device is free (gpu_suite/memory.py), on the simulated one by its own counters."""
import json
import pathlib
import statistics
import subprocess
import tempfile

from gpu_suite import programs

from . import subjects, ways

FIRST_STEPS = 30
STREAM_ORDERED = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync", "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}  # for small models: what scripts ask for is 32 MiB
WAIT = {"REPRISE_WAIT_FOR_PLAN": "1"}  # so that a few steps are enough for a plan
OF_THE_RUN = ("iterations_planned", "iterations_on_demand", "offload_bytes", "reload_bytes", "repeated_launches",
              "median_planned_iteration_ns", "median_on_demand_iteration_ns")
LINK, MAP = 25, "40"  # of the simulated device: its memory's rate over its link's, and microseconds to map a chunk
SIMULATED_LIBRARIES = ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13")


class PartOver(Exception):
    """The part's time is spent: what was running is no row."""


def step_times(finished):
    """Milliseconds between the lines that report a loss, and seconds to the first of them."""
    times = [at for at, line in zip(finished.line_times, finished.output.splitlines()) if "loss" in line]
    return [round((after - before) * 1e3, 3) for before, after in zip(times, times[1:])], times[0] if times else None


def problem(finished):
    """The program's own last word, where the device or the preloaded library speaks behind it."""
    lines = [line for line in finished.errors.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith("reprise:")] or lines or [""]
    return f"ended with {finished.code}: {own[-1].strip()[:300]}"


def compared(lines, plain):
    """How the result lines compare with the plain run's, to the bit of what is printed, which is every digit."""
    if lines == plain:
        return "equal"
    same = next((at for at, pair in enumerate(zip(lines, plain)) if pair[0] != pair[1]), min(len(lines), len(plain)))
    if same == len(lines) < len(plain):
        return f"equal as far as it got, {same} of {len(plain)} lines"
    return f"differ from line {same + 1} on"


class Runner:
    def __init__(self, suite, folder, steps, row_seconds, clock, rate):
        self.suite, self.folder, self.steps, self.row_seconds, self.clock, self.rate = suite, folder, steps, row_seconds, clock, rate
        self.modules = self._modules()

    def _modules(self):
        """Which of the packages the python of the programs has."""
        text = ("import importlib.util, json, sys; print(json.dumps({name: importlib.util.find_spec(name) is not None "
                "for name in sys.argv[1:]}))")
        done = subprocess.run([self.suite.python, "-c", text, *ways.MODULES], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def facts(self, job):
        """What a preparation has found out of the program's kernels, for it and the rows that need it alone."""
        prepare = job.way.prepare if job.way else job.kind
        return self.folder / "compare-facts" / f"{job.program.name} {prepare or 'none'}"

    def environment(self, **more):
        common_to_all = {"PYTHONDONTWRITEBYTECODE": "1"}
        if self.suite.device.simulated:
            link = str(self.rate * 1_000_000 // LINK)
            common_to_all.update(SMALL_WORKSPACE, REPRISE_SIM_MEMORY_RATE=f"{self.rate}MB", REPRISE_SIM_H2D=link, REPRISE_SIM_D2H=link, REPRISE_SIM_MAP=MAP)
        return self.suite.environment(**common_to_all, **more)

    def bare(self, preload=(), **more):
        """For a run without a launcher. PyTorch brings a runtime that would find no simulated device; and kernels, which are
        hashes of whole allocations there, have the same bits only where all ways allocate alike."""
        libraries = [str(path) for path in preload]
        if self.suite.device.simulated:
            libraries += [str(self.suite.device.driver.parent / name) for name in SIMULATED_LIBRARIES]
            more = {**STREAM_ORDERED, **more}
        return self.environment(**({"LD_PRELOAD": ":".join(libraries)} if libraries else {}), **more)

    def measure(self, command, environment, plain=None):
        """Runs it once; a run that the end of the part cut short is none."""
        limit = min(self.row_seconds, self.clock.left())
        if limit < 1:
            raise PartOver
        with tempfile.TemporaryDirectory(prefix="reprise-lab-") as folder:
            finished, row = programs.measured(self.suite, command, environment, limit, folder)
            if self.suite.device.simulated:
                row["clock"] = self._clock_of(pathlib.Path(folder) / "stats.json")
        if finished.timed_out and limit < self.row_seconds:
            raise PartOver
        if "problem" in row:
            row["problem"] = problem(finished)
        gaps, first = step_times(finished)
        row.update(timed_out=finished.timed_out, first_line_seconds=first, first_steps_ms=gaps[:FIRST_STEPS],
                   steps=len(gaps) + 1 if first else 0)
        del row["seconds_per_iteration"]
        if gaps:
            row["steady_ms"] = statistics.median(gaps[-max(1, len(gaps) // 4):])
        lines = programs.results(finished)
        if plain:
            row["bits"] = compared(lines, plain["lines"]) if lines else "no line"
        else:
            row["lines"] = lines
        return row

    @staticmethod
    def _clock_of(path):
        """Of the modelled clock: what it took, and what of that is the host's because it was too slow; late: a part that counts."""
        stats = json.loads(path.read_text()) if path.exists() else {}
        made = {name: stats[name] for name in ("modelled_ns", "host_ns", "lost_ns") if name in stats}
        return {**made, "late": 100 * made.get("lost_ns", 0) > made.get("modelled_ns", 0)}

    def changed(self, program, changes, layers=None, steps=None, plain=None, **environment):
        """A run of the script with its changes, which may be none."""
        with tempfile.TemporaryDirectory(prefix="reprise-lab-") as folder:
            lines = subjects.copy_changed(self.suite.root / "examples" / "pytorch", folder, changes(program, layers) if changes else ())
            row = self.measure(program.command(self.suite.python, folder, steps or self.steps), self.bare(**environment), plain)
        return {**row, "lines_changed": lines}

    def under_reprise(self, job, plain=None, **variables):
        """The preloaded library without the launcher, which would make a page of each run; with the allocator that it sets."""
        log = self.folder / "compare.run"
        log.unlink(missing_ok=True)
        row = self.changed(job.program, None, plain=plain, preload=[self.suite.build / "lib" / "reprise" / "libreprise.so"],
                           REPRISE_FACTS=str(self.facts(job)), REPRISE_RUN_LOG=str(log), **STREAM_ORDERED, **variables,
                           **(WAIT if self.suite.device.simulated else {}))
        summary = programs.read_run_log(log)
        return {**row, "run": {name: summary[name] for name in OF_THE_RUN if name in summary}}
