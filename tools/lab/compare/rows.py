"""One job each: what is prepared for a program, and a row: a way whose memory is set so that the peak is within a share."""
import contextlib
import math
import pathlib
import shutil
import subprocess
import sys

from gpu_suite import common

from . import runs

TRIES = 3            # of a row, until its peak is what it shall be
MOST_PREPARATION = 15
PEAK_STEPS = 3       # enough for a program's peak, where only that is asked for
CHUNK, SMALL_CHUNK = 2 << 20, 256 << 10  # by which a budget is made smaller, on a GPU and on the simulated device
HERE = pathlib.Path(__file__).resolve().parent


class Lab(runs.Runner):
    def plain(self, job):
        return self.changed(job.program, None)

    def audit(self, job, plain):
        """Its time counts from the program's start, which takes longer than the audit itself. Simulated, it ends by itself."""
        started = math.ceil(plain.get("first_line_seconds") or 0)
        seconds = math.ceil(self.row_seconds) if self.suite.device.simulated else started + self._preparation()
        device = ["--device", "sim"] if self.suite.device.simulated else []
        command = job.program.command(self.suite.python, self.suite.root / "examples" / "pytorch", self.steps)
        return self.measure([self.suite.binary("reprise"), "audit", *device, "--seconds", str(seconds), "--", *command],
                            self.environment(REPRISE_FACTS=str(self._no_facts(job))))

    def examine(self, job, _):
        self._no_facts(job)
        return self.under_reprise(job, REPRISE_BUDGET="100%", REPRISE_EXAMINE=str(self._preparation()))

    def _preparation(self):
        """Seconds for one try of an audit once the program has started, and for an examination."""
        return math.ceil(min(MOST_PREPARATION, self.row_seconds / 3))

    def _no_facts(self, job):
        """An empty folder for them: where it is gone, the preparation is made once more."""
        shutil.rmtree(self.facts(job), ignore_errors=True)
        self.facts(job).mkdir(parents=True)
        return self.facts(job)

    def all_layers(self, job, _):
        return self.changed(job.program, job.way.changes, job.program.layers, PEAK_STEPS)

    def row(self, job, plain, everywhere):
        way, target = job.way, plain["peak_device_bytes"] * job.share // 100
        if way.module and not self.modules.get(way.module):
            return {"skipped": f"{way.module} is not installed", "target_bytes": target}
        if way.safety:
            made = self._budget(job, target, plain)
        elif way.layers:
            made = self._layers(job, target, plain, everywhere)
        elif way.managed:
            made = self._managed(job, target, plain)
        else:
            made = self.changed(job.program, way.changes, plain=plain, **dict(way.variables))
        peak = made.get("peak_device_bytes")
        return {**made, "target_bytes": target, "within": peak is not None and peak <= target}

    @staticmethod
    def _until_it_fits(target, setting, following, run):
        """Runs with a setting, and with those that follow from its peak; the row is the one that uses most of the target."""
        tried = {}
        while setting is not None and setting not in tried and len(tried) < TRIES:
            made = tried[setting] = run(setting)
            if made["exit_code"] != 0 or not made.get("peak_device_bytes"):
                return {**made, "attempts": len(tried)}
            setting = following(setting, made["peak_device_bytes"])
        peaks = {row["peak_device_bytes"]: row for row in tried.values()}
        best = max((peak for peak in peaks if peak <= target), default=min(peaks))
        return {**peaks[best], "attempts": len(tried)}

    def _budget(self, job, target, plain):
        chunk = SMALL_CHUNK if self.suite.device.simulated else CHUNK

        def run(budget):
            made = self.under_reprise(job, plain, REPRISE_BUDGET=str(budget), REPRISE_SAFETY=job.way.safety)
            return {**made, "setting": f"--budget {budget} --safety {job.way.safety}"}

        def smaller(budget, peak):
            return budget - math.ceil((peak - target) / chunk) * chunk if peak > target else None

        return self._until_it_fits(target, target - chunk, smaller, run)

    def _layers(self, job, target, plain, everywhere):
        """As few layers as reach the target: by rule of three from all and none, then more or one less."""
        layers, most = job.program.layers, plain["peak_device_bytes"]
        each = (most - everywhere["peak_device_bytes"]) / layers
        if each <= 0 or everywhere["peak_device_bytes"] > target:
            fewest = layers
        else:
            fewest = min(layers, max(1, math.ceil((most - target) / each)))

        def run(count):
            made = self.changed(job.program, job.way.changes, count, plain=plain)
            return {**made, "setting": f"{count} of {layers} layers"}

        def other(count, peak):
            if each <= 0:
                return None
            if peak > target:
                return min(layers, count + math.ceil((peak - target) / each))
            return count - 1 if count > 1 and target - peak >= each else None

        return self._until_it_fits(target, fewest, other, run)

    def _managed(self, job, target, plain):
        library = self._library()
        with self._only(target) as setting:
            made = self.changed(job.program, None, plain=plain, preload=[library], **dict(job.way.variables))
        return {**made, "setting": setting}

    def _library(self):
        source, library = HERE.parent / "managed.c", self.suite.build / "lab" / "managed.so"
        if not library.exists() or (shutil.which("cc") and source.stat().st_mtime > library.stat().st_mtime):
            library.parent.mkdir(exist_ok=True)
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        return library

    @contextlib.contextmanager
    def _only(self, target):
        """A device of which no more is free."""
        if self.suite.device.simulated:
            yield "not limited: managed memory does not leave the simulated device"
            return
        holder = subprocess.Popen([sys.executable, HERE / "ballast.py", self.suite.device.driver, str(target)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            left = holder.stdout.readline().strip()
            if not left:
                raise common.Skipped("no ballast: the device's memory could not be held")
            yield f"{left} bytes left on the device"
        finally:
            holder.stdin.close()
            holder.wait()
