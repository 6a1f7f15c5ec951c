#!/usr/bin/env python3
"""`cmake --install --prefix`: pages point to nothing that is not there, and the uninstaller leaves what is not ours. install_test.py BUILD_FOLDER"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release").resolve()


class Installed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="reprise-install-")
        self.prefix = pathlib.Path(self.folder.name) / "opt"
        (self.prefix / "share/doc").mkdir(parents=True)
        self.mine = self.prefix / "share/doc/mine.txt"
        self.mine.write_text("mine")
        subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(self.prefix)], check=True, stdout=subprocess.DEVNULL)

    def tearDown(self):
        self.folder.cleanup()

    def test_the_uninstaller_leaves_what_is_not_ours(self):
        self.assertTrue((self.prefix / "bin/reprise").exists())
        self.assertTrue((self.prefix / "lib/reprise/files.txt").exists())
        done = subprocess.run([str(self.prefix / "lib/reprise/uninstall")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        left = [str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*")]
        self.assertEqual(sorted(left), ["share", "share/doc", "share/doc/mine.txt"])

    def test_the_uninstaller_may_be_reached_by_links(self):
        link, links = pathlib.Path(self.folder.name) / "link", pathlib.Path(self.folder.name) / "links"
        link.symlink_to(self.prefix / "lib/reprise/uninstall")
        links.symlink_to("link")
        done = subprocess.run([str(links)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
        self.assertIn("reprise: removed ", done.stderr)
        self.assertFalse((self.prefix / "bin").exists())

    def test_an_uninstaller_without_its_list_removes_nothing(self):
        (self.prefix / "lib/reprise/files.txt").unlink()
        done = subprocess.run([str(self.prefix / "lib/reprise/uninstall")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertTrue(done.stderr.startswith("reprise: ") and done.stderr.endswith("; nothing was removed\n"), done.stderr)
        self.assertTrue((self.prefix / "bin/reprise").exists())

    def test_a_relative_prefix_is_of_the_folder_where_it_was_typed(self):
        here = pathlib.Path(self.folder.name)
        done = subprocess.run(["cmake", "--install", str(BUILD), "--prefix", "some/where"], cwd=here, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        files = lambda folder: sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in ("made_prefix", "mine.txt"))
        self.assertEqual(files(here / "some/where"), files(self.prefix))
        subprocess.run([str(here / "some/where/lib/reprise/uninstall")], check=True, capture_output=True)
        self.assertFalse((here / "some/where").exists())

    def test_a_prefix_that_was_made_goes_too(self):
        for more, left in ((None, False), ("mine.txt", True)):
            made = pathlib.Path(self.folder.name) / "new"
            for _ in range(2):  # an installation over the first one knows it still
                subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(made)], check=True, stdout=subprocess.DEVNULL)
            if more:
                (made / more).write_text("mine")
            subprocess.run([str(made / "lib/reprise/uninstall")], check=True, capture_output=True)
            self.assertEqual(made.exists(), left)
        empty = pathlib.Path(self.folder.name) / "empty"
        empty.mkdir()
        subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(empty)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([str(empty / "lib/reprise/uninstall")], check=True, capture_output=True)
        self.assertEqual(list(empty.iterdir()), [], "a folder that was there stays")

    def test_the_folder_of_an_unpacked_archive_goes_too(self):
        for more, left in ((None, False), ("mine.txt", True)):
            unpacked = pathlib.Path(self.folder.name) / "reprise-0.1.0-linux-x86_64"
            unpacked.mkdir()  # as tar does, before anything is in it
            subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(unpacked)], check=True, stdout=subprocess.DEVNULL)
            if more:
                (unpacked / more).write_text("mine")
            subprocess.run([str(unpacked / "lib/reprise/uninstall")], check=True, capture_output=True)
            self.assertEqual(unpacked.exists(), left)

    def test_the_uninstaller_that_is_asked_something_removes_nothing(self):
        for word, code in (("--help", 0), ("--dry-run", 2)):
            done = subprocess.run([str(self.prefix / "lib/reprise/uninstall"), word], capture_output=True, text=True)
            self.assertEqual((done.returncode, (self.prefix / "bin/reprise").exists()), (code, True), word)
            self.assertIn("usage", done.stderr)

    def test_pages_point_to_what_is_installed(self):
        home = self.prefix / "share/doc/reprise"
        of_the_source = [home / "docs" / name for name in ("HACKING.md", "FORMAT.md", "internals.md")]
        for page in of_the_source:
            self.assertRegex(page.read_text()[:400], r"source\s+tree, which no package installs", page.name)
        pages = [page for page in (home / "README.md", *(home / "docs").glob("*.md")) if page not in of_the_source]
        self.assertGreater(len(pages), 5)
        for page in pages:
            for name in re.findall(r"`((?:docs|bench)/[\w./-]*\w)/?`", page.read_text()):
                with self.subTest(f"{page.name}: {name}"):
                    there = (home / name).exists() or list((home / "docs/decisions").glob(f"{pathlib.Path(name).name}-*.md"))
                    self.assertTrue(there, "is not installed")

    def test_links_of_pages_lead_to_what_is_installed(self):
        home = self.prefix / "share/doc/reprise"
        for page in home.rglob("*.md"):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
                with self.subTest(f"{page.relative_to(home)}: {target}"):
                    self.assertTrue(re.match("https?://", target) or (page.parent / target).exists(), "is not installed")

    def test_pages_say_what_is_in_the_source_tree_alone(self):
        home = self.prefix / "share/doc/reprise"
        tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True).stdout.splitlines()
        sources = {str(parent) for name in tracked for parent in (pathlib.PurePath(name), *pathlib.PurePath(name).parents)}
        for page in (*home.glob("*.md"), *(home / "docs").glob("*.md")):
            text = page.read_text()
            names = {name.rstrip("/") for name in re.findall(r"`([\w.-]+/[\w./-]*)`", text)} & sources
            places = (home, self.prefix / "lib/reprise")
            absent = sorted(name for name in names if not any((place / name).exists() for place in places))
            with self.subTest(f"{page.relative_to(home)}: {absent[:3]}"):
                told = re.search(r"source\s+tree,\s+which\s+no\s+package\s+installs", text)
                self.assertTrue(told or not absent, "does not say that these are in the source tree")

    def test_the_trainer_keeps_its_symbols(self):
        names = subprocess.run(["nm", "-C", str(self.prefix / "lib/reprise/examples/chargpt")], capture_output=True, text=True).stdout
        self.assertIn("Device::allocate(unsigned long)", names)


if __name__ == "__main__":
    unittest.main()
