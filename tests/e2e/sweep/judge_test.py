"""judge.py on runs that are made up: each way to be wrong is found, and what CUDA documents is not called wrong.

judge_test.py TOOLKIT: the folder of cuda.h.
"""
import dataclasses
import sys
import unittest

import documentation
import judge
from victims import Run

TOOLKIT = sys.argv.pop(1) if len(sys.argv) > 1 else judge.toolkit()
PLAN = [{"kind": "iteration", "index": i, "mode": "planned"} for i in range(1, 9)]
REFERENCE = Run(code=0, out="final 1\n", err="", hung=False, left_behind=[], log=PLAN)


class Judge(unittest.TestCase):
    def setUp(self):
        judge.use_toolkit(TOOLKIT)

    def outcome(self, injected=("cuMemMap", 2), plain_calls=(), **changes):
        return judge.judge(dataclasses.replace(REFERENCE, **changes), REFERENCE, injected, plain_calls)

    def wrong(self, why, **changes):
        outcome, said = self.outcome(**changes)
        self.assertEqual("WRONG", outcome)
        self.assertIn(why, said)

    def test_nothing_is_unchanged(self):
        self.assertEqual("unchanged", self.outcome()[0])

    def test_other_bits(self):
        self.wrong("other output", out="final 2\n")

    def test_other_bits_after_an_error_that_the_program_lived_with(self):
        self.wrong("other output", out="final 2\n", err="told: cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE\n")

    def test_hangs_crashes_and_what_stays(self):
        self.wrong("hangs", hung=True)
        self.wrong("signal 11", code=-11)
        self.wrong("signal 6", code=134)
        self.wrong("left behind", left_behind=[7])

    def test_an_exit_without_a_word(self):
        self.wrong("nothing is told", code=3, out="")

    def test_codes_are_those_of_the_documentation(self):
        refused = "error: cuMemcpyHtoD: CUDA_ERROR_OUT_OF_MEMORY\n"
        self.wrong("cuMemcpyHtoD does not answer 2", code=3, out=refused)
        self.assertEqual("told", self.outcome(code=3, out="error: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY\n")[0])
        self.assertEqual("told", self.outcome(code=3, out="error: cuMemcpyHtoD: CUDA_ERROR_LAUNCH_FAILED\n")[0])
        self.assertEqual("told", self.outcome(code=1, out="", err="chargpt: cudaMemset: unspecified launch failure\n")[0])
        self.wrong("cudaMemset does not answer 2", code=1, out="", err="chargpt: cudaMemset: out of memory\n")
        # ... or the very error of a call that the program itself makes of the driver.
        own = {"injected": ("cuMemsetD8_v2", 2), "plain_calls": {"cuMemsetD8_v2"}}
        self.assertEqual("told", self.outcome(code=1, out="", err="chargpt: cudaMemset: out of memory\n", **own)[0])

    def test_an_error_that_lasts_is_told_by_every_call(self):
        self.wrong("SUCCESS", code=3, out="error: cuMemAlloc: CUDA_ERROR_LAUNCH_FAILED\nsilent: the error was told once only\n")

    def test_plans_come_back(self):
        left = [{"kind": "divergence", "iteration": 3, "reason": "a transfer failed"}]
        on_demand = [{"kind": "iteration", "index": i, "mode": "on_demand"} for i in range(4, 9)]
        self.wrong("no later iteration", log=PLAN[:3] + left + on_demand)
        self.wrong("no later iteration", log=on_demand)
        self.assertEqual("unchanged", self.outcome(log=PLAN[:3] + left + PLAN[4:])[0])
        self.assertEqual("unchanged", self.outcome(log=[], err="reprise: ...: the budget is not enforced\n")[0])

    def test_headers_are_read(self):
        self.assertEqual(({0, 1, 101, 801}, True), documentation.documented(TOOLKIT, "cuMemSetAccess"))
        self.assertIn(2, documentation.documented(TOOLKIT, "cudaMalloc")[0])
        self.assertIsNone(documentation.documented(TOOLKIT, "cuNoSuchCall"))
        self.assertEqual(2, documentation.code_to_inject(TOOLKIT, "cuMemCreate"))
        self.assertEqual(201, documentation.code_to_inject(TOOLKIT, "cuStreamWaitEvent_ptsz"))


if __name__ == "__main__":
    unittest.main()
