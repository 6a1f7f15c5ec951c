"""What the .def files of the sources say, as the tables of pages in docs: called by house.py.

A row of a .def file is MACRO(argument, ...): an argument is a word or C strings. Its head says what the arguments mean.
"""

import re
import sys

RUN_LOG = "preload/base/run_log_keys.def"
MACHINE = "tools/lab/probe/output/machine_keys.def"
MEASURED = "preload/trace/measured_keys.def"
FRAMEWORKS = "tools/launch/frameworks.def"
VARIABLES = ("preload/base/variables.def", "tools/device/base/variables.def", "tools/lab/probe/output/variables.def", "preload/base/developers.def")
TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([,()])|([^\s",()]+))')


def read_rows(path):
    """[(macro, [arguments])] in order; C strings are joined and without their quotes."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
    rows, at = [], 0
    for begin in re.finditer(r"^([A-Z_]+)\(", text, re.MULTILINE):
        if begin.start() < at:
            continue
        arguments, at = [""], begin.end()
        while (token := TOKEN.match(text, at)) and token.group(2) != ")":
            at = token.end()
            if token.group(2) == ",":
                arguments.append("")
            elif token.group(1):
                arguments[-1] += token.group(1)[1:-1].replace('\\"', '"')
            else:
                arguments[-1] += token.group(3) or ""
        rows.append((begin.group(1), arguments))
    return rows


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head)] + [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows])


def run_log_table(root):
    rows = []
    for macro, cells in read_rows(root / RUN_LOG):
        if macro == "RUN_LOG_LINE":
            rows.append((f"**{cells[0]}**", "", cells[1]))
        elif macro == "RUN_LOG_KEY":
            _, name, kind, unit, old, text = cells
            rows.append((f"`{name}`", "text" if kind == "Text" else unit, text + (f"; `{old}` in 0.1" if old else "")))
        elif macro == "RUN_LOG_COUNTER":
            rows.append((f"`{cells[0]}`", cells[1], cells[2]))
        elif macro == "RUN_LOG_WORD":
            _, key, word, old, text = cells
            rows.append((f"`{key}` = `{word}`", "", text + (f"; `{old}` in 0.1" if old else "")))
    return table(("key", "unit", "meaning"), rows)


def machine_table(root):
    rows = []
    for macro, cells in read_rows(root / MACHINE):
        unit, text, standard = "", cells[-1], "must be there"
        if macro == "MACHINE_FIXED":
            text = f"`{cells[1]}`: {text}"
        elif macro == "MACHINE_NUMBER":
            unit, standard = cells[2], cells[4]
        elif macro == "MACHINE_UNUSED_NUMBER":
            unit, standard, text = cells[1], "", text + "; not used by the planner yet"
        else:
            unit = cells[1]
            standard = standard if cells[2] == "required" else "false" if macro == "MACHINE_FLAG" else ""
        rows.append((f"`{cells[0]}`", unit, text, standard))
    return table(("key", "unit", "meaning", "default"), rows)


def variables_table(path):
    def rows(root):
        cells, found_rows = [], read_rows(root / path)
        sources = {found[0]: found[1] for macro, found in found_rows if macro == "REPRISE_FROM"}
        for macro, found in found_rows:
            if macro == "REPRISE_FROM":
                continue
            name, values, standard, text = found[-4:] if macro == "REPRISE_LONE_VARIABLE" else [found[1], *found[-3:]]
            values = "0 or 1" if values == "bool" else ", ".join(f"`{word}`" for word in values.split("|")) if "|" in values else values
            if sources and name not in sources:
                sys.exit(f"reprise: {path}: {name} has no REPRISE_FROM")
            cells.append((f"`{name}`", values, text, standard) + ((sources[name],) if sources else ()))
        return table(("variable", "values", "meaning", "default") + (("a GPU is so by",) if sources else ()), cells)
    return rows


def frameworks_table(root):
    rows = [(cells[0], f"`{cells[1]}`", f"`{cells[3]}`") for macro, cells in read_rows(root / FRAMEWORKS) if macro == "ALLOCATOR"]
    return table(("framework", "variable", "value"), rows)


def measured_table(root):
    return table(("key", "what of", "default"), [(f"`{cells[1]}`", cells[2], cells[3]) for _, cells in read_rows(root / MEASURED)])


def variable_names(root):
    return {cell for path in VARIABLES for _, cells in read_rows(root / path) for cell in cells if cell.startswith("REPRISE_")}


# (page, name between the markers, what stands there)
SECTIONS = [("docs/FORMAT.md", RUN_LOG, run_log_table), ("docs/FORMAT.md", MACHINE, machine_table), ("docs/frameworks.md", FRAMEWORKS, frameworks_table)]
SECTIONS += [("docs/FORMAT.md", MEASURED, measured_table)]
SECTIONS += [("docs/environment.md", path, variables_table(path)) for path in VARIABLES]
