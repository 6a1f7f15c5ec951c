#!/usr/bin/env python3
"""docs/findings.md: all 25 are there, what their tests say without them, too, and the files and tests that are named exist."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COUNT = 25


def table(heading):
    """The cells of the rows below the one that begins with this heading."""
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    for line in text.partition(f"| | {heading} |")[2].partition("\n\n")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            yield int(cells[0]), *cells[1:]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def rows():
    return [(number, quoted(files), quoted(tests)) for number, _, files, tests in table("what would have gone wrong")]


def tests_of_the_sources():
    found = set()
    for path in (ROOT / "tests").rglob("*.c*"):
        for suite, name in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.add(f"{suite}.{name}")
    return found


class Findings(unittest.TestCase):
    def test_each_has_a_row(self):
        self.assertEqual([number for number, *_ in rows()], list(range(1, COUNT + 1)))

    def test_files_exist(self):
        for number, files, _ in rows():
            self.assertTrue(files, number)
            for file in files:
                self.assertTrue((ROOT / file).is_file(), f"{number}: {file}")

    def test_tests_exist(self):
        programs = {line.split("|")[0].strip() for line in (ROOT / "tests/e2e/reproductions/rows.txt").read_text(encoding="utf-8").splitlines()
                    if "|" in line and not line.startswith("#")}
        ordered = re.findall(r'\{"(\w+)", \d+, "', (ROOT / "tests/e2e/order_test.cpp").read_text(encoding="utf-8"))
        known = programs | {f"order_program {name}" for name in ordered} | tests_of_the_sources()
        for number, _, tests in rows():
            self.assertTrue(tests, number)
            for test in tests:
                self.assertTrue(test in known, f"{number}: {test}")

    def test_each_was_undone(self):
        undone = list(table("undone by"))
        self.assertEqual(sorted({number for number, *_ in undone}), list(range(1, COUNT + 1)))
        known = tests_of_the_sources()
        for number, by, without, with_it in undone:
            files = [name for name in quoted(by) if "/" in name]
            self.assertTrue(files, number)
            for file in files:
                self.assertTrue((ROOT / file).is_file(), f"{number}: {file}")
            named = [name for name in quoted(without) if re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", name)]
            self.assertTrue(named or "`check " in without, number)
            self.assertLessEqual(set(named), known, number)
            self.assertTrue(with_it, number)


if __name__ == "__main__":
    unittest.main()
