#!/usr/bin/env python3
"""How docs_test.py reads pages: blocks, what they need, what is refused, what is shown of their output."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from pages import all_pages, blocks_of, is_checked, missing_lines  # noqa: E402


def blocks(text):
    return blocks_of(text, "page.md")


class Pages(unittest.TestCase):
    def test_blocks_have_their_line_and_words(self):
        one, two = blocks("a\n```sh torch exit=2\nreprise run \\\n  --budget 1 # why\n```\n```text output\nreprise: no\n```\n")
        self.assertEqual((str(one), one.words, one.exit_code, one.needs()), ("page.md:2", ["torch", "exit=2"], 2, ["torch"]))
        self.assertEqual(one.commands(), [["reprise", "run", "--budget", "1"]])
        self.assertEqual(blocks("```sh\ncd a && ls | wc\n```\n")[0].commands(), [["cd", "a"], ["ls"], ["wc"]])
        self.assertIs(one.output, two)

    def test_what_is_neither_is_refused(self):
        self.assertIn("neither", blocks("```\nls\n```\n")[0].problem())
        self.assertIn("not run", blocks("```text\n  reprise doctor\n```\n")[0].problem())
        self.assertIn("unknown words", blocks("```sh tpu\nls\n```\n")[0].problem())
        self.assertIn("cannot read", blocks("```sh gpu\nif\n```\n")[0].problem())
        self.assertIsNone(blocks("```sh gpu\nls\n```\n")[0].problem())
        self.assertIsNone(blocks("```text\nreprise: what was wrong\n```\n")[0].problem())

    def test_output_is_compared_but_for_numbers(self):
        printed = "step 1 loss 4.7\nreprise: peak 32.0 MiB instead of 56.0 MiB, 4 of 8 iterations planned; report: /tmp/x/a.html\n"
        self.assertEqual(missing_lines("reprise: peak 9 MiB instead of 56 MiB, ...; report: .../a.html\n", printed), [])
        self.assertEqual(missing_lines("reprise: peak 9 GiB instead of 56 MiB\n", printed), ["reprise: peak 9 GiB instead of 56 MiB"])
        self.assertEqual(missing_lines("reprise: peak\nstep 1\n", printed), ["step 1"])
        self.assertEqual(missing_lines("it took 4.5 s, in 3 iterations\n", "it took 412 ms, in 30 iterations"), [])

    def test_what_tools_check_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / "tools/check").write_text("# tools/demo is no part of it\ntools/setup\n[ -z \"$x\" ] || tools/other --jobs\ncmake --build --preset release\n")
            (root / "tools/other").write_text("run tools/package\napt-get install -y a.deb\n")
            for words, checked in ((["tools/setup", "--torch"], True), (["tools/package"], True), (["sudo", "apt", "install", "./a.deb"], True), (["apt", "purge"], False), (["tools/demo"], False), (["cmake", "--build"], True),
                                   (["cmake", "--install"], False)):
                self.assertEqual(is_checked(words, root), checked, words)

    def test_there_are_pages(self):
        self.assertGreater(len(all_pages()), 2)


if __name__ == "__main__":
    unittest.main()
