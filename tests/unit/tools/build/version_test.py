"""Which commit is built: tools/build/cmake/version.cmake in a checkout, in an archive of git's, in a folder without a history."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
NAMES = ("tools/build/version.txt", "tools/build/cmake/version.cmake", ".gitattributes")


def git(folder, *arguments):
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    return subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


class Version(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.checkout = pathlib.Path(self.folder.name) / "checkout"
        for name in NAMES:
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.checkout / name)
        (self.checkout / "code").write_text("1\n")
        git(self.checkout, "init", "-q")
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "-m", "one", "--date", "2020-02-03T00:00:00")
        self.commit, self.date = git(self.checkout, "log", "-1", "--format=%H %cs").split()

    def tearDown(self):
        self.folder.cleanup()

    def version_of(self, source):
        """(commit, date, changed) as the build of these sources would say."""
        output = pathlib.Path(self.folder.name) / "version.cpp"
        subprocess.run(["cmake", "-D", f"SOURCE={source}", "-D", "VERSION=1.2", "-D", f"OUTPUT={output}",
                        "-P", str(source / "tools/build/cmake/version.cmake")], check=True)
        found = re.search(r'kVersion = \{"1\.2", "(.*)", "(.*)", (.*)\};', output.read_text())
        return found.groups()

    def test_a_checkout(self):
        self.assertEqual(self.version_of(self.checkout), (self.commit[:12], self.date, "false"))
        (self.checkout / "new").write_text("not known to git\n")
        self.assertEqual(self.version_of(self.checkout)[2], "false")
        (self.checkout / "code").write_text("2\n")
        self.assertEqual(self.version_of(self.checkout), (self.commit[:12], self.date, "true"))

    def unpacked(self, where):
        where.mkdir(parents=True)
        archive = subprocess.run(["git", "-C", self.checkout, "archive", "HEAD"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", where], input=archive, check=True)
        return where

    def test_an_archive(self):
        self.assertEqual(self.version_of(self.unpacked(pathlib.Path(self.folder.name) / "archive")), (self.commit[:12], self.date, "false"))

    def test_an_archive_in_another_checkout(self):
        outer = pathlib.Path(self.folder.name) / "outer"
        outer.mkdir()
        git(outer, "init", "-q")
        (outer / "a").write_text("a\n")
        git(outer, "add", "-A")
        git(outer, "commit", "-q", "-m", "outer")
        self.assertEqual(self.version_of(self.unpacked(outer / "inner")), (self.commit[:12], self.date, "false"))
        shutil.copy(ROOT / NAMES[0], outer / "inner" / NAMES[0])  # copied, not archived: of no known commit
        self.assertEqual(self.version_of(outer / "inner"), ("", "", "false"))

    def test_the_sources_of_this_build(self):
        archived = (ROOT / NAMES[0]).read_text().split()
        if (ROOT / ".git").exists():
            archived = git(ROOT, "log", "-1", "--format=%H %cs").split()
        self.assertEqual(self.version_of(ROOT)[:2], (archived[0][:12], archived[1]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
