"""Man pages and completions against the command line's own --help: the same commands, the same options, nothing else.

Called by ctest with the path of `reprise`. What needs a shell or a formatter that is not installed is skipped, and says so.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

REPRISE = sys.argv.pop(1)


def reprise(*arguments):
    return subprocess.run([REPRISE, *arguments], check=True, capture_output=True, text=True).stdout


def names_of(help_text, title):
    """The first words of a section's lines: ["-o,--output", ...]."""
    section = re.search(rf"^{title}:\n((?:  .*\n|\n)+)", help_text, re.MULTILINE)
    return re.findall(r"^  (\S+)", section.group(1), re.MULTILINE) if section else []


def options_of(*command):
    """{"-o", "--output", ...} as --help has them."""
    return {name for names in names_of(reprise(*command, "--help"), "Options") for name in names.split(",")}


def commands_of(*command):
    return names_of(reprise(*command, "--help"), "Subcommands")


def all_commands():
    """[(), ("run",), ..., ("workload", "gpt"), ...]"""
    found = [()]
    for command in commands_of():
        found.append((command,))
        found += [(command, inner) for inner in commands_of(command)]
    return found


class ManPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        reprise("help", "--man", cls.folder.name)
        cls.pages = {path.name: path.read_text() for path in pathlib.Path(cls.folder.name).iterdir()}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each_command_has_a_page(self):
        expected = {"reprise.1"} | {f"reprise-{command}.1" for command in commands_of()}
        self.assertGreater(len(expected), 10)
        self.assertEqual(set(self.pages), expected)

    def test_each_option_is_on_its_page_and_no_other(self):
        for command in commands_of():
            expected = options_of(command).union(*(options_of(command, inner) for inner in commands_of(command)))
            lines = re.findall(r"^\.TP\n(\\fB\\-.*)$", self.pages[f"reprise-{command}.1"], re.MULTILINE)
            found = {name.replace("\\-", "-") for line in lines for name in re.findall(r"\\fB(\\-[^\\]*(?:\\-[^\\]*)*)\\fR", line)}
            self.assertEqual(found, expected, command)

    def test_each_variable_is_on_the_first_page(self):
        variables = re.findall(r"^  (REPRISE_\w+)", reprise("help", "environment"), re.MULTILINE)
        self.assertGreater(len(variables), 30)
        for variable in variables:
            self.assertIn(f"\\fB{variable}\\fR", self.pages["reprise.1"])

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_the_formatter_has_nothing_to_complain_of(self):
        for name in self.pages:
            done = subprocess.run(["groff", "-K", "utf8", "-man", "-ww", "-Tutf8", f"{self.folder.name}/{name}"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("SYNOPSIS", re.sub(".\x08", "", done.stdout))


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = reprise("help", "--completion", "bash")

    def complete(self, *words):
        """What bash offers for the last of these words."""
        driver = self.script + '\nCOMP_WORDS=(reprise "$@"); COMP_CWORD=$#; _reprise; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", driver, "bash", *words], check=True, capture_output=True, text=True, cwd="/")
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_each_command_and_option_is_offered(self):
        for command in all_commands():
            self.assertEqual(self.complete(*command, "-"), options_of(*command) | ({"--version"} if not command else set()), command)
            if commands_of(*command):
                self.assertEqual(self.complete(*command, ""), set(commands_of(*command)), command)

    def test_values_and_files(self):
        self.assertEqual(self.complete("run", "--device", ""), {"gpu", "sim"})
        self.assertEqual(self.complete("run", "--budget", "1G", "--device", "s"), {"sim"})
        self.assertIn("disco", self.complete("plan", "a.trace", "--policy", ""))
        self.assertIn("h200", self.complete("simulate", "--machine", "h"))
        self.assertIn("etc", self.complete("report", "et"))
        self.assertIn("etc", self.complete("plan", "a.trace", "-o", "et"))
        self.assertEqual(self.complete("run", "--budget", "et"), set())
        self.assertIn("environment", self.complete("help", ""))

    def test_behind_the_dashes_the_program_is_completed(self):
        self.assertIn("bash", self.complete("run", "--budget", "1G", "--", "bas"))
        self.assertNotIn("--budget", self.complete("run", "--", "ls", "--"))


class Zsh(unittest.TestCase):
    def test_it_names_every_option(self):
        script = reprise("help", "--completion", "zsh")
        self.assertTrue(script.startswith("#compdef reprise\n"))
        for command in all_commands():
            case = script.split(f"    '{' '.join(command)}')\n", 1)[1].split("      ;;\n", 1)[0]
            found = set(re.findall(r"'(-[^\[]+)\[", case))
            self.assertEqual(found, options_of(*command) | ({"--version"} if not command else set()), command)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_reads_it_and_hands_the_command_on(self):
        # zsh's own functions want a terminal; in their place, what they are given is printed.
        stand_ins = ("compdef() { }\n_describe() { print -r -- described ${(P)2} }\n"
                     "_arguments() { print -r -- given $words at $CURRENT; for one in $@; do print -r -- $one; done }\n")
        def complete(*words):
            script = f"{stand_ins}{reprise('help', '--completion', 'zsh')}\nwords=(reprise $@); CURRENT=$#words; _reprise"
            done = subprocess.run(["zsh", "-f", "-c", script, "zsh", *words], check=True, capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            return done.stdout
        self.assertIn("given run --bud at 2\n", complete("run", "--bud"))
        self.assertIn("--budget[", complete("run", "--bud"))
        self.assertIn("given gpt --layers 3 -o at 4\n", complete("workload", "gpt", "--layers", "3", "-o"))
        self.assertIn("described", complete("workload", "x"))


if __name__ == "__main__":
    unittest.main()
