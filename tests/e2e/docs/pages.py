"""The fenced blocks of README.md and docs/*.md: which are commands, what each needs to be run, and how to run it. Used by docs_test.py.

A block of commands begins with ```sh and may say what it needs: `torch`, `gpu`, `root`, ... (NEEDS), `checked` (tools/check runs these
commands), `exit=N`. What is shown behind it as ```text output must be in what the block printed, numbers aside; ```text file
is the content of one.
"""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOT_COMMANDS = ("text", "c", "cpp", "python", "json", "dockerfile", "make")
# What a block may need that this machine may lack, and why it is then not run.
NEEDS = {
    "torch": "needs a PyTorch in build/torch (tools/setup --torch)",
    "jax": "needs JAX, which runs on no simulated device",
    "gpu": "needs a GPU",
    "root": "needs root",
    "docker": "needs a container engine",
    "slurm": "needs a cluster",
    "source": "builds, in a clone of its own",
    "night": "takes a night",
}
COMMANDS = re.compile(r"^\s*(?:\$ |sudo )?(?:(?:reprise|cmake|ctest|chargpt|python3?|apt|docker|srun|sbatch)\s|tools/|tests/|bench/|build/release/|LD_PRELOAD=)")


class Block:
    def __init__(self, page, line, info, text):
        self.page, self.line, self.text = page, line, text
        words = info.split()
        self.language = words[0] if words else ""
        self.words = words[1:]
        self.exit_code = next((int(word[5:]) for word in self.words if word.startswith("exit=")), 0)
        self.output = None  # the block behind it that shows what it prints

    def __str__(self):
        return f"{self.page}:{self.line}"

    def is_commands(self):
        return self.language == "sh"

    def needs(self):
        return [word for word in self.words if word in NEEDS]

    def problem(self):
        """What is wrong with how it is written, or None."""
        if not self.is_commands():
            if self.language not in NOT_COMMANDS:
                return f"begins with ```{self.language}, which says neither sh nor what else it is ({', '.join(NOT_COMMANDS)})"
            hidden = next((line for line in self.text.splitlines() if self.language == "text" and "file" not in self.words and COMMANDS.match(line)), None)
            return f"has a command that is not run, as the block is no ```sh: {hidden}" if hidden else None
        unknown = [word for word in self.words if word not in NEEDS and word != "checked" and not word.startswith("exit=")]
        if unknown:
            return f"unknown words behind ```sh: {unknown}"
        done = subprocess.run(["bash", "-n"], input=self.text, capture_output=True, text=True)
        return f"bash cannot read it: {done.stderr}" if done.returncode != 0 else None

    def commands(self):
        """Its command lines, as words, without comments; continued lines are one."""
        lines = re.sub(r"\\\n", " ", self.text).splitlines()
        parts = [part for line in lines for part in re.split(r"&&|;|\|", re.sub(r"(^|\s)#.*", "", line))]
        return [words for part in parts if (words := part.split())]


def blocks_of(text, page):
    blocks, info, begin, lines = [], None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"^```(.*)$", line)
        if fence is None:
            lines.append(line)
        elif info is None:
            info, begin, lines = fence.group(1), number, []
        else:
            block = Block(page, begin, info, "\n".join(lines) + "\n")
            if block.language == "text" and "output" in block.words and blocks:
                blocks[-1].output = block
            blocks.append(block)
            info = None
    return blocks


def all_pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def missing_lines(shown, printed):
    """The lines of a ```text output block that are not in what was printed, in this order; numbers and `...` stand for anything of their kind."""
    at, missing = 0, []
    lines = printed.splitlines()
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        pattern = re.escape(line.rstrip())
        pattern = re.sub(r"(?:\\\.\\\.\\\.)", ".*", pattern)
        pattern = re.sub(r"\d+(?:\\\.\d+)?", r"[0-9]+(?:[.][0-9]+)?", pattern)
        pattern = re.sub(r"(?<=\\ )(?:ns|us|ms|s|min)\b", "(?:ns|us|ms|s|min)", pattern)
        pattern = re.sub(r"(?:\\ )+", " +", pattern)
        found = next((i for i in range(at, len(lines)) if re.search(pattern, lines[i])), None)
        if found is None:
            missing.append(line)
        else:
            at = found + 1
    return missing


def is_checked(words, root=ROOT):
    """Does tools/check, or a script that it names, call this command?"""
    check = (root / "tools/check").read_text()
    called = re.findall(r"^\s*\[?.*?\b((?:tools|tests)/[\w/]+)", check, re.MULTILINE)
    texts = [check] + [path.read_text() for name in called if (path := root / name).is_file()]
    texts = [re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE) for text in texts]
    words = words[words[0] == "sudo":]
    many = {"apt": "apt-get ", "cmake": "cmake ", "ctest": "ctest "}  # programs that do many things: by what they are told to do
    wanted = many[words[0]] + words[1] if words[0] in many else words[0]
    return any(wanted in text for text in texts)
