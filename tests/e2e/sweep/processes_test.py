"""A killed program leaves no process behind, and a planner that hangs is given up: processes_test.py BUILD.

The planner of these tests is a script that never answers. Which processes belong to a run is told by their session.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from victims import DEVICE, end_all, lasting_members, members

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
SECONDS = 30


def command_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def open_files(process):
    folder = pathlib.Path(f"/proc/{process}/fd")
    return [os.readlink(link) for link in folder.iterdir()]


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="reprise-processes-")
        self.planner = os.path.join(self.folder.name, "planner")
        pathlib.Path(self.planner).write_text("#!/bin/sh\nexec sleep 1000\n", encoding="utf-8")
        os.chmod(self.planner, 0o700)
        self.errors = os.path.join(self.folder.name, "err")
        self.child = None

    def tearDown(self):
        if self.child is not None:
            end_all(self.child.pid)
            self.child.wait()
        self.folder.cleanup()

    def program(self, iterations):
        return [f"{BUILD}/bin/random_program", f"{BUILD}/bin/hash_kernels.cubin", "3", str(iterations), "--ops", "20"]

    def environment(self, **more):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("REPRISE_")}
        return variables | DEVICE | {
            "LD_LIBRARY_PATH": f"{BUILD}/lib/sim", "LD_PRELOAD": f"{BUILD}/lib/reprise/libreprise.so",
            "REPRISE_DRIVER": f"{BUILD}/lib/sim/libcuda.so.1", "REPRISE_BUDGET": "70%", "TMPDIR": self.folder.name,
            "REPRISE_PLANNER": self.planner, "REPRISE_KEEP_PLANS": "0"} | more

    def start(self, command, environment):
        """Returns when the planner runs. A program that prints more than fills the pipe does not end before it is read."""
        with open(self.errors, "wb") as err:
            self.child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err,
                                          start_new_session=True, pipesize=4096)
        deadline = time.monotonic() + SECONDS
        while not any(command_of(process).startswith("sleep") for process in members(self.child.pid)):
            self.assertLess(time.monotonic(), deadline, "the planner never started")
            time.sleep(0.01)

    def kill_and_look(self, process):
        os.kill(process, signal.SIGKILL)
        self.child.stdout.close()
        self.child.wait(SECONDS)
        left = [command_of(member) for member in lasting_members(self.child.pid)]
        self.assertEqual([], left)

    def test_a_program_that_waits_for_its_plan_is_killed(self):
        self.start(self.program(8), self.environment(REPRISE_WAIT_FOR_PLAN="1"))
        self.kill_and_look(self.child.pid)

    def test_a_program_that_goes_on_without_it_is_killed(self):
        self.start(self.program(1000000), self.environment())
        self.kill_and_look(self.child.pid)

    def test_the_launcher_is_killed(self):
        planner = f"REPRISE_PLANNER={self.planner} exec " + " ".join(self.program(1000000))
        environment = {k: v for k, v in self.environment().items() if not k.startswith("LD_")}
        self.start([f"{BUILD}/bin/reprise", "run", "--device", "sim", "--budget", "70%", "--", "/bin/sh", "-c", planner],
                   environment)
        self.kill_and_look(self.child.pid)

    def test_a_program_that_ends_takes_its_planner_along(self):
        self.start(self.program(400), self.environment())
        self.child.communicate(timeout=SECONDS)
        self.assertEqual(0, self.child.returncode)
        self.assertEqual([], [command_of(member) for member in lasting_members(self.child.pid)])

    def test_a_planner_keeps_none_of_the_programs_files_open(self):
        """Who waits for a pipe's end, or a recording's lock, waits for the program alone."""
        trace = os.path.join(self.folder.name, "a.trace")
        self.start(self.program(1000000), self.environment(REPRISE_TRACE=trace))
        theirs = set(open_files(self.child.pid))
        self.assertIn(trace, theirs)
        for process in members(self.child.pid):
            if process != self.child.pid:
                kept = {file for file in open_files(process) if file in theirs and file != "/dev/null"}
                self.assertEqual(set(), kept, command_of(process))
        self.kill_and_look(self.child.pid)

    def test_a_planner_that_hangs_is_given_up(self):
        plain = subprocess.run(self.program(8), env=DEVICE | {"LD_LIBRARY_PATH": f"{BUILD}/lib/sim"}, capture_output=True,
                               check=True).stdout
        for wait in ("1", "0"):
            iterations = 8 if wait == "1" else 400
            self.start(self.program(iterations), self.environment(REPRISE_WAIT_FOR_PLAN=wait, REPRISE_PLAN_LIMIT="1"))
            try:
                out, _ = self.child.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                self.fail("the program waits for ever")
            said = pathlib.Path(self.errors).read_text(encoding="utf-8").splitlines()
            self.assertEqual(0, self.child.returncode)
            if wait == "1":
                self.assertEqual(plain, out)
            self.assertEqual(["reprise: memory is managed on demand: the planner had no plan after 1 s"], said)
            self.assertEqual([], [command_of(member) for member in lasting_members(self.child.pid)])


if __name__ == "__main__":
    unittest.main()
