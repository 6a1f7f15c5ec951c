#!/usr/bin/env python3
"""Runs every command in README.md and docs/*.md, page by page, as a reader would who types them one after the other in an empty folder:
against an installed build, on the simulated device. What this machine lacks is counted as skipped, with the reason.
docs_test.py BUILD_FOLDER [PAGE...]; exits with 1 when a command does not do what the page says.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from pages import NEEDS, ROOT, all_pages, blocks_of, is_checked, missing_lines  # noqa: E402

BLOCK_SECONDS = 300


class Reader:
    """One page's reader: a folder and a shell whose variables last from block to block."""

    def __init__(self, installed, torch):
        self.folder = tempfile.TemporaryDirectory(prefix="reprise-docs-")
        self.here = pathlib.Path(self.folder.name)
        self.installed = installed
        self.state = self.here / ".state"
        self.state.write_text("")
        (self.here / "examples").symlink_to(ROOT / "examples")
        home = self.here / ".home"
        home.mkdir()
        path = [f"{installed}/bin", *([f"{torch}/bin"] if torch else []), os.environ["PATH"]]
        # The planner is awaited, so that a busy machine prints what an idle one does.
        self.environment = {"REPRISE_WAIT_FOR_PLAN": "1", **{name: os.environ[name] for name in ("LANG", "TMPDIR", "REPRISE_TORCH_PYTHON") if name in os.environ},
                            "PATH": ":".join(path), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, block):
        """None, or what went wrong."""
        text = block.text.replace("/usr/lib/reprise/", f"{self.installed}/lib/reprise/")
        text = text.replace("/usr/share/doc/reprise/", f"{self.installed}/share/doc/reprise/")
        script = f"source .state; trap 'code=$?; export -p > .state; exit $code' EXIT; set -euo pipefail\n{text}"
        try:
            done = subprocess.run(["bash", "-c", script], cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=BLOCK_SECONDS)
        except subprocess.TimeoutExpired as late:
            return f"was not done in {BLOCK_SECONDS} s\n{(late.stdout or b'').decode(errors='replace')[-2000:]}"
        if done.returncode != block.exit_code:
            return f"exit code {done.returncode}, not {block.exit_code}\n{done.stdout[-3000:]}"
        missing = missing_lines(block.output.text, done.stdout) if block.output else []
        return f"prints no line as {missing[0]!r}\n{done.stdout[-3000:]}" if missing else None


def options_of(installed, command, cache={}):
    if command not in cache:
        done = subprocess.run([f"{installed}/bin/reprise", *command, "--help"], capture_output=True, text=True)
        cache[command] = done.stdout if done.returncode == 0 else None
    return cache[command]


def unknown_options(block, installed):
    """Options of `reprise` in a block that is not run which its help does not know."""
    unknown = []
    for words in block.commands():
        for at in [i for i, word in enumerate(words[:-1]) if word == "reprise" or word.endswith("/reprise")]:
            subcommand = words[at + 1]
            known = options_of(installed, (subcommand,)) if not subcommand.startswith("-") else ""
            if known is None:
                unknown.append(f"reprise {subcommand}")
                continue
            for word in words[at + 2:]:
                if word == "--":
                    break
                name = word.split("=")[0]
                if re.match(r"--?[a-z]", name) and not re.search(re.escape(name) + r"(?![\w-])", known):
                    unknown.append(f"reprise {subcommand} {name}")
    return unknown


class Test:
    def __init__(self, build, installed):
        self.installed = installed
        torch = pathlib.Path(os.environ.get("REPRISE_TORCH_PYTHON", ROOT / "build/torch/bin/python")).parent.parent
        self.torch = torch if (torch / "bin/python").exists() and list(torch.glob("lib/python3*/site-packages/torch")) else None
        self.ran = self.failed = 0
        self.skipped = {}

    def reason_to_skip(self, block):
        needs = [word for word in block.needs() if word != "torch" or self.torch is None]
        if "checked" in block.words:
            return "tools/check runs it"
        return NEEDS[needs[0]] if needs else None

    def fail(self, block, why):
        self.failed += 1
        print(f"  FAILED {block}: {why}\nThe block:\n{block.text}", flush=True)

    def skip(self, block, reason):
        not_checked = [words for words in block.commands() if not is_checked(words)] if "checked" in block.words else []
        unknown = unknown_options(block, self.installed)
        if not_checked:
            return self.fail(block, f"tools/check does not run {' '.join(not_checked[0])}")
        if unknown:
            return self.fail(block, f"no such option: {unknown[0]}")
        self.skipped.setdefault(reason, []).append(str(block))

    def page(self, path):
        name = str(path.relative_to(ROOT))
        reader = Reader(self.installed, self.torch)
        begin = time.monotonic()
        ran = self.ran
        for block in blocks_of(path.read_text(), name):
            problem = block.problem()
            if problem:
                self.fail(block, problem)
            elif block.is_commands():
                reason = self.reason_to_skip(block)
                if reason:
                    self.skip(block, reason)
                    continue
                self.ran += 1
                started = time.monotonic()
                why = reader.run(block)
                if why:
                    self.fail(block, why)
                elif time.monotonic() - started > 15:
                    print(f"  {block} took {time.monotonic() - started:.0f} s", flush=True)
        if self.ran > ran:
            print(f"  {name}: {self.ran - ran} blocks in {time.monotonic() - begin:.0f} s", flush=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    pages = [ROOT / page for page in sys.argv[2:]] or all_pages()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="reprise-installed-") as folder:
        subprocess.run(["cmake", "--install", str(build), "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
        test = Test(build, folder)
        for page in pages:
            test.page(page)
    for reason, blocks in sorted(test.skipped.items()):
        print(f"  skipped {len(blocks)}, {reason}: {', '.join(blocks)}")
    skipped = sum(len(blocks) for blocks in test.skipped.values())
    print(f"{test.ran} blocks of commands run, {skipped} skipped, {test.failed} failed, {time.monotonic() - begin:.0f} s")
    return 1 if test.failed or not test.ran else 0


if __name__ == "__main__":
    sys.exit(main())
