"""The parts of tools/gpu-suite that need neither a GPU nor a build."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

from gpu_suite import common, facts, programs, tests  # noqa: E402

TEST_FILE = """add_test([=[first]=] "/old/build/bin/first" "an argument")
set_tests_properties([=[first]=] PROPERTIES  ENVIRONMENT "A=/old/build/x;B=2" LABELS "gpu;unit" TIMEOUT "300" _BACKTRACE_TRIPLES "/old/x;1;add_test")
add_test(second "/old/build/bin/second")
set_tests_properties(second PROPERTIES  LABELS "sim")
"""


class Tests(unittest.TestCase):
    def test_labelled_tests_follow_a_tree_that_was_moved(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "CTestTestfile.cmake").write_text(TEST_FILE)
            (build / "CMakeCache.txt").write_text("CMAKE_CACHEFILE_DIR:INTERNAL=/old/build\n")
            found = list(tests.labelled(build, "gpu"))
            self.assertEqual(found, [("first", [f"{folder}/bin/first", "an argument"], {"A": f"{folder}/x", "B": "2"})])
            self.assertEqual([name for name, _, _ in tests.labelled(build, "sim")], ["second"])


class Run(unittest.TestCase):
    def run_shell(self, text, seconds=20):
        return common.run(["/bin/sh", "-c", text], dict(os.environ), seconds)

    def test_output_errors_and_code(self):
        finished = self.run_shell("echo one; echo two; echo problem >&2; exit 4")
        self.assertEqual((finished.code, finished.output, finished.errors), (4, "one\ntwo\n", "problem\n"))
        self.assertIn("ended with 4: problem", finished.problem())

    def test_a_program_that_does_not_flush_still_comes_line_by_line(self):
        script = "import time; print('loss 1'); time.sleep(1); print('loss 2')"
        finished = common.run([sys.executable, "-c", script], dict(os.environ), 30)
        self.assertEqual(len(finished.line_times), 2)
        self.assertGreater(finished.line_times[1] - finished.line_times[0], 0.5)

    def test_a_program_that_takes_too_long_may_clean_up(self):
        finished = self.run_shell("trap 'echo cleaned; exit 9' TERM; echo started; while :; do sleep 0.1; done", seconds=1)
        self.assertTrue(finished.timed_out)
        self.assertEqual((finished.code, finished.output), (9, "started\ncleaned\n"))


class Results(unittest.TestCase):
    def finished(self, output, times=()):
        return common.Finished(0, output, "", 1, line_times=list(times))

    def test_results_are_what_is_compared_and_times_are_not(self):
        output = "step 0 loss 1.25\n0.3 s a step\nweights 00ff\nchecksum ab\n"
        self.assertEqual(programs.results(self.finished(output)), ["step 0 loss 1.25", "weights 00ff", "checksum ab"])

    def test_the_first_iterations_do_not_count(self):
        output = "".join(f"step {i} loss 1\n" for i in range(6))
        self.assertEqual(programs.seconds_per_iteration(self.finished(output, [0, 9, 18, 27, 28, 30])), 1.5)
        self.assertIsNone(programs.seconds_per_iteration(self.finished("loss\nloss\n", [0, 1])))

    def test_a_run_log_is_summed_up(self):
        with tempfile.NamedTemporaryFile("w", suffix=".run") as log:
            log.write('{"kind":"iteration","mode":"planned","wall_ns":5}\n{"kind":"iteration","mode":"planned","wall_ns":7}\n'
                      '{"kind":"end","peak_device_bytes":9}\n{"kind":')
            log.flush()
            self.assertEqual(programs.read_run_log(log.name), {"peak_device_bytes": 9, "median_planned_iteration_ns": 6})


class Command(unittest.TestCase):
    def test_bad_input_is_one_line_and_two(self):
        for arguments in (["nosuch"], ["--unknown"], ["--seconds", "soon"]):
            done = subprocess.run([ROOT / "tools" / "gpu-suite", *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_a_folder_that_is_no_build(self):
        done = subprocess.run([ROOT / "tools" / "gpu-suite", "--build", "/nonexistent"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)

    def test_the_example_script_is_python(self):
        compile((ROOT / "examples" / "pytorch" / "train_gpt2.py").read_text(), "train_gpt2.py", "exec")


class Spread(unittest.TestCase):
    def test_only_what_moved_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            device = common.Device("NVIDIA H200", pathlib.Path("/x"), "13.0", False)
            suite = common.Suite(ROOT, pathlib.Path(folder), pathlib.Path(folder), device, "python3")
            document = {"probe": {"sections": [{"name": "latency", "measurements": [
                {"name": "launch", "parameters": {}, "unit": "ns", "median": 100.0},
                {"name": "wait", "parameters": {}, "unit": "ns", "median": 50.0}]}]}}
            common.write(suite.path("facts"), document)
            self.assertEqual(suite.path("facts").name.count("h200"), 1)
            document["probe"]["sections"][0]["measurements"][1]["median"] = 100.0
            lines = list(facts.spread(suite, document))
            self.assertEqual(len(lines), 2)
            self.assertIn("wait", lines[1])


if __name__ == "__main__":
    unittest.main()
