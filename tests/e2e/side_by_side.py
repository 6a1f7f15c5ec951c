"""Runs a program plain and under Reprise on the simulated device, and says whether a managed run kept its promise: the
same lines, or an error that the program saw and that one message tells. Callers: the scripts named check."""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

Outcome = collections.namedtuple("Outcome", "code out err")

TIMED_OUT = 124
FAILED = 3  # how the programs end when a call answers an error


def plain(build, chunk, more=None):
    """The environment in which a program finds the simulated device instead of a driver."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("REPRISE_")}
    variables.update({"LD_LIBRARY_PATH": os.path.join(build, "lib/sim"), "REPRISE_SIM_GRANULARITY": chunk,
                      "REPRISE_SIM_MEMORY": "1GiB", "REPRISE_SIM_STRICT": "1", "REPRISE_KEEP_PLANS": "0",
                      "REPRISE_NVDISASM": "none"})
    variables.update(more or {})
    return variables


def managed(build, chunk, budget, more=None):
    """... and under the preloaded library."""
    return plain(build, chunk, {"LD_PRELOAD": os.path.join(build, "lib/reprise/libreprise.so"),
                                "REPRISE_DRIVER": os.path.join(build, "lib/sim/libcuda.so.1"),
                                "REPRISE_BUDGET": budget, **(more or {})})


def audited(build, chunk, command, facts, more=None, seconds=180):
    """`reprise audit` of the whole program: what it finds is in the folder `facts`."""
    audit = [os.path.join(build, "bin/reprise"), "audit", "--whole", "--tries", "40", "--device", "sim", "--framework", "none"]
    return run([*audit, "--", *command], plain(build, chunk, {**(more or {}), "REPRISE_FACTS": facts}), seconds)


def audit_verdict(expected, got):
    """("same" | "wrong", why): the last of its runs is whole, and prints the lines of the plain one."""
    if got.code == 0 and got.out.endswith(expected.out):
        return "same", ""
    return "wrong", f"audit: exit code {got.code}" if got.code != 0 else "audit: different lines"


def run(command, environment, seconds=60):
    """Kills what hangs, with all that it has started."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True, text=True, errors="replace")
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return Outcome(TIMED_OUT, out, err)
    return Outcome(process.returncode, out, err)


def peak_of(stats):
    """The most that the device has counted."""
    with open(stats, encoding="utf-8") as file:
        return json.load(file)["peak_bytes"]


def end_of(log):
    """The last line that the program itself wrote into its run log."""
    with open(log, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == "end"][-1]


def parser(doc, jobs=2):
    """What each script that runs thousands of random programs is asked."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--seeds", type=int, default=5000)
    made.add_argument("--first", type=int, default=1)
    made.add_argument("--jobs", type=int, default=jobs)
    made.add_argument("--build", default="build/release")
    made.add_argument("--show", type=int)
    return made


def show(command, environment, expected, got):
    """A managed run with all that it says, and the command by which to run it without the script."""
    ours = {key: value for key, value in environment.items() if os.environ.get(key) != value}
    print("env " + shlex.join([f"{key}={value}" for key, value in ours.items()] + command))
    for plain_line, line in zip(expected.out.splitlines(), got.out.splitlines()):
        print(line if line == plain_line else f"{line}   plain: {plain_line}")
    print(got.err, end="")


def messages(outcome):
    """What the preloaded library said, without what the device says of its own settings, and what a plan says of its launches."""
    return [line for line in outcome.err.splitlines()
            if line.startswith("reprise:") and not line.startswith(("reprise: simulated device:", "reprise: --safety audited:"))]


def above_budget(line):
    """What the line says was used of the device, where it says that this is above the budget; else None."""
    found = re.search(r"([0-9.]+ [KMG]?i?B) of device memory were used at most, above the budget", line)
    return found and found.group(1)


def readable(size):
    """As messages say it: half of the last place is rounded up."""
    if size < 1 << 10:
        return f"{size} B"
    unit, name = next(((unit, name) for unit, name in ((1 << 10, "KiB"), (1 << 20, "MiB")) if 2 * size < 2047 * unit),
                      (1 << 30, "GiB"))
    tenths = (20 * size + unit) // (2 * unit)
    return f"{tenths / 10:.1f} {name}" if size * 100 < 9995 * unit else f"{(2 * size + unit) // (2 * unit)} {name}"


def account(log, stats, got, ended_well):
    """("same" | "wrong", why): what the run log and the last line tell is what the device has counted, and within the
    budget unless a line says that it is not. A percentage is of a peak that a program with an error has not come to, and is not
    known where nothing is managed; the device says nothing of one that leaves at once."""
    if not ended_well and not os.path.exists(stats):
        return "same", ""
    if not os.path.exists(log):
        return "wrong", "no run log"
    with open(log, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    with open(stats, encoding="utf-8") as file:
        counted = json.load(file)
    peaks = [device["peak_bytes"] for device in counted.get("devices", [counted])]
    ends = [entry for entry in entries if entry["kind"] == "end"]
    if len(ends) != 1:
        return "wrong", f"{len(ends)} ends in the run log"
    used, budget = ends[0]["peak_used_bytes"], ends[0]["budget_bytes"]
    if used not in peaks:  # that of the device whose memory is managed
        return "wrong", f"a peak of {used} bytes is told, the device has counted {' or '.join(map(str, peaks))}"
    told = [amount for amount in map(above_budget, messages(got)) if amount is not None]
    if any(amount not in (readable(used), f"{used} B") for amount in told):
        return "wrong", f"{told[0]} are told, the device has counted {used} bytes"
    is_share = any("budget_percent" in entry for entry in entries if entry["kind"] == "start")
    unknown = is_share and (budget == 0 or not ended_well)
    if used > budget and not told and not unknown:
        return "wrong", f"{used} bytes of a budget of {budget}, and no word of it"
    return "same", ""


def verdict(expected, got):
    """("same" | "told" | "wrong", why): `expected` is the plain run, which ended well."""
    if got.code == TIMED_OUT:
        return "wrong", "hangs"
    if got.code < 0:
        return "wrong", f"dies of signal {-got.code}"
    if got.code == 0:
        return ("same", "") if got.out == expected.out else ("wrong", "different lines and exit 0")
    if not expected.out.startswith(got.out):
        return "wrong", "different lines before the error"
    if got.code != FAILED:
        return "wrong", f"exit code {got.code}"
    count = sum(above_budget(line) is None for line in messages(got))
    return ("told", "") if count == 1 else ("wrong", f"an error with {count} messages")


def error_of(outcome):
    """The error's name in the program's last line on stderr, "" if there is none."""
    lines = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    return lines[-1].rsplit(": ", 1)[1] if lines else ""


class Check:
    """Random programs by the thousand, one a seed. A subclass has case(seed), command(case), environment(case) and
    judge(case): ("same" | "told" | "wrong", why, plain, managed)."""

    # A refusal: a call that works on more than the budget, or memory that is not managed and has no room within it.
    no_room = ("of device memory at once", "of device memory, which cannot be moved")

    def __init__(self, build, folder):
        self.build = build
        self.folder = folder

    def verdict(self, plain, got):
        found, why = verdict(plain, got)
        if found == "told" and not any(words in got.err for words in self.no_room):  # it tells of something else
            return "wrong", f"tells {error_of(got)}"
        return found, why

    def show(self, case):
        found, why, plain, got = self.judge(case)
        print(f"{found} {why}")
        show(self.command(case), self.environment(case), plain, got)

    def summary(self):
        return ""

    @classmethod
    def main(cls, doc):
        options = parser(doc).parse_args()
        with tempfile.TemporaryDirectory(prefix="check") as folder:
            check = cls(os.path.abspath(options.build), folder)
            if options.show is not None:
                return check.show(check.case(options.show))
            begin = time.time()
            counts = collections.Counter()
            cases = [check.case(seed) for seed in range(options.first, options.first + options.seeds)]
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for case, (found, why, _, _) in zip(cases, pool.map(check.judge, cases)):
                    counts[found] += 1
                    if found == "wrong":
                        print(f"{case}: {why}", flush=True)
        print(f"{len(cases)} programs in {time.time() - begin:.0f} s: {dict(counts)}{check.summary()}")
        if counts["wrong"] or counts["same"] < len(cases) // 2:
            sys.exit(f"{counts['wrong']} wrong")
        return None
