"""How large classes are: methods and fields, counted in the sources that git knows. house.py holds them against the caps, and
against class_exceptions.txt, whose rows name a class that is larger, how large it is, and why."""

import re

MOST_METHODS, MOST_FIELDS = 25, 15
HEAD = re.compile(r"\b(class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)(?:\s+final)?(?:\s*:[^;{]*)?\s*\{")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*', re.DOTALL | re.MULTILINE)
NO_MEMBER = re.compile(r"^(?:using|friend|typedef|static_assert|enum|template\s*<[^>]*>\s*friend)\b|^(?:class|struct|union)\s+\w+$")


def statements(body):
    """The members of a class body, without what stands in braces: a function or a nested class ends with its block."""
    found, depth, parens, start = [], 0, 0, ""
    for character in body:
        if character == "{":
            depth += 1
            if depth == 1:
                start += "{"
            continue
        if character == "}":
            depth -= 1
            if depth == 0:
                head = start.strip()
                initialised = "(" not in re.sub(r"<[^<>]*>", "", head.split("{")[0]) or re.search(r"=\s*\{$", head)
                nested = re.match(r"(?:template\s*<[^>]*>\s*)?(?:class|struct|union|enum)\b", head)
                if not initialised or nested:  # a body: what follows is another member, but for a nested class's own
                    found.append(head)
                    start = ""
            continue
        if depth:
            continue
        parens += (character == "(") - (character == ")")
        if character == ";" and parens == 0:
            found.append(start.strip())
            start = ""
        else:
            start += character
    return found


def members(body):
    methods = fields = 0
    for statement in statements(body):
        text = re.sub(r"\b(?:public|private|protected)\s*:", "", statement).strip()
        text = re.sub(r"\[\[[^\]]*\]\]", "", text).strip()
        if not text or NO_MEMBER.match(text) or "= delete" in text or "= default" in text:
            continue
        if re.match(r"(?:class|struct|union)\s+\w+[^()]*\{", text):
            continue  # a nested class: its name behind the block is a field of its own statement
        plain = text
        while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
            plain = shorter
        head = plain.split("=")[0].split("{")[0]
        if "(" in head and not re.match(r"^[^()]*\(\*", head):
            methods += 1
        elif not text.startswith(("static constexpr", "constexpr", "inline constexpr")):
            fields += 1 + head.count(",")
    return methods, fields


def classes_of(text):
    """[(name, methods, fields)] of a file."""
    text = NOISE.sub(lambda match: " " if match.group().startswith(("/", "#")) else '""', text)
    found = []
    for match in HEAD.finditer(text):
        if re.search(r"\benum\s*$", text[: match.start()][-8:]):
            continue
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        found.append((match.group(2), *members(text[match.end() : end - 1])))
    return found


def read_exceptions(path):
    """{class: (methods, fields)}; no such file: none."""
    rows = {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        if line.strip() and not line.startswith("#"):
            name, methods, fields, _ = (cell.strip() for cell in line.split("|", 3))
            rows[name] = (int(methods), int(fields))
    return rows


def check(root, files, areas):
    exceptions, problems, seen = read_exceptions(root / "tools/build/class_exceptions.txt"), [], set()
    for file in files:
        if file.parts[0] not in areas or file.suffix not in (".h", ".cpp"):
            continue
        for name, methods, fields in classes_of((root / file).read_text(errors="replace")):
            large = methods > MOST_METHODS or fields > MOST_FIELDS
            if name in exceptions and large:
                seen.add(name)
                allowed = exceptions[name]
                if methods > allowed[0] or fields > allowed[1]:
                    problems.append(f"{file}: class {name} has {methods} methods and {fields} fields, its exception {allowed[0]} and {allowed[1]}")
                elif (methods, fields) != allowed:
                    problems.append(f"class_exceptions.txt: class {name} has shrunk to {methods} methods and {fields} fields: write that")
            elif large:
                problems.append(f"{file}: class {name} has {methods} methods and {fields} fields, the house allows {MOST_METHODS} and {MOST_FIELDS}")
    problems += [f"class_exceptions.txt: class {name} is no exception any more: remove its row" for name in sorted(set(exceptions) - seen)]
    return problems
