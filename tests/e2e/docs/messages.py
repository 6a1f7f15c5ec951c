"""What the launcher and the preloaded library can say: the texts of their sources, and the messages that docs/troubleshooting.md names.
Used by messages_test.py."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Folders and files whose texts a user may meet while a program of theirs runs.
LAUNCHER = ("tools/launch/*.cpp", "tools/commands/run.cpp", "tools/commands/record.cpp", "tools/commands/replay.cpp", "tools/commands/audit.cpp")
# ... of what all commands say of files and sizes, and of the two that come first; and of why there is no plan, which runs say, too.
COMMANDS = ("tools/cli/*.cpp", "tools/report/inputs.cpp", "tools/report/same_recording.cpp", "tools/commands/plan.cpp", "tools/commands/report.cpp")
PLANNER = ("analyzer/planner/planner.cpp", "analyzer/planner/workload.cpp", "analyzer/iteration/*.cpp", "analyzer/taskgraph/build.cpp",
           "analyzer/policies/registry.cpp")
LIBRARY = ("preload/**/*.cpp", "replay/**/*.cpp")
CAUSES = "preload/base/causes.def"
CAUSE = re.compile(r'^CAUSE\((\w+), (\w+), "([^"]*)", "(.*)"\)$', re.MULTILINE)
LEAST_WORDS = 4
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# In these calls texts are no messages: help, which --help shows.
NO_MESSAGES = re.compile(r"\b(?:add_option|add_flag|add_subcommand|footer|description|static_assert)\s*\(")
HOLE = re.compile(r"%[-0-9.*lzhjt]*[a-zA-Z%]|\{[^{}]*\}")


def without_comments(text):
    text = re.sub(r"'(?:[^'\\\n]|\\.)'", "0", text)
    text = re.sub(r'//[^\n]*|("(?:[^"\\]|\\.)*")', lambda found: found.group(1) or "", text)
    return re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE)


def skip_calls(text):
    """The text without the arguments of calls in which no messages stand."""
    kept, at = [], 0
    while (found := NO_MESSAGES.search(text, at)) is not None:
        kept.append(text[at:found.start()])
        end, depth = found.end(), 1
        while depth > 0 and end < len(text):
            literal = LITERAL.match(text, end)
            depth += 0 if literal else {"(": 1, ")": -1}.get(text[end], 0)
            end = literal.end() if literal else end + 1
        at = end
    return "".join(kept) + text[at:]


def texts_of(source):
    """Literals that stand one behind the other are one; `...` where a value goes."""
    text = skip_calls(without_comments(source))
    runs, end = [], None
    for found in LITERAL.finditer(text):
        value = found.group(1).replace('\\"', '"').replace("\\n", " ")
        if end is not None and not text[end:found.start()].strip():
            runs[-1] += value
        else:
            runs.append(value)
        end = found.end()
    return [HOLE.sub("...", run) for run in runs]


def messages_of(patterns, least_words=LEAST_WORDS, root=ROOT):
    """{message: file} of all texts that are long enough to be one."""
    found = {}
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            for text in texts_of(path.read_text()):
                if len(re.findall(r"[A-Za-z]{2,}", text.replace("...", " "))) >= least_words and " " in text.strip():
                    found.setdefault(text.strip(), str(path.relative_to(root)))
    return found


def causes(root=ROOT):
    """(id, severity, section of the page, text) of each row of causes.def."""
    return [(name, severity, section, HOLE.sub("...", text)) for name, severity, section, text in CAUSE.findall((root / CAUSES).read_text())]


def section_name(heading):
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def rows_of(page):
    """(section, message) for each message that a page's tables name: the code in the first column."""
    section, rows = "", []
    for line in page.splitlines():
        if line.startswith("## "):
            section = section_name(line[3:])
        elif found := re.match(r"^\| ((?:`[^`]+`(?:, )?)+) \|", line):
            rows += [(section, text) for text in re.findall(r"`([^`]+)`", found.group(1))]
    return rows


def plain(text):
    return re.sub(r"\s+", " ", text).strip()


def names(row, message):
    """Does the row of the page stand for this message? Its pieces between `...` are all there, in order."""
    at = 0
    for piece in (piece.strip() for piece in row.split("...")):
        if piece:
            found = message.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
    return True
