"""facts: reprise-probe over all sections in the order of the design's section 11, and what the driver exports."""
import json
import re

from . import common

ORDER = "1,2,3,4,6,5,7,8"
ORDER_SIMULATED = "2,3,5,6"  # what a simulated device can be asked
GRACE = 30  # seconds from the end of the time to the end of the probe: it ends its own programs first
NOTABLE = 1.2  # medians that differ by more from the run before are printed


def run(suite, document, clock):
    probe = suite.binary("reprise-probe")
    sections = ORDER_SIMULATED if suite.device.simulated else ORDER
    # Starting a worker costs a context each time; what is left is shared by the sections.
    each = max(1, min(60, (clock.left() - GRACE) / len(sections.split(",")) - 3))
    results = suite.folder / "probe.partial.json"
    machine = suite.path("machine")
    results.parent.mkdir(parents=True, exist_ok=True)
    try:
        finished = common.run([probe, "--sections", sections, "--seconds", f"{each:.0f}", "--json", results, "--machine",
                               machine, "--python", suite.python, *scratch(suite)], suite.environment(),
                              clock.left() - GRACE, grace=GRACE - 5)
    finally:  # ctrl-C, too: the probe has written what it had
        if results.exists():
            document["probe"] = json.loads(results.read_text())
            results.unlink()
    print(finished.output, flush=True)
    document["exports_that_hooks_def_lacks"] = missing_exports(suite, probe)
    if document["exports_that_hooks_def_lacks"]:
        print("exports that hooks.def lacks:", *document["exports_that_hooks_def_lacks"])
    for line in spread(suite, document):
        print(line)
    if finished.code != 0:
        common.say(f"reprise-probe {finished.problem()}")
    return finished.code == 0


def scratch(suite):
    """The disk that results go to is the one that is measured, wherever the suite was called from."""
    return ["--scratch", suite.folder]


def missing_exports(suite, probe):
    """Names of the driver that the shim's table has no row for: they would be missing from the preloaded library."""
    finished = common.run([probe, "--exports"], suite.environment(), 30)
    table = suite.root / "preload" / "exports" / "hooks.def"
    rows = set(re.findall(r"^REPRISE_(?:INTEROP_)?ROW\((\w+)", table.read_text(), re.M)) if table.exists() else set()
    own = {name for name in finished.output.split() if name.startswith("repriseSim")}
    return sorted(set(finished.output.split()) - rows - own)


def medians(document):
    for section in document.get("probe", {}).get("sections", []):
        for one in section["measurements"]:
            yield (section["name"], one["name"], json.dumps(one["parameters"])), one


def spread(suite, document):
    """Lines about measurements that differ from the run before on the same device."""
    earlier = sorted(suite.folder.glob(f"facts-{suite.device.slug}-*.json*"), key=lambda path: path.stat().st_mtime)
    if not earlier:
        return
    before = dict(medians(common.read(earlier[-1])))
    yield f"against {earlier[-1].name}:"
    for key, now in medians(document):
        then = before.get(key)
        if not then or not then["median"] or not now["median"]:
            continue
        ratio = now["median"] / then["median"]
        if not 1 / NOTABLE < ratio < NOTABLE:
            yield f"  {' '.join(key)}: {then['median']:.4g} -> {now['median']:.4g} {now['unit']} ({ratio:.2f} x)"
