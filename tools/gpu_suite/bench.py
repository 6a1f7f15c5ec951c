"""bench: the Google Benchmark programs of the build (bin/bench_* or bin/*_bench), on the device that is here."""
import json

from . import common


def programs(build):
    return sorted({*build.glob("bin/bench_*"), *build.glob("bin/*_bench"), *build.glob("bin/*_benchmark")})


def run(suite, document, clock):
    document["benchmarks"] = {}
    good = True
    found = [path for path in programs(suite.build) if path.is_file() and path.suffix == ""]
    if not found:
        raise common.Skipped("this build has no benchmark programs")
    for number, path in enumerate(found):
        clock.need(5, path.name)
        share = clock.left() / (len(found) - number)
        finished = common.run([path, "--benchmark_format=json"], suite.environment(), share)
        try:
            document["benchmarks"][path.name] = json.loads(finished.output[finished.output.index("{"):])
        except ValueError:
            document["benchmarks"][path.name] = {"problem": finished.problem()}
        good = good and finished.code == 0
        common.say(f"{path.name}: {'done' if finished.code == 0 else finished.problem()}")
    return good
