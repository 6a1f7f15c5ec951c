#!/usr/bin/env python3
"""docs/troubleshooting.md against the sources: each message on the page exists there; a row of causes.def says where on the page it
is; and each other text of the launcher, the preloaded library, the planner, `plan` and `report` is on the page or in no_help.txt,
whose lines exist, too."""
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
from messages import CAUSES, COMMANDS, LAUNCHER, LIBRARY, PLANNER, ROOT, causes, messages_of, names, plain, rows_of, texts_of, without_comments  # noqa: E402

PAGE = ROOT / "docs/troubleshooting.md"
NO_HELP = pathlib.Path(__file__).with_name("no_help.txt")
ALL = (*LIBRARY, "tools/**/*.cpp", "analyzer/**/*.cpp")


def no_help():
    lines = [line for line in NO_HELP.read_text().splitlines() if line and not line.startswith("#")]
    files = [line for line in lines if line.endswith(".cpp")]
    return files, [plain(line) for line in lines if line not in files]


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = [(section, plain(row)) for section, row in rows_of(PAGE.read_text())]
        cls.rows = [row for _, row in cls.page]
        cls.causes = causes()
        cls.said = {plain(text): where for text, where in messages_of((*LAUNCHER, *LIBRARY, *COMMANDS, *PLANNER)).items()}
        cls.anything = [plain(text) for text in (*messages_of(ALL, least_words=1), *(cause[-1] for cause in cls.causes))]

    def test_each_message_of_the_page_exists(self):
        self.assertGreater(len(self.rows), 60)
        for row in self.rows:
            with self.subTest(row):
                self.assertTrue(any(names(row, text) for text in self.anything), "no source says this")

    def test_no_message_is_there_twice(self):
        self.assertEqual(sorted(row for row in set(self.rows) if self.rows.count(row) > 1), [])

    def test_a_cause_names_the_section_that_explains_it(self):
        lines = (ROOT / CAUSES).read_text().splitlines()
        self.assertEqual(len(self.causes), sum(line.startswith("CAUSE(") for line in lines), "a row is not read")
        for name, _, section, text in self.causes:
            with self.subTest(name):
                found = {where for where, row in self.page if names(row, plain(text))}
                self.assertTrue(section in found if section else not found, f"the page has it in {sorted(found)}")

    def test_only_the_table_makes_lines(self):
        """The recorder's last word comes from a room below the table's."""
        writers = {str(path.relative_to(ROOT)) for pattern in LIBRARY for path in ROOT.glob(pattern)
                   if re.search(r"write\(STDERR_FILENO|\bstderr\b", without_comments(path.read_text()))}
        self.assertEqual(writers, {"preload/base/causes.cpp", "preload/trace/writer.cpp"})

    def test_each_message_of_the_sources_is_explained_or_needs_no_help(self):
        files, texts = no_help()
        self.assertGreater(len(self.said), 100)
        for text, where in self.said.items():
            with self.subTest(f"{where}: {text}"):
                self.assertTrue(where in files or any(names(row, text) for row in (*self.rows, *texts)),
                                "neither in docs/troubleshooting.md nor in tests/e2e/docs/no_help.txt")

    def test_what_needs_no_help_exists(self):
        files, texts = no_help()
        for name in files:
            self.assertIn(name, self.said.values(), f"{name} has no such texts")
        for text in texts:
            with self.subTest(text):
                self.assertTrue(any(names(text, one) for one in self.said), "no source says this")


class Sources(unittest.TestCase):
    def test_literals_in_a_row_are_one_text_with_holes(self):
        self.assertEqual(texts_of('say(fmt::format("{}: no {:.1f} % "\n  "room", a)); log("%llu of %s, \\"x\\"");'), ["...: no ... % room", '... of ..., "x"'])

    def test_comments_help_and_characters_are_none(self):
        self.assertEqual(texts_of('// say("a")\nif (c == \'"\') app.add_option("--b", f("c"), "help (\\"d\\")")->check("e");\n#include "f"\n'), ["e"])

    def test_a_row_names_a_text_by_its_pieces_in_order(self):
        self.assertTrue(names("... is ..., not ...; check", "...: is ..., not ...; check the file names"))
        self.assertFalse(names("not ... is", "is ..., not"))


if __name__ == "__main__":
    unittest.main()
