"""The main job of tools/demo: chargpt plain, recorded, and under several budgets; compares every bit and the peak memory.

Called by tools/demo with the build folder and the folder for its results. Exits with 1 when anything differs.
"""
import json
import os
import re
import subprocess
import sys
import time

# Large enough that most of its memory is in activations, as with real models; nothing else is set.
MODEL = ["--batch", "32", "--steps", "12", "--seed", "7"]


class Demo:
    def __init__(self, build, folder):
        self.build = os.path.abspath(build)
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.rows = []
        self.failed = False

    def path(self, name):
        return os.path.join(self.folder, name)

    def built(self, name):
        return os.path.join(self.build, name)

    def program(self):
        return [self.built("bin/chargpt")] + MODEL

    def run(self, name, command, environment):
        """Runs one variant; returns (stdout, stderr, exit code, peak device bytes as the driver counts them, seconds)."""
        stats = self.path(f"{name}.stats.json")
        if os.path.exists(stats):
            os.remove(stats)
        start = time.monotonic()
        done = subprocess.run(command, env={**os.environ, "REPRISE_SIM_STATS": stats, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seconds = time.monotonic() - start
        peak = json.load(open(stats, encoding="utf-8"))["peak_bytes"] if os.path.exists(stats) else 0
        with open(self.path(f"{name}.out"), "w", encoding="utf-8") as file:
            file.write(done.stdout)
        return done.stdout, done.stderr, done.returncode, peak, seconds

    def reprise(self, *arguments):
        return [self.built("bin/reprise"), *arguments]

    def compare(self, label, result, limit):
        out, err, code, peak, seconds = result
        same = out == self.plain[0]
        kept = peak <= limit
        ok = same and kept and code == 0
        self.failed |= not ok
        self.rows.append((label, f"{peak / 2**20:.2f}", f"{limit / 2**20:.2f}", "equal" if same else "DIFFERENT",
                          f"{seconds:.1f}"))
        print(f"  {label:<34} peak {peak / 2**20:7.2f} of {limit / 2**20:7.2f} MiB, bits "
              f"{'equal' if same else 'DIFFERENT'}, {seconds:.1f} s{'' if ok else '  <-- FAILED'}", flush=True)
        if not ok:
            sys.stdout.write(err[-2000:])

    def staged(self, label, budget, limit):
        """Plan for a budget from the recorded trace, then replay."""
        plan = self.path(f"{label}.plan")
        done = subprocess.run(self.reprise("plan", self.path("chargpt.trace"), "--budget", budget, "-o", plan),
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            self.failed = True
            print(f"  {label}: {done.stderr.strip()}")
            return
        result = self.run(label, self.reprise("replay", "--device", "sim", "--plan", plan, "--run-log",
                                              self.path(f"{label}.run"), "--") + self.program(), {})
        self.compare(f"planned ahead, {label}", result, limit)

    def main(self):
        sim = {"LD_LIBRARY_PATH": self.built("lib/sim")}
        print("chargpt, plain:", flush=True)
        self.plain = self.run("plain", self.program(), sim)
        peak = self.plain[3]
        if self.plain[2] != 0 or peak == 0:
            sys.exit(f"the plain run failed:\n{self.plain[1]}")
        print("  " + "\n  ".join(self.plain[0].strip().splitlines()[-3:]))
        print(f"  peak {peak / 2**20:.2f} MiB, {self.plain[4]:.1f} s")
        print("chargpt, under Reprise:", flush=True)
        for percent in (50, 35):
            report = self.path(f"chargpt-{percent}.html")
            result = self.run(f"run-{percent}", self.reprise(
                "run", "--device", "sim", "--budget", f"{percent}%", "-o", report, "--") + self.program(), {})
            self.compare(f"reprise run --budget {percent}%", result, peak * percent / 100)
        shim = {**sim, "LD_PRELOAD": self.built("lib/reprise/libreprise.so"),
                "REPRISE_DRIVER": self.built("lib/sim/libcuda.so.1"), "REPRISE_BUDGET": "50%"}
        self.compare("LD_PRELOAD and variables, 50%", self.run("preload", self.program(), shim), peak * 0.5)
        recorded = self.run("record", self.reprise("record", "--device", "sim", "-o", self.path("chargpt.trace"), "--")
                            + self.program(), {})
        self.compare("reprise record", recorded, peak)
        self.staged("50%", "50%", peak * 0.5)
        self.smallest()
        print(f"report: {os.path.relpath(self.path('chargpt-50.html'))}")
        if not os.path.exists(self.path("chargpt-50.html")):
            self.failed = True
            print("the report is missing")
        return 1 if self.failed else 0

    def smallest(self):
        """The smallest budget that the planner says is possible works; one byte less is refused with that number."""
        plan = self.path("none.plan")
        refuse = subprocess.run(self.reprise("plan", self.path("chargpt.trace"), "--budget", "1%", "-o", plan),
                                stderr=subprocess.PIPE, text=True)
        found = re.search(r"at least (\d+) bytes", refuse.stderr)
        if refuse.returncode != 1 or not found:
            self.failed = True
            print(f"  a budget of 1% was not refused as it should be: {refuse.stderr.strip()}")
            return
        smallest = int(found.group(1))
        self.staged("smallest", str(smallest), smallest)
        below = subprocess.run(self.reprise("plan", self.path("chargpt.trace"), "--budget", str(smallest - 1), "-o",
                                            plan), stderr=subprocess.PIPE, text=True)
        named = str(smallest) in below.stderr
        self.failed |= below.returncode != 1 or not named
        print(f"  one byte less: {below.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(Demo(sys.argv[1], sys.argv[2]).main())
