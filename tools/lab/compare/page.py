"""The table and the chart of a comparison, from its JSON alone."""
from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, ROW = 900, 300, 400, 18
MOST_TIMES = 8  # a bar that is longer is cut, and says so
COLOURS = {"equal": "#2f7d4f", "other": "#b3402e", "above": "#9a9a9a"}


def mib(count):
    return "-" if count is None else f"{count / (1 << 20):.0f} MiB" if count >= 10 << 20 else f"{count / (1 << 20):.1f} MiB"


def outcome(row):
    """Bits, or why there are none to compare."""
    if "skipped" in row:
        return row["skipped"]
    if row.get("problem") and not row.get("timed_out"):
        return row["problem"]
    return row.get("bits", "") + (", out of time" if row.get("timed_out") else "")


def cells(row, plain):
    steady, first = row.get("steady_ms"), row.get("first_steps_ms") or []
    peak, target = row.get("peak_device_bytes"), row.get("target_bytes")
    over = "" if row.get("within", True) or peak is None else f", above {mib(target)}"
    late = ", late" if row.get("clock", {}).get("late") else ""
    run = row.get("run", {})
    planned = f", {run['iterations_planned']} planned" if "iterations_planned" in run else ""
    planned += f", {run['repeated_launches']} launches repeated" if run.get("repeated_launches") else ""
    return [row["program"], f"{row['share']} %" if row.get("share") else "", row["title"], row.get("setting", ""), mib(peak) + over,
            f"{steady:.1f}{late}" if steady else "-", f"{steady / plain['steady_ms']:.2f}" if steady and plain.get("steady_ms") else "-",
            f"{sum(first) / 1e3:.1f}" if first else "-", f"{row['prepared_seconds']:.0f}" if row.get("prepared_seconds") else "",
            outcome(row) + planned, str(row.get("lines_changed", ""))]


HEAD = ["program", "of the peak", "way", "setting", "peak", "ms a step", "of plain", "first steps, s", "prepared, s", "bits", "lines changed"]
NOTES = """A step's time: the median of the last quarter. First steps: up to 30, from the first loss on; the JSON has each. Peak: from outside, of the
whole program, context and caches included. Bits: every printed loss and a checksum of the weights, against the plain run. Lines changed: of the
script, counted in the copy that ran. Prepared: seconds of runs before, once a program, for all budgets."""


SIMULATED = """No GPU: kernels take what the modelled clock says (memory of {} MB/s; late: the host did not keep up, so the time is the host's), and are hashes
that overwrite much of what they are given. So what is kept or computed again beside them (checkpointing, saved tensors) has other bits there than in
the plain run, and so has managed memory, which the simulated kernels do not know as an operand. All ways allocate in streams' order there."""


def plain_of(document, row):
    return next((other for other in document["rows"] if other["program"] == row["program"] and other["kind"] == "plain"), {})


def markdown(document):
    missing = document["not_measured"]
    lines = [f"# The same programs in less memory, {document['device']}", "",
             f"`tools/lab/gpu-compare{' --short' if document['short'] else ''}`, {document['measured_at'][:10]}, commit {document['commit']}"
             f"{'' if not missing else f', {len(missing)} runs not measured yet'}. {NOTES}", ""]
    if document["device"] == "simulated":
        lines += [SIMULATED.format(document["memory_rate"]), ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(cells(row, plain_of(document, row))) + " |" for row in document["rows"] if row["kind"] in ("plain", "again", "row")]
    return "\n".join(lines) + "\n"


def groups(document):
    """[(heading, plain's milliseconds, rows that have a time)]"""
    found = {}
    for row in document["rows"]:
        if row["kind"] == "row" and row.get("steady_ms"):
            found.setdefault((row["program"], row["share"]), []).append(row)
    return [(f"{program} at {share} % of its peak", plain_of(document, rows[0]).get("steady_ms"), rows) for (program, share), rows in found.items()]


def colour(row):
    return COLOURS["other" if row.get("bits") != "equal" else "equal" if row.get("within") else "above"]


def svg(document):
    """Bars: a step's time beside plain's, which is the line at 1. Red: other bits; grey: the peak is above its share."""
    shown = groups(document)
    longest = max((row["steady_ms"] / plain for _, plain, rows in shown for row in rows if plain), default=1)
    scale, y, parts = BAR / min(max(1.0, longest), MOST_TIMES), 44, []

    def text(x, at, words, more=""):
        parts.append(f'<text x="{x}" y="{at}"{more}>{escape(words)}</text>')

    text(10, 20, f"A step's time beside the plain program's, {document['device']}", ' font-weight="bold"')
    text(10, 36, "green: same bits within the share; red: other bits; grey: peak above the share; line: plain")
    for heading, plain, rows in shown:
        y += ROW
        text(10, y, heading, ' font-weight="bold"')
        top, line = y, len(parts)
        for row in rows if plain else ():
            y += ROW
            times = row["steady_ms"] / plain
            text(LABEL - 8, y, row["title"], ' text-anchor="end"')
            width = min(times, MOST_TIMES) * scale
            parts.append(f'<rect x="{LABEL}" y="{y - 11}" width="{width:.1f}" height="13" fill="{colour(row)}"/>')
            text(f"{LABEL + width + 6:.1f}", y, f"{'and on: ' if times > MOST_TIMES else ''}{times:.2f} ({row['steady_ms']:.4g} ms)")
        parts.insert(line, f'<path d="M{LABEL + scale:.1f} {top + 4}V{y + 5}" stroke="#bbb"/>')
        y += 8
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 16}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
