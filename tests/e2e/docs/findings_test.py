#!/usr/bin/env python3
"""docs/findings.md: all 25 are there, and the files and tests that their rows name exist."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COUNT = 25


def rows():
    for line in (ROOT / "docs/findings.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            yield int(cells[0]), *(re.findall(r"`([^`]+)`", cell) for cell in cells[2:])


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


if __name__ == "__main__":
    unittest.main()
