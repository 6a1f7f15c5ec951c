"""What became of a run in which one call of the driver failed: unchanged, told, or one of the ways to be wrong. Used by
sweep.py; judge_test.py plants each of them."""
import functools
import pathlib
import re

import documentation

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


@functools.cache
def codes_by_text():
    """Code by name, and by the text that cudaGetErrorString() has for it on the simulated device."""
    names = documentation.numbers(toolkit())
    texts = dict(names)
    for table in ("tools/device/api/errors.def", "tools/device/runtime/errors.def"):
        text = (REPOSITORY / table).read_text(encoding="utf-8")
        for name, words in re.findall(r'\((\w+), "([^"]+)"\)', text):
            if name in names:
                texts.setdefault(words, names[name])
    return texts


_toolkit = "/usr/local/cuda/include"


def toolkit():
    return _toolkit


def use_toolkit(folder):
    global _toolkit
    _toolkit = folder


# random_program says "error: CALL: CODE" and ends, or under --retry "told: CALL: CODE" and makes the call again;
# chargpt says "chargpt: CALL: TEXT" and ends.
TOLD = re.compile(r"^(?:error|told|chargpt): ([\w ]+): (.+)$", re.MULTILINE)
RUNTIME_NAMES = {"kernel launch": "cudaLaunchKernel"}


def told(run):
    return [(RUNTIME_NAMES.get(call, call), codes_by_text().get(text.strip())) for call, text in TOLD.findall(run.out + run.err)]


def allowed(call, code, injected, plain_calls):
    """A code of the program's call; or the very error of a call of the driver that the program makes without us, too."""
    function, error = injected
    if code is None:
        return False
    if documentation.may_answer(toolkit(), call, code):
        return True
    return function in plain_calls and code == error


def planned_after(run, index):
    return any(line.get("kind") == "iteration" and line.get("mode") == "planned" and line.get("index", 0) > index
               for line in run.log)


def recovers(run, reference):
    """There are planned iterations, and after what was absorbed one follows a plan again, where that many are left. Only
    memory that cannot be managed from the start on is left alone, which a line says."""
    if planned_after(reference, 0) and not planned_after(run, 0):
        return "the budget is not enforced" in run.err
    iterations = [line.get("index", 0) for line in run.log if line.get("kind") == "iteration"]
    usual = [line.get("iteration", 0) for line in reference.log if line.get("kind") == "divergence"]
    for line in run.log:
        if line.get("kind") == "divergence" and line.get("iteration", 0) not in usual and "reason" in line:
            at = line.get("iteration", 0)
            if iterations and max(iterations) >= at + 3 and not planned_after(run, at):
                return False
    return True


def judge(run, reference, injected, plain_calls):
    """(outcome, why): unchanged, told, or WRONG with what is wrong."""
    if run.hung:
        return "WRONG", "it hangs"
    if run.left_behind:
        return "WRONG", f"processes are left behind: {run.left_behind}"
    if run.code < 0 or run.code > 128:
        return "WRONG", f"it crashes: signal {-run.code if run.code < 0 else run.code - 128}"
    messages = told(run)
    for call, code in messages:
        if not allowed(call, code, injected, plain_calls):
            return "WRONG", f"{call} does not answer {code}"
    if "silent:" in run.out:
        return "WRONG", "after an error that lasts, a call answers SUCCESS"
    if run.code == 0:
        if run.out != reference.out:
            return "WRONG", "other output, and exit 0" + (f", told {messages}" if messages else "")
        if not recovers(run, reference):
            return "WRONG", "no later iteration follows a plan"
        return ("told", f"and it went on: {messages[0][0]} {messages[0][1]}") if messages else ("unchanged", "")
    if not messages:
        return "WRONG", f"exit {run.code}, and nothing is told"
    return "told", f"{messages[-1][0]} {messages[-1][1]}"
