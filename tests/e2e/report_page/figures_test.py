#!/usr/bin/env python3
"""A page's scripts write sizes, times, rates and percentages as the command line does, halves of the last place among them.
figures_test.py FIGURES_PROGRAM CORE_JS PYTHON_WITH_PLAYWRIGHT; runs in node or in headless Chromium; exit code 77: neither is here."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# What core.js looks for on its page as soon as it is there.
PAGE = '{getElementById: () => ({textContent: \'{"passing_on": []}\'})}'


def in_node(script):
    with tempfile.NamedTemporaryFile("w", suffix=".js") as file:
        file.write(f"console.log(JSON.stringify({script}))")
        file.flush()
        return json.loads(subprocess.run(["node", file.name], check=True, capture_output=True, text=True).stdout)


def in_chromium(script):
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            return browser.new_page().evaluate(script)
        finally:
            browser.close()


def main(program, core_js, python):
    if shutil.which("node"):
        run = in_node
    elif not CHROMIUM or not os.path.exists(python):
        print("neither node nor a browser with Playwright (tools/setup) is here: skipped")
        return SKIPPED
    elif os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(python))):
        os.execv(python, [python] + sys.argv)
    else:
        run = in_chromium
    figures = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    with open(core_js, encoding="utf-8") as file:
        script = f"(() => {{ const document = {PAGE};\n{file.read()}\nconst writers = {{ bytes, duration, rate, percent }};\n"
    script += f"return {figures}.map(([name, values, text]) => [name, values, text, writers[name](...values)]).filter((row) => row[2] !== row[3]); }})()"
    wrong = run(script)
    for name, values, text, of_page in wrong[:20]:
        print(f"{name}({', '.join(map(str, values))}): {of_page!r} on a page, {text!r} on the command line")
    print(f"{len(wrong)} of {figures.count(chr(10)) - 1} figures differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
