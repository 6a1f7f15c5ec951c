"""One part of a comparison: runs what has not been run yet until its time is spent, then writes what there is."""
import hashlib
import subprocess

from gpu_suite import common

from . import page, rows, runs, state, subjects, ways

STEPS, SIMULATED_STEPS, SHORT_STEPS = 60, 32, 11
RATE = 2000  # MB a second of the simulated device's memory: few enough for two processors to keep up
ROW_SECONDS, SIMULATED_ROW_SECONDS = 45, 900  # simulated, only what hangs shall be ended, however loaded the machine
LEAST_SECONDS = 3


class Suite(common.Suite):
    """Whose results go where they are told to, whatever the device."""

    @property
    def folder(self):
        return self.out


def prepared(lab, job):
    """Whether what a preparation left is still there: facts lie in files of their own."""
    return job.kind not in ("audit", "examine") or lab.facts(job).exists()


def measure(lab, job, seen):
    plain = seen.get(ways.key(ways.Job("plain", job.program, None, None)))
    if job.kind in ("plain", "again"):
        made = lab.plain(job)
        if job.kind == "again" and plain:
            made["bits"] = runs.compared(made.pop("lines"), plain["lines"])
        return made
    if not plain or plain["exit_code"] != 0 or not plain.get("peak_device_bytes"):
        return {"skipped": "the plain run failed, or nothing told its peak"}
    if job.kind == "row":
        everywhere = seen.get(ways.key(ways.Job("all layers", job.program, job.way, None)), plain)
        if everywhere.get("exit_code") != 0:
            return {"problem": "with all layers: " + everywhere.get("problem", "failed")}
        return lab.row(job, plain, everywhere)
    made = {"audit": lab.audit, "examine": lab.examine, "all layers": lab.all_layers}[job.kind](job, plain)
    made.pop("lines", None)
    return made


def needed(job, seen):
    """Seconds that have to be left for a run to begin: what the plain one took."""
    return max(LEAST_SECONDS, seen.get(ways.key(ways.Job("plain", job.program, None, None)), {}).get("seconds", 0))


def attempt(lab, job, seen):
    """A row, whatever happens: one that fails is no reason to measure no other."""
    try:
        return measure(lab, job, seen)
    except common.Skipped as skipped:
        return {"skipped": str(skipped)}
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return {"problem": f"{type(error).__name__}: {error}"}


def describe(job, row):
    entry = {"kind": job.kind, "program": job.program.name, "way": job.way.name if job.way else None, "share": job.share,
             "title": job.way.title if job.way else {"plain": "plain", "again": "plain, again"}.get(job.kind, job.kind), **row}
    entry.pop("lines", None)
    return entry


def document(suite, lab, done, jobs, arguments):
    entries = []
    for job in jobs:
        if ways.key(job) not in done.rows:
            continue
        entry = describe(job, done.rows[ways.key(job)])
        preparation = job.kind == "row" and job.way.prepare and done.rows.get(
            ways.key(ways.Job(job.way.prepare, job.program, job.way if job.way.layers else None, None)))
        if preparation and "skipped" not in entry:
            entry["prepared_seconds"] = preparation.get("seconds")
        entries.append(entry)
    return {**common.header(suite, "compare"), "short": arguments.short, "memory_rate": lab.rate if suite.device.simulated else None,
            "steps": lab.steps, "shares": arguments.shares, "modules": lab.modules,
            "programs": {program.name: [str(part) for part in program.command("python3", "examples/pytorch", lab.steps)]
                         for program in {job.program for job in jobs}},
            "rows": entries, "not_measured": [ways.key(job) for job in jobs if ways.key(job) not in done.rows]}


def write(path, made):
    common.write(path, made)
    path.with_suffix(".md").write_text(page.markdown(made))
    path.with_suffix(".svg").write_text(page.svg(made))


def failed(row, short):
    """What no row of ours may be: a run that went wrong, or that has other bits. What others do is a result; in the short
    form, which is there to be run through, they have to come to their end."""
    if short and (row.get("problem") or row.get("timed_out")):
        return True
    ours = row["kind"] != "row" or row["way"] in ("proven", "strict", "audited", "trusted")
    return ours and "skipped" not in row and not row.get("timed_out") and (
        row.get("exit_code") != 0 or row.get("bits", "equal") != "equal" or row.get("within") is False)


def sources(root):
    """What is compared, and how: rows of two versions are no table."""
    digest = hashlib.sha256()
    lab = root / "tools" / "lab"
    for path in sorted([*(root / "examples" / "pytorch").glob("*.py"), *(lab / "compare").glob("*.py"), lab / "managed.c", lab / "gpu-compare"]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def run(suite, arguments):
    folder = suite.folder
    known = subjects.ON_A_GPU if not suite.device.simulated else subjects.SHORT if arguments.short else subjects.SIMULATED
    programs = [program for program in known if program.name in arguments.programs]
    steps = arguments.steps or (STEPS if not suite.device.simulated else SHORT_STEPS if arguments.short else SIMULATED_STEPS)
    jobs = list(ways.jobs(programs, arguments.shares, arguments.ways, not arguments.short))
    path = folder / "compare.state.jsonl"
    if arguments.fresh:
        path.unlink(missing_ok=True)
    identity = {"device": suite.device.name, "commit": common.commit_of(suite), "sources": sources(suite.root), "steps": steps,
                "short": arguments.short, "python": str(arguments.python)}
    try:
        done = state.State(path, identity, {"result": suite.path("compare").name})
    except state.OfAnother as another:
        common.say(f"{path} is of another comparison ({another}): --fresh forgets it, --out names another folder")
        return 2
    row_seconds = min(arguments.row_seconds or (SIMULATED_ROW_SECONDS if suite.device.simulated else ROW_SECONDS), arguments.seconds)
    lab = rows.Lab(suite, folder, steps, row_seconds, common.Clock(arguments.seconds),
                   arguments.rate or RATE)
    measured = 0
    for job in jobs:
        if ways.key(job) in done.rows and prepared(lab, job):
            continue
        if lab.clock.left() < needed(job, done.rows) or measured == arguments.runs:
            break
        try:
            row = attempt(lab, job, done.rows)
        except runs.PartOver:
            break
        done.add(ways.key(job), row)
        measured += 1
        common.say(f"{ways.key(job)}: {told(row)}")
    made = document(suite, lab, done, jobs, arguments)
    write(folder / done.head["result"], made)
    wrong = [row for row in made["rows"] if failed(row, arguments.short)]
    for row in wrong:
        common.say(f"{row['program']}, {row['title']}: {page.outcome(row)}; peak {page.mib(row.get('peak_device_bytes'))}"
                   f" of {page.mib(row.get('target_bytes'))}")
    left = len(made["not_measured"])
    common.say(f"{measured} runs in this part, {left} left{': the same command goes on' if left else ''}")
    return 1 if wrong else 4 if left else 0


def told(row):
    if "skipped" in row or "steps" not in row:
        return row.get("skipped") or row["problem"]
    steady = f", {row['steady_ms']:.4g} ms a step" if row.get("steady_ms") else ""
    return f"peak {page.mib(row.get('peak_device_bytes'))}{steady}, {row['seconds']:.1f} s, {page.outcome(row) or 'done'}"
