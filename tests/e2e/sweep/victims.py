"""The programs that the sweep runs, plain or under a budget on the simulated device, each in a session of its own.

Used by sweep.py. A run that does not end is killed with all that it started; what it left behind is found by its session.
"""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

DEVICE = {"REPRISE_SIM_GRANULARITY": "64KiB", "REPRISE_SIM_MEMORY": "1GiB", "REPRISE_SIM_STRICT": "1"}
# The modelled clock: what covers how much of a recording is the same on a busy machine.
CLOCK = {"REPRISE_SIM_MEMORY_RATE": "2GB"}


@dataclasses.dataclass
class Victim:
    name: str
    arguments: list
    budget: str


@dataclasses.dataclass
class Run:
    code: int  # -N: ended by signal N
    out: str
    err: str
    hung: bool
    left_behind: list
    log: list


def victims(build, short):
    """Deterministic programs with a plan of their own, an evaluation that diverges from it, and an end."""
    steps = "13" if short else "18"
    model = ["--layers", "2", "--width", "64", "--heads", "4", "--context", "32", "--batch", "8", "--seed", "5"]
    return [Victim("random", [f"{build}/bin/random_program", f"{build}/bin/hash_kernels.cubin", "11", steps, "--ops", "40",
                              "--max-kib", "384", "--odd-every", "8", "--retry"], "60%"),
            Victim("chargpt", [f"{build}/bin/chargpt", *model, "--steps", steps, "--eval-every", "7"], "60%")]


def session_of(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[3]) if fields[0] not in "ZX" else None
    except (OSError, IndexError, ValueError):
        return None


def members(session):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and session_of(name) == session]


def end_all(session):
    for process in members(session):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass


def run(build, victim, variables, managed, limit_seconds):
    with tempfile.TemporaryDirectory(prefix="reprise-sweep-") as folder:
        log = pathlib.Path(folder, "log")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("REPRISE_")}
        environment |= {"LD_LIBRARY_PATH": f"{build}/lib/sim", "TMPDIR": folder, **DEVICE, **CLOCK, **variables}
        if managed:
            environment |= {"LD_PRELOAD": f"{build}/lib/reprise/libreprise.so", "REPRISE_DRIVER": f"{build}/lib/sim/libcuda.so.1",
                            "REPRISE_BUDGET": victim.budget, "REPRISE_POLICY": "lru", "REPRISE_WAIT_FOR_PLAN": "1", "REPRISE_RUN_LOG": str(log)}
        with open(f"{folder}/out", "w+b") as out, open(f"{folder}/err", "w+b") as err:
            child = subprocess.Popen(victim.arguments, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            hung = False
            try:
                child.wait(limit_seconds)
            except subprocess.TimeoutExpired:
                hung = True
            left = [] if hung else lasting_members(child.pid)
            end_all(child.pid)
            child.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        lines = []
        if log.exists():
            for line in log.read_text(errors="replace").splitlines():
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    pass  # a line that a crash cut off
        return Run(child.returncode, texts[0], texts[1], hung, left, lines)


def lasting_members(session):
    """What is still there two seconds after the program: what was ending with it is not meant."""
    deadline = time.monotonic() + 2
    while (found := members(session)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
