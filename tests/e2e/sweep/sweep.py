#!/usr/bin/env python3
"""Every call of the driver that the preloaded library itself makes fails once, at its first and at later occurrences.

    sweep.py BUILD [--short] [--jobs N] [--victim NAME] [--call NAME] [--at N] [--code N] [-o PAGE]

For each victim (victims.py): a plain run, a managed one that counts (REPRISE_SIM_CALLS), then one run for each call and
occurrence (REPRISE_SIM_FAIL=shim.CALL@N=CODE), judged by judge.py. Exits with 1 when anything is WRONG.
"""
import argparse
import collections
import concurrent.futures
import os
import sys
import tempfile
import time

import documentation
import judge
from victims import run, victims

FIRST = 10
SPREAD = 40


def places(count, first, spread):
    """1 to `first`, then `spread` more up to the last."""
    chosen = list(range(1, min(count, first) + 1))
    rest = count - first
    if rest > 0:
        chosen += sorted({first + 1 + (rest - 1) * i // max(spread - 1, 1) for i in range(min(spread, rest))})
    return chosen


def read_counts(path):
    """(how often by the shim, how often by others), by call."""
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return {name: (int(shim), int(others)) for name, shim, others in rows}


class Sweep:
    def __init__(self, build, victim, options):
        self.build, self.victim, self.options = build, victim, options
        with tempfile.TemporaryDirectory(prefix="reprise-sweep-") as folder:
            def counted(managed):
                path = os.path.join(folder, str(managed))
                start = time.monotonic()
                found = run(build, victim, {"REPRISE_SIM_CALLS": path}, managed, 300)
                return found, read_counts(path), time.monotonic() - start
            self.plain, plain_counts, _ = counted(False)
            self.reference, self.counts, seconds = counted(True)
        self.plain_calls = set(plain_counts)
        self.limit = 30 + 20 * seconds
        if (self.plain.code, self.plain.out) != (0, self.reference.out):
            sys.exit(f"{victim.name}: without any fault, a budget changes the output\n{self.reference.err}")
        if not judge.planned_after(self.reference, 0):
            sys.exit(f"{victim.name}: no iteration is planned\n{self.reference.err}")

    def cases(self):
        for call, (shim, _) in sorted(self.counts.items()):
            if shim == 0 or (self.options.call and call != self.options.call):
                continue
            chosen = [self.options.at] if self.options.at else places(shim, *self.options.places)
            code = self.options.code or documentation.code_to_inject(judge.toolkit(), call)
            for nth in chosen:
                yield call, nth, code

    def try_one(self, case):
        call, nth, code = case
        fault = f"shim.{call}@{nth}={code}"
        found = run(self.build, self.victim, {"REPRISE_SIM_FAIL": fault}, True, self.limit)
        if f"now {fault}" not in found.err:
            # How often a call comes depends on how far ahead the replay is; what was not reached must not differ, either.
            outcome, why = judge.judge(found, self.reference, (call, code), self.plain_calls)
            return case, ("not reached" if outcome == "unchanged" else outcome), why, found
        return case, *judge.judge(found, self.reference, (call, code), self.plain_calls), found


def table(victim, results):
    by_call = collections.defaultdict(collections.Counter)
    for (call, _, _), outcome, _, _ in results:
        by_call[call][outcome] += 1
    kinds = ("unchanged", "told", "WRONG", "not reached")
    lines = [f"## {victim.name}", "", "| call | reached | unchanged | told | WRONG | not reached |", "|---|---|---|---|---|---|"]
    total = collections.Counter()
    for call, counter in sorted(by_call.items()):
        total += counter
        lines.append(row(call, counter, kinds))
    lines += [row(f"{len(by_call)} calls", total, kinds), ""]
    for (call, nth, code), outcome, why, _ in results:
        if outcome == "WRONG":
            lines.append(f"- `shim.{call}@{nth}={code}`: {why}")
    reasons = collections.Counter(f"{call}: {why}" for (call, _, _), outcome, why, _ in results if outcome == "told")
    lines += [""] + [f"- told {number} times after {reason}" for reason, number in sorted(reasons.items())] + [""]
    return "\n".join(lines), total["WRONG"]


def row(name, counter, kinds):
    reached = sum(counter[kind] for kind in kinds[:3])
    return f"| {name} | {reached} | " + " | ".join(str(counter[kind]) for kind in kinds) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--victim")
    parser.add_argument("--call")
    parser.add_argument("--at", type=int)
    parser.add_argument("--code", type=int)
    parser.add_argument("--toolkit", default=judge.toolkit(), help="folder of cuda.h")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    options.places = (1, 2) if options.short else (FIRST, SPREAD)
    judge.use_toolkit(options.toolkit)
    build = os.path.abspath(options.build)
    pages, wrong, start = [], 0, time.monotonic()
    for victim in victims(build, options.short):
        if options.victim and victim.name != options.victim:
            continue
        sweep = Sweep(build, victim, options)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = []
            for result in pool.map(sweep.try_one, sweep.cases()):
                results.append(result)
                (call, nth, code), outcome, why, found = result
                if outcome == "WRONG":
                    print(f"{victim.name}: shim.{call}@{nth}={code}: {why}\n{found.err[-2000:]}", file=sys.stderr, flush=True)
        page, number = table(victim, results)
        print(page, flush=True)
        pages.append(page)
        wrong += number
    pages.append(f"{wrong} WRONG, {time.monotonic() - start:.0f} s")
    print(pages[-1])
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write("\n".join(pages) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
