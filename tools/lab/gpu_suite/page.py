"""The page "what the GPU said": two runs of `facts` as one table, an assumption a row. Called by tools/lab/facts-page.

What the numbers are is read here; what they mean for the design is in page_rows.py. What was not measured is said to be
so: nothing is put in its place.
"""
import dataclasses
import statistics

from . import common


class NotFacts(Exception):
    """A file that holds no results of the probe; the text is one line."""


class Facts:
    """One run: the document of `tools/lab/gpu-suite facts`, or that of reprise-probe alone."""

    def __init__(self, document, name):
        probe = document.get("probe") if document.get("format") == "reprise-gpu-suite" else document
        if not isinstance(probe, dict) or probe.get("format") != "reprise-probe":
            raise NotFacts(f"{name}: no results of reprise-probe in it")
        self.name, self.suite, self.probe = name, document, probe
        self.machine = probe.get("machine", {})
        self.sections = {section["name"]: section for section in probe["sections"]}

    @classmethod
    def read(cls, path):
        try:
            document = common.read(path)
        except (OSError, EOFError, ValueError) as error:
            raise NotFacts(f"{path}: {error}") from None
        if not isinstance(document, dict):
            raise NotFacts(f"{path}: no results of reprise-probe in it")
        return cls(document, str(path))

    def median(self, section, name, **parameters):
        """Of the measurement with these parameters, whatever its others are; None: not measured."""
        for one in self.sections.get(section, {}).get("measurements", []):
            if one["name"] == name and all(one["parameters"].get(key) == value for key, value in parameters.items()):
                return one["median"]
        return None

    def best(self, section, name, **parameters):
        found = [one["median"] for one in self.sections.get(section, {}).get("measurements", [])
                 if one["name"] == name and all(one["parameters"].get(key) == value for key, value in parameters.items())]
        return max(found, default=None)

    def fact(self, section, name):
        return self.sections.get(section, {}).get("facts", {}).get(name)

    def facts(self, section):
        return self.sections.get(section, {}).get("facts", {})


@dataclasses.dataclass
class Row:
    """`value(facts)`: a number, a text, or None. `follows(value)`: a sentence; it gets the mean of two numbers."""
    item: int  # of the design's section 11; 8: purity, which the probe adds
    assumption: str
    unit: str
    value: callable
    follows: callable


def format_value(value, unit):
    if value is None:
        return "not measured"
    if isinstance(value, str):
        return value
    for scale, prefixed in {"ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")),
                            "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1, "B/s"))}.get(unit, ()):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {prefixed}"
    return f"{value:.0f}" if not unit else f"{value:.4g} {unit}"


def cells(row, first, second):
    """Measured, spread, what follows."""
    values = [row.value(facts) for facts in (first, second)]
    there = [value for value in values if value is not None]
    if not there:
        return "not measured", "", "open"
    if all(not isinstance(value, str) for value in there):
        shown = " / ".join(format_value(value, row.unit) for value in values)
        mean = statistics.fmean(there)
        spread = f"{(max(there) - min(there)) / abs(mean) * 100:.1f} %" if len(there) == 2 and mean else ""
        return shown, spread, row.follows(mean)
    if len(set(values)) == 1:
        return values[0], "the same", row.follows(values[0])
    return " / ".join(format_value(value, "") for value in values), "differs", f"{row.follows(there[-1])} (the second run)"


def plain(said):
    """What a program says of itself, an object or a line, as text."""
    return ", ".join(f"{key} {value}" for key, value in said.items()) if isinstance(said, dict) else str(said)


def heading(first, second):
    device = first.probe["device"]
    yield f"# What the {first.probe['device_name'] if device != 'simulated' else 'simulated device'} said"
    yield ""
    if device == "simulated":
        yield "**Numbers of the simulated device: they describe no hardware, and decide nothing.**"
        yield ""
    for number, facts in enumerate((first, second), 1):
        states = ", ".join(f"{section['name']} {section['state']}" for section in facts.probe["sections"])
        yield (f"{number}. {facts.probe['measured_at']}, driver {facts.probe['driver']}, Linux {facts.probe['host']['kernel']}, "
               f"{facts.probe['host']['processors']} processors: {states}.")
    programs = {plain(said) for facts in (first, second) for one in facts.facts("interception").values()
                if isinstance(one, dict) and (said := one.get("program"))}
    if programs:
        yield ""
        yield "Libraries, as they say themselves: " + ", ".join(f"`{said}`" for said in sorted(programs)) + "."


def page(first, second, rows):
    yield from heading(first, second)
    yield ""
    yield "Numbers are medians of the two runs; the last column is drafted from them, to be judged by a person."
    yield ""
    yield "| 11. | the design assumes | measured, first / second | spread | what follows |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"| {row.item} | {row.assumption} | " + " | ".join(cells(row, first, second)) + " |"
    notes = sorted({f"{section['name']}: {note}" for facts in (first, second) for section in facts.probe["sections"]
                    for note in section["notes"]})
    if notes:
        yield ""
        yield "## Not measured, or not to the end"
        yield ""
        for note in notes:
            yield f"- {note}"


def check_pair(first, second):
    """A line when the two cannot be one page."""
    names = [(facts.probe["device"], facts.probe["device_name"]) for facts in (first, second)]
    if names[0] != names[1]:
        return f"two devices: {first.name} is of {names[0][1]}, {second.name} of {names[1][1]}"
    if first.probe["measured_at"] == second.probe["measured_at"]:
        return f"{first.name} and {second.name} are the same run; the spread needs two"
    return None
