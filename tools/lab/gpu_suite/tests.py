"""tests: those with the label `gpu` on the real driver; without a GPU, the same programs and the end-to-end tests on the
simulated device.

Reads what CMake wrote for ctest instead of calling it, so that a tree that was built elsewhere, and stands in another
folder now, can be run.
"""
import re

from . import common

SKIP_CODE = 77


def built_at(build):
    """The folder in which the tree was configured: paths in its test files begin with it."""
    cache = build / "CMakeCache.txt"
    match = re.search(r"^CMAKE_CACHEFILE_DIR:INTERNAL=(.*)$", cache.read_text(), re.M) if cache.exists() else None
    return match.group(1) if match else str(build)


def source_at(build):
    cache = build / "CMakeCache.txt"
    match = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read_text(), re.M) if cache.exists() else None
    return match.group(1) if match else None


def parse(text):
    """Yields (name, command, properties) of a CTestTestfile.cmake."""
    bracket = r"(?:\[=*\[(.*?)\]=*\]|(\S+))"
    tests = {}
    for match in re.finditer(r"^add_test\(" + bracket + r" (.*)\)$", text, re.M):
        command = [a or b for a, b in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', match.group(3))]
        tests[match.group(1) or match.group(2)] = (command, {})
    for match in re.finditer(r"^set_tests_properties\(" + bracket + r" PROPERTIES\s+(.*)\)$", text, re.M):
        name = match.group(1) or match.group(2)
        if name in tests:
            tests[name][1].update(re.findall(r'(\w+) "((?:[^"\\]|\\.)*)"', match.group(3)))
    for name, (command, properties) in tests.items():
        yield name, command, properties


def labelled(build, label):
    moved = [(built_at(build), str(build))]
    if source_at(build):
        moved.append((source_at(build), str(build.parent.parent)))

    def here(text):
        for before, now in moved:
            text = text.replace(before, now)
        return text

    for path in sorted(build.rglob("CTestTestfile.cmake")):
        for name, command, properties in parse(path.read_text()):
            if label in properties.get("LABELS", "").split(";"):
                environment = dict(item.split("=", 1) for item in here(properties.get("ENVIRONMENT", "")).split(";") if "=" in item)
                yield name, [here(part) for part in command], environment


def chosen(suite):
    """The end-to-end tests know the simulated device only: on a GPU, the section `programs` does their work."""
    for label in ("gpu-capable", "e2e") if suite.device.simulated else ("gpu",):
        yield from labelled(suite.build, label)


def failures(output):
    """Of a GoogleTest program's output all but what passed: the first failure often makes the others."""
    passed = re.compile(r"\[ +(?:OK|RUN) +\]|^Running main|^.?\[-+\]|Note: Google Test filter")
    return "\n".join(line for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines() if line and not passed.search(line))


def one_test(suite, clock, name, command, environment):
    if clock.left() < 10:
        return {"name": name, "result": "left out, the time was up"}
    finished = common.run(command, suite.environment(**environment), min(300, clock.left()), cwd=suite.build)
    result = "passed" if finished.code == 0 else "skipped" if finished.code == SKIP_CODE else "failed"
    if finished.timed_out and clock.left() < 1:
        result = "left out, the time was up"
    facts = {"name": name, "result": result, "seconds": round(finished.seconds, 1)}
    if result == "failed":
        facts.update(problem=finished.problem(), output=failures(finished.output)[:16000])
    return facts


def run(suite, document, clock):
    document["tests"] = []
    where = " (simulated device)" if suite.device.simulated else ""
    for name, command, environment in chosen(suite):
        document["tests"].append(one_test(suite, clock, name, command, environment))
        common.say(f"{name}: {document['tests'][-1]['result']}{where}")
    if not document["tests"]:
        raise common.Skipped("this build has no such tests")
    return not any(test["result"] == "failed" for test in document["tests"])
