"""The rules of the house that no compiler checks: `tools/lint --house` prints the folder graph and what breaks a rule, `--lines`
also product and test lines.

The table is rooms.txt beside this file: a row names the folders whose headers a folder includes, and only rows above it. Here
every #include of the files that git knows is held against it. Pages show that table and those of tables.py (`--write` puts
them there).
"""

import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import classes
import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
AREAS = ("preload", "analyzer", "replay", "tools")  # their folders have rows; others stand above all of them, tests of an area too
CODE = (".cpp", ".h", ".cu", ".cuh", ".S", ".def", ".py", ".js")
MOST_LINES, MOST_FILES = 600, 22
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
VARIABLE = re.compile(r'"(REPRISE_[A-Z0-9_]*[A-Z0-9])(?=["=])')
CLASS = re.compile(r"^[ \t]*(?:template <[^\n]*>\s*)?(?:class|struct|union)(?: alignas\([^)]*\))? (\w+)(?: final)?(?: : [^;{]*)? \{", re.MULTILINE)


def is_room(folder):
    return str(folder).split("/")[0] in AREAS and "tests" not in folder.parts


def tracked_files(root):
    names = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout.split()
    return [pathlib.PurePosixPath(name) for name in names if name.endswith(CODE) and (root / name).is_file()]


def read_table(path):
    """[(folder, [folders], text)], bottom first, and what is wrong with the table itself."""
    rows, problems, known = [], [], set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|", 2)]
        if len(cells) != 3:
            problems.append(f"rooms.txt:{number}: not `folder | folders | text`")
            continue
        folder, includes = cells[0], cells[1].split()
        problems += [f"rooms.txt:{number}: {folder} names {other}, which is no row above it" for other in includes if other not in known]
        rows.append((folder, includes, cells[2]))
        known.add(folder)
    return rows, problems


def includes_of(root, files):
    """{folder: {included folder: [(file, included file)]}}, of the files that git knows."""
    names = {str(file) for file in files}
    graph = {}
    for file in files:
        edges = graph.setdefault(str(file.parent), {})
        if file.suffix in (".py", ".js"):
            continue
        for target in INCLUDE.findall((root / file).read_text(errors="replace")):
            if target not in names:
                target = str(file.parent / target)
            if target in names:
                folder = str(pathlib.PurePosixPath(target).parent)
                if folder != str(file.parent):
                    edges.setdefault(folder, []).append((str(file), target))
    return graph


def find_cycle(graph):
    """The folders of one cycle, in order, or []."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return []
        path.append(folder)
        for other in sorted(graph.get(folder, {})):
            if cycle := visit(other):
                return cycle
        path.pop()
        done.add(folder)
        return []

    for start in sorted(graph):
        if cycle := visit(start):
            return cycle
    return []


def check_includes(rows, graph, files):
    problems = []
    allowed = {folder: includes for folder, includes, _ in rows}
    for folder, edges in graph.items():
        room = is_room(pathlib.PurePosixPath(folder))
        if room and folder not in allowed and any(edges.values()):
            problems.append(f"{folder}: has no row in tools/build/rooms.txt")
        for other, pairs in edges.items():
            if not room:
                continue
            if other not in allowed.get(folder, []):
                problems += [f"{file}: includes {target}, but the row of {folder} does not name {other}" for file, target in pairs]
    for folder, includes in allowed.items():
        if folder not in graph:
            problems.append(f"rooms.txt: {folder} has no source file")
        problems += [f"rooms.txt: {folder} names {other}, but includes nothing from it" for other in includes
                     if other not in graph.get(folder, {})]
    if cycle := find_cycle(graph):
        problems.append("a cycle of folders: " + " -> ".join(cycle))
    return problems


def check_files(root, files):
    problems, count = [], {}
    for file in files:
        lines = (root / file).read_text(errors="replace").count("\n")
        if lines > MOST_LINES and file.suffix != ".def":
            problems.append(f"{file}: {lines} lines, the house allows {MOST_LINES}")
        count[file.parent] = count.get(file.parent, 0) + 1
    problems += [f"{folder}: {number} source files, the house allows about 20" for folder, number in sorted(count.items())
                 if number > MOST_FILES]
    return problems


def check_variables(root, files):
    """Every environment variable that the sources name has a row."""
    known, problems = tables.variable_names(root), []
    for file in files:
        if not is_room(file.parent) or file.parts[1] == "build" or file.suffix not in (".cpp", ".h", ".py"):
            continue
        for name in sorted(set(VARIABLE.findall((root / file).read_text(errors="replace"))) - known):
            problems.append(f"{file}: the variable {name} has no row; the tables are {', '.join(tables.VARIABLES)}")
    return problems


def check_classes(root, files):
    """One name, one class: in the victim process and the analyzer, whatever namespace it stands in."""
    places = {}
    for file in files:
        if file.parts[0] in ("preload", "replay", "analyzer") and file.suffix in (".cpp", ".h"):
            for name in CLASS.findall((root / file).read_text()):
                places.setdefault(name, []).append(str(file))
    return [f"class {name} is defined {len(where)} times: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def print_lines(root, files):
    """Product and test lines of each area: what changes should make smaller."""
    product, tests = {}, {}
    for file in files:
        lines = (root / file).read_text(errors="replace").count("\n")
        area = "/".join(file.parts[: 2 if file.parts[0] in AREAS and len(file.parts) > 2 else 1])
        of = tests if file.parts[0] == "tests" or "tests" in file.parts else product
        of[area] = of.get(area, 0) + lines
    for name, of in (("product", product), ("tests", tests)):
        print(f"{name} lines: {sum(of.values())} ({', '.join(f'{area} {lines}' for area, lines in sorted(of.items()))})")


def table_text(rows):
    """One short line a room: up to the first semicolon. What a room includes is in rooms.txt alone."""
    return "\n".join(["| room | what lives there |", "|---|---|"] + [f"| `{folder}` | {text.split(';')[0]} |" for folder, _, text in rows])


def check_section(root, page, name, expected, write):
    """Between two lines of the page that name `name` stands `expected`; `write` puts it there."""
    begin_line, end_line = f"<!-- {name}, by tools/lint --house --write -->", f"<!-- end of {name} -->"
    path = root / page
    text = path.read_text()
    if begin_line not in text or end_line not in text:
        return [f"{page}: lacks the lines {begin_line} and {end_line}"]
    begin, end = text.index(begin_line) + len(begin_line), text.index(end_line)
    expected = f"\n{expected}\n"
    if text[begin:end] == expected:
        return []
    if write:
        path.write_text(text[:begin] + expected + text[end:])
        return []
    return [f"{page}: a table is not that of {name}: run tools/lint --house --write"]


def main(arguments):
    root = pathlib.Path(arguments[arguments.index("--root") + 1]).resolve() if "--root" in arguments else ROOT
    files = tracked_files(root)
    rows, problems = read_table(root / "tools/build/rooms.txt")
    graph = includes_of(root, files)
    for folder, _, _ in rows:
        print(f"{folder} -> {' '.join(sorted(graph.get(folder, {}))) or 'nothing'}")
    problems += check_includes(rows, graph, files)
    problems += check_files(root, files)
    problems += check_classes(root, files)
    problems += classes.check(root, [file for file in files if "tests" not in file.parts], AREAS)
    if "--lines" in arguments:
        print_lines(root, files)
    write = "--write" in arguments
    problems += check_section(root, "docs/HACKING.md", "rooms.txt", table_text(rows), write)
    if "--rooms-only" not in arguments:  # tests have rooms of their own, and none of the other tables
        problems += check_variables(root, files)
        for page, name, make in tables.SECTIONS:
            problems += check_section(root, page, name, make(root), write)
    for problem in problems:
        print(f"reprise: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
