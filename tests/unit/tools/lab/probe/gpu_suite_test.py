"""The parts of tools/lab/gpu-suite that need neither a GPU nor a build."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[5]
sys.path.insert(0, str(ROOT / "tools" / "lab"))
sys.dont_write_bytecode = True

from gpu_suite import common, facts, page, page_rows, programs, tests  # noqa: E402

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


    def test_of_a_failed_test_what_passed_is_left_out(self):
        output = "\x1b[0;32m[ RUN      ] \x1b[mA.Good\n[       OK ] A.Good (1 ms)\n[ RUN      ] A.Bad\na.cpp:1: Failure\n  which: 1\n[  FAILED  ] A.Bad\n"
        self.assertEqual(tests.failures(output), "a.cpp:1: Failure\n  which: 1\n[  FAILED  ] A.Bad")


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

    def test_a_run_log_of_old_words_is_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".run") as log:
            log.write('{"kind":"iteration","mode":"passive","wall_ns":5}\n{"kind":"iteration","mode":"on_demand","wall_ns":7}\n'
                      '{"kind":"end","iterations_passive":2}\n')
            log.flush()
            self.assertEqual(programs.read_run_log(log.name), {"iterations_on_demand": 2, "median_on_demand_iteration_ns": 6})


class Command(unittest.TestCase):
    def test_bad_input_is_one_line_and_two(self):
        for arguments in (["nosuch"], ["--unknown"], ["--seconds", "soon"]):
            done = subprocess.run([ROOT / "tools" / "lab" / "gpu-suite", *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_a_folder_that_is_no_build(self):
        done = subprocess.run([ROOT / "tools" / "lab" / "gpu-suite", "--build", "/nonexistent"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)

    def test_the_example_script_is_python(self):
        compile((ROOT / "examples" / "pytorch" / "train_gpt2.py").read_text(), "train_gpt2.py", "exec")


PROBE = """#!/usr/bin/env python3
import json, os, sys, time
if "--exports" in sys.argv:
    print("cuInit")
else:
    at = sys.argv[sys.argv.index("--json") + 1]
    json.dump({"format": "reprise-probe", "sections": []}, open(at, "w"))
    time.sleep(float(os.environ.get("PROBE_SLEEPS", 0)))
"""


class Kept(unittest.TestCase):
    """What was measured is on disk, whatever happens behind it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        probe = self.folder / "bin" / "reprise-probe"
        probe.write_text(PROBE)
        probe.chmod(0o755)
        device = common.Device("NVIDIA H200", pathlib.Path("/x"), "13.0", False)
        self.suite = common.Suite(ROOT, self.folder, self.folder / "out", device, "python3")

    def written(self):
        [path] = (self.folder / "out").glob("facts-h200-*.json")
        return json.loads(path.read_text())

    def test_a_run_before_that_is_broken(self):
        (self.folder / "out").mkdir()
        before = self.folder / "out" / "facts-h200-2020-01-01.json"
        before.write_text("{")
        self.assertFalse(common.run_section(self.suite, "facts", facts.run, 60))
        before.unlink()
        self.assertEqual(self.written()["probe"]["format"], "reprise-probe")
        self.assertIn("JSONDecodeError", self.written()["problem"])

    def test_a_probe_that_takes_too_long(self):
        os.environ["PROBE_SLEEPS"] = "60"
        self.addCleanup(os.environ.pop, "PROBE_SLEEPS")
        self.assertFalse(common.run_section(self.suite, "facts", facts.run, facts.GRACE + 1))
        self.assertEqual(self.written()["probe"]["format"], "reprise-probe")

    def test_more_time_for_those_that_end_programs_of_their_own(self):
        script = "trap 'sleep 6; echo cleaned; exit 9' TERM; echo started; while :; do sleep 0.1; done"
        finished = common.run(["/bin/sh", "-c", script], dict(os.environ), 1, grace=20)
        self.assertEqual(finished.code, 9)


def probe_document(measured_at, **changes):
    section = {"name": "vmm", "state": "done", "facts": {}, "notes": ["costs: stopped"], "measurements": [
        {"name": "remap one chunk", "parameters": {"gpu": "busy", "chunk_bytes": 2 << 20}, "unit": "ns",
         "median": changes.get("remap", 40e3)}]}
    return {"format": "reprise-probe", "device": "NVIDIA H200", "device_name": "NVIDIA H200", "measured_at": measured_at,
            "driver": "CUDA 13.0", "host": {"kernel": "6", "processors": 16},
            "machine": {"h2d_bytes_per_second": changes.get("link", 50e9)},
            "sections": [section, {"name": "aliasing", "state": "done", "notes": [], "measurements": [], "facts": {
                "kernel writes": {"rounds": 10000, "mismatches": changes.get("wrong", 0)}}}]}


class Page(unittest.TestCase):
    def rows(self, *documents):
        both = [page.Facts(document, name) for document, name in zip(documents, "ab")]
        lines = [line for line in page.page(*both, page_rows.ROWS) if line.startswith("| ")]
        return {cells[2]: cells[3:6] for cells in ([cell.strip() for cell in line.split("|")] for line in lines)}

    def test_both_numbers_their_spread_and_what_follows(self):
        rows = self.rows(probe_document("1", remap=40e3), probe_document("2", remap=60e3))
        self.assertEqual(rows["remapping a chunk of 2 MiB, kernels running: 80 us"],
                         ["40 us / 60 us", "40.0 %", "0.62 x the 80 us that the planner assumes without a machine file"])
        copies = rows["that is up to twice the copy of the chunk, so homes are fixed"]
        self.assertEqual(copies[0], "0.9537 x / 1.431 x")
        self.assertIn("worth it", copies[2])

    def test_what_was_not_measured_is_open(self):
        rows = self.rows(probe_document("1"), probe_document("2"))
        self.assertEqual(rows["device to host: 55 GB/s"], ["not measured", "", "open"])
        one = self.rows(probe_document("1", remap=None), probe_document("2"))
        self.assertEqual(one["remapping a chunk of 2 MiB, kernels running: 80 us"][:2], ["not measured / 40 us", ""])

    def test_facts_that_differ_are_told(self):
        rows = self.rows(probe_document("1"), probe_document("2", wrong=3))
        shown, spread, follows = rows["aliased ranges agree at operation boundaries"]
        self.assertEqual(spread, "differs")
        self.assertIn("3 mismatches", shown)
        self.assertIn("NOT sound", follows)

    def with_facts(self, section, **found):
        documents = [probe_document(at) for at in "12"]
        for document in documents:
            document["sections"].append({"name": section, "state": "done", "notes": [], "measurements": [], "facts": found})
        return self.rows(*documents)

    def test_the_debugger_with_the_shim_is_compared_with_it_without(self):
        row, good, bad = "a program with the shim runs under cuda-gdb", *(
            {"ran_to_the_end": True, "stopped_in_kernel": stopped} for stopped in (True, False))
        facts_of = lambda with_shim: {"cuda-gdb, without the shim": good, "cuda-gdb, with the shim": with_shim}
        self.assertEqual(self.with_facts("interception", **facts_of(good))[row],
                         ["runs, stops in kernels, as without", "the same", "nothing to do"])
        shown, _, follows = self.with_facts("interception", **facts_of(bad))[row]
        self.assertEqual(shown, "runs, does not stop in kernels; without it runs, stops in kernels")
        self.assertIn("see which names", follows)
        self.assertEqual(self.with_facts("interception")[row][0], "not measured")

    def test_allocators_by_what_chooses_them(self):
        def choice(backend, **calls):
            return {"program": {"backend": backend, "tensors": 300}, "calls": calls}
        found = {"torch allocator, default": choice("native", cuMemAlloc=25),
                 "torch allocator, PYTORCH_CUDA_ALLOC_CONF": choice("cudaMallocAsync", cuMemAllocAsync=300),
                 "torch allocator, PYTORCH_ALLOC_CONF": choice("native", cuMemAlloc=25),
                 "torch allocator, as the launcher sets it": choice("cudaMallocAsync", cuMemAllocAsync=300),
                 "jax allocator, default": {"program": "a line", "calls": {"cuMemAlloc": 2}},
                 "jax allocator, as the launcher sets it": {"program": {"jax": "1"}, "calls": {"cuMemAlloc": 40, "cuMemFree": 40}}}
        rows = self.with_facts("parameters", **found)
        self.assertEqual(rows["torch asks the driver for each tensor, as the launcher sets it"],
                         ["cudaMallocAsync, 300 cuMemAllocAsync for 300 tensors", "the same", "tensors are seen"])
        self.assertEqual(rows["either of torch's variables would do"][::2],
                         ["PYTORCH_ALLOC_CONF: native, PYTORCH_CUDA_ALLOC_CONF: cudaMallocAsync", "the launcher must set both"])
        self.assertEqual(rows["JAX asks the driver more often, as the launcher sets it"][0], "40 allocations, by default 2")

    def test_the_same_run_twice_or_two_devices_are_no_pair(self):
        first = page.Facts(probe_document("1"), "a")
        self.assertIn("same run", page.check_pair(first, page.Facts(probe_document("1"), "b")))
        other = dict(probe_document("2"), device="A100", device_name="A100")
        self.assertIn("two devices", page.check_pair(first, page.Facts(other, "b")))

    def test_bad_input_is_one_line(self):
        for arguments, code in ((["one"], 2), (["/nonexistent", "/nonexistent"], 1), (["/dev/null", "/dev/null"], 1)):
            done = subprocess.run([ROOT / "tools" / "lab" / "facts-page", *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)


class Spread(unittest.TestCase):
    def test_a_compressed_result_is_read_as_it_was(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "facts.json.gz"
            path.write_bytes(gzip.compress(b'{"a": 1}'))
            self.assertEqual(common.read(path), {"a": 1})

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
