"""The main job of tools/demo: builds the product, runs chargpt plain and under two budgets, compares every bit and the peak.

Called by tools/demo with the build folder and the folder for its results. Exits with 1 if anything differs.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TARGETS = ["reprise", "reprise_preload", "reprise_nvml", "reprise_sim_cuda", "reprise_sim_cudart", "chargpt", "chargpt_twins"]
# Large enough that most of its memory is in activations, as with real models, and that a plan is followed; nothing else is set.
MODEL = ["--batch", "32", "--steps", "8", "--seed", "7"]
MIB = 2**20


def tell(text, last=False):
    """A line that replaces itself on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[Kreprise: {text}" + ("\n" if last else ""))
    else:
        sys.stderr.write(f"reprise: {text}\n")
    sys.stderr.flush()


def build(folder):
    began, told, output = time.monotonic(), 0.0, []
    command = ["cmake", "--build", folder, "-j", os.environ.get("JOBS") or str(os.cpu_count()), "--target", *TARGETS]
    process = subprocess.Popen(command, env={**os.environ, "NINJA_STATUS": "@%f/%t@ "}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        output.append(line)
        now, done = time.monotonic(), re.match(r"@(\d+)/(\d+)@", line)
        if not done or now - told < (1 if sys.stderr.isatty() else 20):
            continue
        told, finished, total = now, int(done[1]), int(done[2])
        left = (now - began) / max(finished, 1) * (total - finished)
        tell(f"2 of 3, build: {finished} of {total} steps" + (f", {left:.0f} s to go" if finished * 20 > total else ""))
    if process.wait() != 0:
        sys.exit("".join(output[-40:]) + "reprise: the build failed; what it said last stands above")
    tell(f"2 of 3, build: done in {time.monotonic() - began:.0f} s", last=True)


class Demo:
    def __init__(self, build_folder, folder):
        self.build, self.folder = pathlib.Path(build_folder).resolve(), pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = [str(self.build / "bin/chargpt"), *MODEL]
        self.failed = False

    def run(self, command, environment):
        """(what it printed, what it said, exit code, peak bytes as the device counts them, seconds)"""
        stats = self.folder / "stats.json"
        stats.unlink(missing_ok=True)
        began = time.monotonic()
        done = subprocess.run(command, env={**os.environ, "REPRISE_SIM_STATS": str(stats), **environment}, capture_output=True, text=True, check=False)
        peak = json.loads(stats.read_text())["peak_bytes"] if stats.exists() else 0
        return done.stdout, done.stderr, done.returncode, peak, time.monotonic() - began

    def main(self):
        tell("3 of 3, chargpt plain, then within 50 % and 35 % of its memory", last=True)
        plain, said, code, whole, seconds = self.run(self.program, {"LD_LIBRARY_PATH": str(self.build / "lib/sim")})
        if code != 0 or whole == 0:
            sys.exit(f"the plain run failed:\n{said}")
        print("\n".join(plain.strip().splitlines()[-3:]))
        print(f"{'plain':<28} peak {whole / MIB:6.2f} MiB, {seconds:.1f} s")
        for percent in (50, 35):
            report = self.folder / f"chargpt-{percent}.html"
            report.unlink(missing_ok=True)
            budget = f"{percent}%"
            out, said, code, peak, seconds = self.run(
                [str(self.build / "bin/reprise"), "run", "--device", "sim", "--budget", budget, "-o", str(report), "--", *self.program], {})
            good = out == plain and code == 0 and peak <= whole * percent / 100 and report.exists()
            self.failed |= not good
            print(f"{'reprise run --budget ' + budget:<28} peak {peak / MIB:6.2f} MiB, bits {'equal' if out == plain else 'DIFFERENT'}, {seconds:.1f} s"
                  + ("" if good else f"  <-- FAILED\n{said[-2000:]}"))
        print(f"report: {os.path.relpath(self.folder / 'chargpt-50.html')}")
        return 1 if self.failed else 0


if __name__ == "__main__":
    build(sys.argv[1])
    sys.exit(Demo(sys.argv[1], sys.argv[2]).main())
