"""The house's rules on a small house of its own: a clean one passes, and each planted fault makes `lint --house` fail and is named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
HOUSE = ROOT / "tools/build/house.py"
FILES = {
    "tools/build/rooms.txt": "preload/low | | the cellar\npreload/high | preload/low | what stands on it\n",
    "preload/low/low.h": "#pragma once\nstruct Low {\n};\n",
    "preload/high/high.cpp": '#include "preload/low/low.h"\nstruct High {\n};\n',
    "docs/HACKING.md": "<!-- rooms.txt, by tools/lint --house --write -->\n<!-- end of rooms.txt -->\n",
}


class SmallHouse(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        for name, text in FILES.items():
            self.write(name, text)
        self.lint("--write")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add(self, name, text):
        """One line more at the end of the table."""
        self.write(name, (self.root / name).read_text() + text)

    def lint(self, *arguments):
        subprocess.run(["git", "-C", self.root, "add", "-A"], check=True)
        command = [sys.executable, HOUSE, "--root", self.root, "--rooms-only", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def expect(self, word):
        found = self.lint()
        self.assertEqual(found.returncode, 1, found.stdout + found.stderr)
        self.assertIn(word, found.stderr)

    def test_a_clean_house_prints_its_graph(self):
        found = self.lint()
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("preload/high -> preload/low\n", found.stdout)
        self.assertIn("| `preload/high` | what stands on it |\n", (self.root / "docs/HACKING.md").read_text())

    def test_an_include_that_goes_up(self):
        self.write("preload/low/low.h", '#include "preload/high/high.h"\n')
        self.write("preload/high/high.h", "#pragma once\n")
        self.expect("preload/low/low.h: includes preload/high/high.h")

    def test_a_row_that_names_a_row_below(self):
        self.write("tools/build/rooms.txt", FILES["tools/build/rooms.txt"].replace("preload/low | |", "preload/low | preload/high |"))
        self.expect("preload/low names preload/high, which is no row above it")

    def test_a_row_that_names_more_than_is_included(self):
        self.add("tools/build/rooms.txt", "preload/top | preload/low | nothing of it\n")
        self.write("preload/top/top.cpp", "int top;\n")
        self.expect("preload/top names preload/low, but includes nothing from it")

    def test_a_folder_without_a_row(self):
        self.write("preload/new/new.cpp", '#include "preload/low/low.h"\n')
        self.expect("preload/new: has no row")

    def test_tests_beside_a_room_need_no_row(self):
        self.write("preload/high/tests/high_test.cpp", '#include "preload/low/low.h"\n')
        self.assertEqual(self.lint().returncode, 0)

    def test_a_room_that_includes_tests(self):
        self.write("preload/low/tests/helper.h", "#pragma once\n")
        self.write("preload/low/low.h", '#include "preload/low/tests/helper.h"\n')
        self.expect("preload/low/low.h: includes preload/low/tests/helper.h")

    def test_a_cycle_among_tests(self):
        self.write("tests/one/one.h", '#include "tests/two/two.h"\n')
        self.write("tests/two/two.h", '#include "tests/one/one.h"\n')
        self.expect("a cycle of folders: tests/one -> tests/two -> tests/one")

    def test_one_name_for_two_classes(self):
        self.write("preload/high/high.cpp", '#include "preload/low/low.h"\nnamespace {\nclass Low final {\n};\n}  // namespace\n')
        self.expect("class Low is defined 2 times")

    def large_class(self, methods, fields):
        body = "".join(f"  void method{i}() const {{ if (true) {{ }} }}\n" for i in range(methods))
        body += "".join(f"  std::map<int, int> field{i}_{{1}};\n" for i in range(fields))
        self.write("preload/low/low.h", f"#pragma once\nclass Large {{\n public:\n  Large() = default;\n{body}}};\n")

    def test_a_class_that_is_too_large(self):
        self.large_class(25, 15)
        self.assertEqual(self.lint().returncode, 0)
        self.large_class(26, 15)
        self.expect("preload/low/low.h: class Large has 26 methods and 15 fields, the house allows 25 and 15")

    def test_exceptions_only_shrink(self):
        self.write("tools/build/class_exceptions.txt", "Large | 26 | 16 | a reason\n")
        self.large_class(26, 16)
        self.assertEqual(self.lint().returncode, 0)
        self.large_class(26, 17)
        self.expect("class Large has 26 methods and 17 fields, its exception 26 and 16")
        self.large_class(26, 15)
        self.expect("class Large has shrunk to 26 methods and 15 fields")
        self.large_class(25, 15)
        self.expect("class Large is no exception any more")

    def test_thirty_files_in_a_folder(self):
        for number in range(30):
            self.write(f"preload/low/file{number}.cpp", "\n")
        self.expect("preload/low: 31 source files")

    def test_a_file_that_is_too_long(self):
        self.write("preload/low/long.cpp", "\n" * 601)
        self.expect("preload/low/long.cpp: 601 lines")

    def test_a_page_that_shows_another_table(self):
        self.add("tools/build/rooms.txt", "preload/top | preload/low | a room more\n")
        self.write("preload/top/top.cpp", '#include "preload/low/low.h"\n')
        self.expect("docs/HACKING.md")


@unittest.skipUnless((ROOT / ".git").exists(), "no repository")
class OurHouse(unittest.TestCase):
    def test_the_graph_that_is_printed_is_that_of_the_table(self):
        printed = subprocess.run([sys.executable, HOUSE], capture_output=True, text=True, check=False)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        lines = [line.split("|") for line in (ROOT / "tools/build/rooms.txt").read_text().splitlines() if line and not line.startswith("#")]
        rows = {folder.strip(): sorted(includes.split()) or ["nothing"] for folder, includes, _ in lines}
        graph = dict(line.split(" -> ") for line in printed.stdout.splitlines())
        self.assertEqual({folder: sorted(includes.split()) for folder, includes in graph.items()}, rows)
        self.assertGreater(len(rows), 50)


if __name__ == "__main__":
    unittest.main()
