"""bench: what an intercepted launch costs, bare, forwarded, recorded and deferred, on the device that is here.

bench/overhead makes its table of the same modes.
"""
import json
import os
import tempfile

from . import common


def modes(build, driver, environment, folder):
    """name -> environment of launch_bench; `environment` is that of a bare run on `driver`."""
    bare = {**environment, "LAUNCH_BENCH_CUBIN": os.path.join(build, "bin", "launch_bench.cubin"),
            "REPRISE_SIM_TWINS": os.path.join(build, "bin", "launch_bench.twins.so")}
    libraries = [bare.get("LD_LIBRARY_PATH", ""), os.path.join(build, "lib", "bench")]
    bare["LD_LIBRARY_PATH"] = ":".join(path for path in libraries if path)
    shim = {**bare, "LD_PRELOAD": os.path.join(build, "lib", "reprise", "libreprise.so"), "REPRISE_DRIVER": str(driver)}
    return {"bare": bare,
            "forwarded": {**shim, "REPRISE_DISABLE": "1"},
            "recorded": {**shim, "REPRISE_TRACE": os.path.join(folder, "a.trace")},
            "deferred": {**shim, "REPRISE_BUDGET": "512MiB"}}


def median_ns(output):
    """Median time of one launch on the calling thread, of what launch_bench wrote as JSON."""
    rows = json.loads(output[output.index("{"):])["benchmarks"]
    return next(row["real_time"] for row in rows if row.get("aggregate_name") == "median")


def run(suite, document, clock):
    command = [suite.binary("launch_bench"), "--benchmark_format=json", "--benchmark_report_aggregates_only=true"]
    document["launch_ns"], good = {}, True
    with tempfile.TemporaryDirectory(prefix="reprise-gpu-suite-") as folder:
        environments = modes(suite.build, suite.device.driver, suite.environment(), folder)
        for number, (name, environment) in enumerate(environments.items()):
            clock.need(5, name)
            finished = common.run(command, environment, clock.left() / (len(environments) - number))
            try:
                document["launch_ns"][name] = median_ns(finished.output)
                told = f"{document['launch_ns'][name]:.0f} ns a launch"
            except (ValueError, KeyError, StopIteration):
                document["launch_ns"][name], told = None, finished.problem()
            if finished.code != 0 or document["launch_ns"][name] is None:
                document.setdefault("problems", {})[name] = finished.problem()
                good, told = False, finished.problem()
            common.say(f"{name}: {told}{' (simulated device)' if suite.device.simulated else ''}")
    return good
