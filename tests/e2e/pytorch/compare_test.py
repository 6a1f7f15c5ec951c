"""tools/lab/gpu-compare: its parts go on where the last one ended, however it ended; changes of scripts are made and counted.

compare_test.py BUILD. In place of PyTorch's scripts a program runs that has as many tensors as they have layers, on the
simulated device, plain and under Reprise.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "lab"))
sys.dont_write_bytecode = True

from compare import part, rows, subjects, ways  # noqa: E402

BUILD = None
SCRIPTS = ROOT / "examples" / "pytorch"
WAYS = "strict,checkpoint,save_on_cpu,trl,managed_prefetch"
# A layer that the changed script treats otherwise takes no memory. Each start is a line in the file beside it.
STAND_IN = """#!/usr/bin/env python3
import ctypes, os, re, sys
if sys.argv[1] == "-c":
    os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]])  # without packages, so that none counts as installed
option = lambda name: int(sys.argv[sys.argv.index(name) + 1])
spared = re.search("number < ([0-9]+)", open(os.path.join(os.path.dirname(sys.argv[1]), "train_gpt2.py")).read())
layers = option("--layers") - (int(spared.group(1)) if spared else 0)
with open(__file__ + ".starts", "a") as starts:
    starts.write(f"{layers}\\n")
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    if getattr(cuda, name)(*arguments) != 0:
        sys.exit(f"error: {name}")
context, host = ctypes.c_void_p(), (ctypes.c_ubyte * 4)()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
tensors = [ctypes.c_uint64() for _ in range(2 + layers)]
for tensor in tensors:
    call("cuMemAlloc_v2", ctypes.byref(tensor), ctypes.c_size_t(4 << 20))
for step in range(option("--steps")):
    for number, tensor in enumerate(tensors):
        call("cuMemsetD8_v2", tensor, ctypes.c_ubyte(step + number), ctypes.c_size_t(4 << 20))
    call("cuMemcpyDtoH_v2", host, tensors[0], ctypes.c_size_t(4))
    print(f"step {step} loss {bytes(host).hex()}", flush=True)
print("checksum 0")
"""


class Changes(unittest.TestCase):
    def change(self, program, changes):
        with tempfile.TemporaryDirectory() as folder:
            count = subjects.copy_changed(SCRIPTS, folder, changes)
            for name in (program.script, program.model):
                compile((pathlib.Path(folder) / name).read_text(), name, "exec")
            return count

    def test_every_way_finds_what_it_changes_in_every_program(self):
        expected = {"checkpoint": 3, "save_on_cpu": 5, "trl": 3, "torchtune": 3, "zero_offload": 8}
        for program in subjects.ON_A_GPU + subjects.SIMULATED:
            self.assertEqual(self.change(program, ()), 0)
            for way in ways.WAYS:
                if way.changes:
                    self.assertEqual(self.change(program, way.changes(program, 2)), expected[way.name], (program.name, way.name))

    def test_what_is_not_there_is_told(self):
        with self.assertRaisesRegex(ValueError, "train_gpt2.py has 0 times, not once: no such line"):
            self.change(subjects.ON_A_GPU[0], [("train_gpt2.py", "no such line", "")])

    def test_a_line_that_is_changed_new_or_gone_is_one(self):
        self.assertEqual(subjects.lines_changed("a\nb\nc\nd\n", "a\nB\nc\n"), 2)
        self.assertEqual(subjects.lines_changed("a\n", "a\nb\nc\n"), 2)


class Fit(unittest.TestCase):
    """A program whose peak is no straight line of its layers."""

    def fit(self, target, setting, peaks, following):
        run = unittest.mock.Mock(side_effect=lambda count: {"exit_code": 0, "peak_device_bytes": peaks[count], "count": count})
        made = rows.Lab._until_it_fits(target, setting, following, run)
        return made["count"], made["attempts"]

    def test_the_row_is_the_one_that_uses_most_of_the_target(self):
        peaks = {1: 90, 2: 85, 3: 60, 4: 40, 5: 30}
        towards = lambda count, peak: count + 1 if peak > 70 else count - 1 if count > 1 else None
        self.assertEqual(self.fit(70, 4, peaks, towards), (3, 3))
        self.assertEqual(self.fit(70, 2, peaks, towards), (3, 2))

    def test_a_target_out_of_reach_has_the_smallest_peak(self):
        self.assertEqual(self.fit(10, 3, {3: 60, 4: 40, 5: 30}, lambda count, peak: min(5, count + 1)), (5, 3))


class Audit(unittest.TestCase):
    def seconds(self, simulated):
        lab = rows.Lab.__new__(rows.Lab)
        lab.suite, lab.steps, lab.row_seconds = unittest.mock.MagicMock(), 6, part.SIMULATED_ROW_SECONDS if simulated else part.ROW_SECONDS
        lab.suite.device.simulated, lab.folder = simulated, pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        lab.environment, lab.measure = unittest.mock.Mock(), lambda command, _: command
        command = lab.audit(ways.Job("audit", subjects.ON_A_GPU[0], None, None), {"first_line_seconds": 20.5})
        return int(command[command.index("--seconds") + 1])

    def test_a_program_that_starts_slowly_is_audited_all_the_same(self):
        self.assertEqual(self.seconds(simulated=False), 21 + rows.MOST_PREPARATION)
        self.assertGreaterEqual(self.seconds(simulated=True), 10 * 45)


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out, self.state = self.folder / "out", self.folder / "out" / "compare.state.jsonl"
        self.python = self.folder / "python"
        self.python.write_text(STAND_IN)
        self.python.chmod(0o755)

    def command(self, *more):
        return [ROOT / "tools" / "lab" / "gpu-compare", "--simulated", "--build", BUILD, "--out", self.out, "--python", self.python,
                "--programs", "GPT-2", "--shares", "70", "--steps", "6", "--ways", WAYS, *more]

    def part(self, *more):
        return subprocess.run(self.command(*more), capture_output=True, text=True, timeout=200)

    def measured(self):
        return [json.loads(line)["key"] for line in self.state.read_text().splitlines()[1:]] if self.state.exists() else []

    def starts(self):
        return len((self.folder / "python.starts").read_text().splitlines())

    def test_a_part_ends_and_the_next_goes_on(self):
        self.assertEqual(self.part("--seconds", "0").returncode, 4)
        self.assertEqual(self.measured(), [])
        first = self.part("--runs", "3")
        self.assertEqual(first.returncode, 4, first.stderr)
        self.assertIn("3 runs in this part, 6 left: the same command goes on", first.stderr)
        self.assertEqual(self.measured(), ["GPT-2/plain", "GPT-2/again", "GPT-2/row/strict/70"])
        before = self.state.read_bytes()

        # Killed while it runs, and while it writes: whole rows stay.
        killed = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while len(self.measured()) < 5 and killed.poll() is None:
            time.sleep(0.01)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        whole = self.measured()
        self.assertGreaterEqual(len(whole), 5)
        with open(self.state, "ab") as file:
            file.write(b'{"key": "GPT-2/row/managed_pre')

        last = self.part()
        self.assertEqual(last.returncode, 0, last.stderr)
        self.assertTrue(self.state.read_bytes().startswith(before))
        self.assertEqual(self.measured()[:len(whole)], whole)
        self.assertEqual(len(set(self.measured())), 9)
        self.assertEqual(len(self.measured()), 9)
        self.check_results()
        starts = self.starts()
        self.assertEqual(self.part().returncode, 0)
        self.assertEqual(self.starts(), starts)

        other = self.part("--steps", "7")
        self.assertEqual((other.returncode, other.stderr.count("\n")), (2, 1), other.stderr)
        self.assertIn("steps 6, not 7): --fresh forgets it", other.stderr)
        self.assertEqual(self.part("--steps", "7", "--fresh", "--runs", "1").returncode, 4)
        self.assertEqual(self.measured(), ["GPT-2/plain"])

    def check_results(self):
        made = json.loads(next(self.out.glob("compare-simulated-*.json")).read_text())
        self.assertEqual((made["device"], made["not_measured"]), ("simulated", []))
        rows = {row["way"]: row for row in made["rows"] if row["kind"] == "row"}
        plain = made["rows"][0]
        self.assertEqual(plain["peak_device_bytes"], 8 * (4 << 20))
        self.assertEqual((rows["strict"]["bits"], rows["strict"]["within"], rows["strict"]["lines_changed"]), ("equal", True, 0))
        # 70 % of eight tensors are five, which three layers less come to, and not two.
        for way, lines in (("checkpoint", 3), ("save_on_cpu", 5)):
            self.assertEqual((rows[way]["setting"], rows[way]["within"], rows[way]["attempts"]), ("3 of 6 layers", True, 1), rows[way])
            self.assertEqual((rows[way]["lines_changed"], rows[way]["bits"]), (lines, "equal"))
        self.assertEqual(rows["trl"]["skipped"], "trl is not installed")
        self.assertEqual((rows["managed_prefetch"]["exit_code"], rows["managed_prefetch"]["within"]), (0, False))
        self.assertEqual(len(rows["strict"]["first_steps_ms"]), 5)
        table = next(self.out.glob("compare-simulated-*.md")).read_text()
        for row in rows.values():
            self.assertIn(f"| GPT-2 | 70 % | {row['title']} |", table)
        xml.etree.ElementTree.parse(next(self.out.glob("compare-simulated-*.svg")))

    def test_other_bits_of_reprise_are_a_failure(self):
        self.python.write_text(STAND_IN.replace("{bytes(host).hex()}", "{os.environ.get('REPRISE_BUDGET')}"))
        done = self.part("--ways", "strict")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("reprise: GPT-2, Reprise, strict: differ from line 1 on", done.stderr)

    def test_a_program_that_fails_is_told_and_nothing_is_compared_with_it(self):
        self.python.write_text(STAND_IN.replace("cuda = ", "sys.exit('no device')\ncuda = "))
        done = self.part("--ways", "strict")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("GPT-2/plain: peak -, 0.", done.stderr)
        self.assertIn("ended with 1: no device", done.stderr)
        self.assertIn("GPT-2/row/strict/70: the plain run failed", done.stderr)


class Ballast(unittest.TestCase):
    def test_what_is_left(self):
        driver = pathlib.Path(BUILD) / "lib" / "sim" / "libcuda.so.1"
        done = subprocess.run([sys.executable, ROOT / "tools" / "lab" / "compare" / "ballast.py", driver, str(100 << 20)],
                              env={**os.environ, "REPRISE_SIM_MEMORY": "1GiB"}, input="", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, f"{100 << 20}\n"), done.stderr)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
