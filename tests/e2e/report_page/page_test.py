#!/usr/bin/env python3
"""The report's page in headless Chromium: opened, hovered, zoomed, searched, dark, narrow, by keyboard, without a request, with
300 000 iterations and 100 000 operations, and looked at by axe. Screenshots stay in the folder of the third argument.
page_test.py BUILD_FOLDER PYTHON_WITH_PLAYWRIGHT SCREENSHOTS; exit code 77: no browser here."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SKIPPED = 77
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BUILD, PYTHON, SHOTS = (os.path.abspath(path) for path in sys.argv[1:4]) if len(sys.argv) > 3 else ("", "", "")

if BUILD and os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(PYTHON))):
    os.execv(PYTHON, [PYTHON] + sys.argv)
try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None


def reprise(*arguments, **environment):
    done = subprocess.run([os.path.join(BUILD, "bin/reprise"), *arguments], capture_output=True, text=True,
                          env={**os.environ, "REPRISE_SIM_GRANULARITY": "16KiB", **environment})
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr}")
    return done.stderr


TRAINER = [os.path.join(BUILD, "bin/chargpt"), "--layers", "2", "--width", "32", "--heads", "2", "--batch", "4", "--context", "16", "--seed", "1"]


def write_large_graph(path, layers):
    """Training of so many layers: an activation each, forward and backward; twice as many kernels."""
    tensors = [{"id": 0, "bytes": 2**22, "persistent": 1}] + [{"id": i + 1, "bytes": 2**22 + (i % 5) * 2**20} for i in range(layers)]
    kernels = []
    for i in range(layers):
        kernels.append({"name": f"_ZN4step7forwardILi{i % 40}EEEvPf", "duration_ns": 200000 + (i % 7) * 20000, "inputs": [0, i] if i else [0], "outputs": [i + 1]})
    for i in reversed(range(layers)):
        kernels.append({"name": f"_ZN4step8backwardILi{i % 40}EEEvPf", "duration_ns": 400000, "inputs": [i + 1, 0], "outputs": [0]})
    with open(path, "w", encoding="utf-8") as graph:
        json.dump({"model": "large", "tensors": tensors, "kernels": kernels}, graph)


def write_long_log(path, count):
    """A run of many iterations, one in a thousand of which is slow."""
    with open(path, "w", encoding="utf-8") as log:
        def line(**keys):
            log.write(json.dumps(keys) + "\n")
        line(kind="start", time_ns=10**9, program="long", budget_bytes=2**30, chunk_bytes=2**21, mode="run", safety="strict")
        line(kind="plan", index=0, path="p", policy="disco", at_ns=2 * 10**9)
        line(kind="activate", iteration=1000, plan=0, at_ns=3 * 10**9)
        for i in range(count):
            wall = 10**7 + (i * 7919) % 100000 + (5 * 10**7 if i % 1000 == 999 else 0)
            if i < 1000:
                line(kind="iteration", index=i, mode="on_demand", wall_ns=2 * wall)
            else:
                line(kind="iteration", index=i, mode="planned", plan=0, wall_ns=wall, offload_bytes=2**24, reload_bytes=2**24, stall_ns=wall // 20, vmm_calls=0)
        for i in range(5000):
            line(kind="memory", time_ns=10**9 + i * 10**6, device_bytes=2**29 + (i % 97) * 2**20, requested_bytes=2**30 + (i % 89) * 2**20)
        line(kind="end", time_ns=10**9 + count * 10**7, iterations_planned=count - 1000, iterations_on_demand=1000, divergences=0, peak_device_bytes=2**29 + 96 * 2**20,
             peak_requested_bytes=2**31, budget_bytes=2**30)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.makedirs(SHOTS, exist_ok=True)
        cls.files = {}
        path = lambda name: os.path.join(cls.folder.name, name)
        run = lambda name, budget: reprise("run", "--device", "sim", "--budget", budget, "-o", path(name + ".html"), "--run-log", path(name + ".run"),
                                           "--trace", path(name + ".trace"), "--", *TRAINER, "--steps", "16", REPRISE_WAIT_FOR_PLAN="1")
        run("run", "55%")
        run("other", "75%")
        reprise("report", path("run.run"), path("other.run"), "-o", path("compare.html"))
        for name, budget in (("tight", "55%"), ("wide", "90%")):
            reprise("plan", path("run.trace"), "--budget", budget, "-o", path(name + ".plan"))
        reprise("report", path("tight.plan"), path("wide.plan"), path("run.trace"), "-o", path("plans.html"))
        cls.files = {"run": path("run.html"), "compare": path("compare.html"), "plans": path("plans.html"), "large": path("large.html")}
        write_large_graph(path("large.json"), 50000)
        reprise("plan", path("large.json"), "--budget", "70%", "--policy", "disco", "-o", path("large.plan"))
        write_long_log(path("large.run"), 300000)
        reprise("report", path("large.plan"), path("large.run"), "-o", path("large.html"))
        reprise("workload", "gpt", "--layers", "2", "-o", path("small.json"))
        reprise("simulate", path("small.json"), "--budget", "60%..100%:20%", "--policy", "all", "--html", path("simulate.html"))
        cls.files["simulate"] = path("simulate.html")
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def open(self, name, width=1280, height=900, scheme="light", kind="load"):
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.addCleanup(context.close)
        page = context.new_page()
        self.requests, self.errors = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.goto("file://" + self.files.get(name, name), wait_until=kind)
        return page

    def shot(self, page, name, whole=False):
        page.screenshot(path=os.path.join(SHOTS, name + ".png"), full_page=whole)

    def test_each_page_opens_without_a_request_or_an_error(self):
        for name in self.files:
            page = self.open(name)
            self.assertEqual(self.errors, [], name)
            self.assertEqual(self.requests, ["file://" + self.files[name]], name)
            self.shot(page, name, whole=True)

    # What the README shows: a run of the trainer in the driver's own chunks, made anew by copying the screenshot to docs/report.png.
    def test_the_picture_of_the_readme(self):
        path = os.path.join(self.folder.name, "readme.html")
        reprise("run", "--device", "sim", "--budget", "60%", "-o", path, "--", os.path.join(BUILD, "bin/chargpt"), "--batch", "16", "--steps", "24",
                REPRISE_SIM_GRANULARITY="2MiB")
        page = self.open(path, width=1100, height=830)
        self.assertIn("by a plan", page.inner_text("#verdict"))
        self.shot(page, "readme")
        checked_in = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/report.png")
        # What readers of the README load; how much text the new picture has, and so its bytes, depends on the host's load.
        self.assertLessEqual(os.path.getsize(checked_in), 150 * 1024)
        sizes = []
        for picture in (os.path.join(SHOTS, "readme.png"), checked_in):
            with open(picture, "rb") as file:
                sizes.append(file.read(24)[16:24])  # width and height of a PNG
        self.assertEqual(sizes[0], sizes[1], "docs/report.png is of another page: copy " + os.path.join(SHOTS, "readme.png"))

    def test_what_is_asked_first_is_answered_first(self):
        page = self.open("run")
        self.assertRegex(page.inner_text("#verdict"), r"^It ran in .* iterations by a plan")
        titles = page.eval_on_selector_all("main h2", "all => all.map((one) => one.textContent)")
        self.assertEqual(titles[:3], ["What to change", "What other budgets would cost", "Where the time went"])
        self.assertGreater(page.locator("ol.advice li").count(), 1)
        self.assertIn("reprise doctor --json", page.inner_text("footer"))

    def test_hovering_reads_values(self):
        page = self.open("run")
        for selector in ["#budgets .line", "#run-memory .line", "#iterations .line", "#peak .frame.top", "#timeline canvas"]:
            box = page.locator(selector).first
            box.scroll_into_view_if_needed()
            area = box.bounding_box()
            found = False
            for step in range(2, 19):
                page.mouse.move(area["x"] + area["width"] * step / 20, area["y"] + min(area["height"] / 2, 16 if "canvas" in selector else 1e9))
                page.wait_for_timeout(20)
                found = found or page.is_visible("#tip")
            self.assertTrue(found, selector)
        page.mouse.move(5, 5)

    def test_zooming_by_drag_button_and_key(self):
        page = self.open("run")
        labels = lambda: page.eval_on_selector_all("#run-memory .dygraph-axis-label-x", "all => all.map((one) => one.textContent).join()")
        box = page.locator("#run-memory .line")
        box.scroll_into_view_if_needed()
        before, area = labels(), box.bounding_box()
        page.mouse.move(area["x"] + area["width"] * 0.4, area["y"] + 100)
        page.mouse.down()
        page.mouse.move(area["x"] + area["width"] * 0.6, area["y"] + 100, steps=5)
        page.mouse.up()
        page.wait_for_timeout(100)
        self.assertNotEqual(labels(), before)
        page.click("#run-memory button:text('All')")
        self.assertEqual(labels(), before)
        box.focus()
        page.keyboard.press("+")
        self.assertNotEqual(labels(), before)
        canvas = page.locator("#timeline canvas")
        canvas.focus()
        picture = canvas.screenshot()
        page.keyboard.press("+")
        page.keyboard.press("ArrowRight")
        self.assertNotEqual(canvas.screenshot(), picture)

    def test_searching_finds_a_tensor(self):
        page = self.open("run")
        status = lambda: page.inner_text("#tensor-table [role=status]")
        everything = status()
        page.fill("#tensor-table input", "#3 ")
        self.assertNotEqual(status(), everything)
        first = page.inner_text("#tensor-table tbody tr:first-child td:first-child")
        self.assertIn("#3", first)
        page.fill("#tensor-table input", "no such thing")
        self.assertTrue(status().startswith("0 of "), status())

    def test_dark_and_light(self):
        page = self.open("run", scheme="dark")
        self.assertEqual(page.get_attribute("html", "data-theme"), "dark")
        self.shot(page, "run-dark", whole=True)
        page.click("#theme")
        self.assertEqual(page.get_attribute("html", "data-theme"), "light")

    def test_no_two_lines_of_a_simulation_look_or_are_called_the_same(self):
        page = self.open("simulate")
        names = page.eval_on_selector_all("#time .legend span", "all => all.map((one) => one.textContent)")
        self.assertEqual(len(names), len(set(names)), names)
        inks = page.eval_on_selector_all("#time .legend i", "all => all.map((one) => { const look = getComputedStyle(one); return one.classList.contains('dash') ? look.borderTopColor : look.backgroundColor; })")
        self.assertEqual(len(inks), len(set(inks)), inks)

    def test_a_line_has_a_gap_where_nothing_was_recorded(self):
        page = self.open("run")
        gaps = page.evaluate("data.run_memory.lines[0].gaps")
        self.assertEqual(len(gaps), 1)
        inside = page.evaluate("mergeSteps(data.run_memory.lines).filter((row) => row[0] > data.run_memory.lines[0].gaps[0][0] && row[0] < data.run_memory.lines[0].gaps[0][1]).map((row) => row[1])")
        self.assertGreater(len(inside), 0)
        self.assertEqual(set(inside), {None})

    def test_iterations_are_numbered_from_zero(self):
        for name in ("run", "compare"):
            labels = self.open(name).eval_on_selector_all("#iterations .dygraph-axis-label-x", "all => all.map((one) => one.textContent)")
            self.assertNotIn("-0", labels, name)
            self.assertGreater(len(labels), 2, name)
        ticks = self.open("compare").evaluate("wholeTick(-0)")
        self.assertEqual(ticks, "0")

    def test_a_phone_shows_all_of_it(self):
        for name in self.files:
            page = self.open(name, width=400, height=800)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 400, name)
            self.shot(page, name + "-400px", whole=True)

    def test_everything_is_reached_by_keyboard(self):
        page = self.open("run")
        seen = set()
        for _ in range(400):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("(() => { const at = document.activeElement; const section = at.closest('section'); return (section ? section.id : '') + ' ' + at.tagName + '.' + at.className; })()"))
        for wanted in [" BUTTON.", "tensor-table INPUT.", "timeline CANVAS.", "run-memory DIV.chart line", "tensor-table DIV.scroll"]:
            self.assertTrue(any(one.startswith(wanted) or one == wanted for one in seen), f"{wanted}: {sorted(seen)}")
        frame = page.locator("#peak .frame:not(.top)").first
        if frame.count() > 0:
            frame.focus()
            buttons = page.locator("#peak .path button").count()
            page.keyboard.press("Enter")
            self.assertGreaterEqual(page.locator("#peak .path button").count(), buttons)

    def test_axe_finds_nothing(self):
        for name in ("run", "compare", "plans", "simulate"):
            for scheme in ("light", "dark"):
                page = self.open(name, scheme=scheme)
                result = Axe().run(page)
                violations = [f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in result.response["violations"]]
                self.assertEqual(violations, [], f"{name}, {scheme}")

    # By the processor's time of the page's thread, which is what it takes where nothing else runs; the clock's is printed.
    def test_a_large_run_is_quick_and_small(self):
        self.assertLessEqual(os.path.getsize(self.files["large"]), 5 * 2**20)
        context = self.browser.new_context(viewport={"width": 1280, "height": 900})
        self.addCleanup(context.close)
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        busy_ms = lambda: 1000 * next(one["value"] for one in session.send("Performance.getMetrics")["metrics"] if one["name"] == "TaskDuration")
        begin = time.monotonic()
        page.goto("file://" + self.files["large"])
        page.wait_for_selector("#tensor-table tbody tr")
        drawn, drawn_clock = busy_ms(), 1000 * (time.monotonic() - begin)
        begin = time.monotonic()
        page.fill("#tensor-table input", "#12345")
        page.wait_for_function("document.querySelector('#tensor-table [role=status]').textContent.includes(' of ')")
        found, found_clock = busy_ms() - drawn, 1000 * (time.monotonic() - begin)
        print(f"large page: {os.path.getsize(self.files['large']) / 2**20:.1f} MiB, drawn in {drawn:.0f} ms ({drawn_clock:.0f} by the clock), "
              f"searched in {found:.0f} ms ({found_clock:.0f})")
        self.assertIn("#12345", page.inner_text("#tensor-table tbody"))
        self.assertLessEqual(drawn, 2000)
        self.assertLessEqual(found, 2000)
        self.assertIn("300000", page.inner_text("#iterations"))
        self.assertIn("pieces of work are drawn as", page.inner_text("#timeline"))


if __name__ == "__main__":
    if CHROMIUM is None or sync_playwright is None:
        print("no Chromium, or no Playwright (tools/setup installs them)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
