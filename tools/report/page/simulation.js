// The page of `reprise simulate`: what budgets cost, for each policy.
const done = data.rows.filter((row) => !row.trouble);
const policies = [...new Set(data.rows.map((row) => row.policy))];
const styles = new Map(policies.map((name, index) => [name, curveStyle(name, index)]));

function linesOf(value) {
  return policies.map((name) => ({ name, style: styles.get(name),
    points: done.filter((row) => row.policy === name).map((row) => [row.budget, value(row)]).sort((a, b) => a[0] - b[0]) }))
    .filter((line) => line.points.length > 0);
}

// Bounds have inks and dashes that no policy has.
const sharedDashes = { "shared-fluid": "7 5", "shared-bound": "2 4", "shared-compute": "12 4" };
const sharedColors = { "shared-fluid": "#7b2fd0", "shared-bound": "#d11f1f", "shared-compute": "#7d8590" };
for (const [css, ink] of Object.entries(sharedColors)) document.documentElement.style.setProperty("--" + css, ink);

// The same for all policies, so any row of a budget will do.
function sharedLine(name, css, value) {
  const points = new Map(done.map((row) => [row.budget, value(row)]));
  return { name, style: { css, width: 1.5, dash: sharedDashes[css] }, points: [...points].sort((a, b) => a[0] - b[0]) };
}

function timeSection() {
  if (done.length === 0) return;
  const fluid = done.some((row) => row.fluid > 0) ? [sharedLine("fluid bound", "shared-fluid", (row) => row.fluid)] : [];
  curveChart(section("time", "Time of an iteration", "Predicted, for each budget. Compute is what the iteration would take with all the memory it " +
    "wants. No plan that launches nothing again can be below the bound, nor, keeping the kernels' order, below the fluid bound."), { label: "Time over budget", lines: [...linesOf((row) => row.time),
    sharedLine("bound", "shared-bound", (row) => row.bound), ...fluid, sharedLine("compute", "shared-compute", (row) => row.compute)] });
}

function bytesSection() {
  if (done.length === 0) return;
  curveChart(section("bytes", "Bytes moved in an iteration", "Out of the device and back, together."),
    { label: "Bytes over budget", memory: true, lines: linesOf((row) => row.out + row.in) });
  if (!done.some((row) => row.ssd > 0)) return;
  curveChart(section("ssd", "Bytes written to the SSD in an iteration", ""),
    { label: "SSD writes over budget", memory: true, lines: linesOf((row) => row.ssd) });
}

function rowCells(row) {
  const number = (text) => el("td", { class: "number" }, text);
  const head = [el("td", {}, row.asked), el("td", {}, row.used && row.used !== row.policy ? `${row.policy} (${row.used})` : row.policy)];
  if (row.trouble) return [...head, el("td", { colspan: 8 }, row.trouble)];
  const share = (part, whole) => number(whole > 0 ? percent(part, whole, 2) : "");
  return [...head, number(duration(row.time)), share(row.compute, row.time), share(row.bound, row.time),
    row.fluid > 0 ? share(row.fluid, row.time) : number(""), number(bytes(row.out)), number(bytes(row.in)), number(bytes(row.ssd)), number(row.ssd_years === null ? "" : decimal(row.ssd_years, 1, 1) + " years")];
}

function tableSection() {
  const titles = ["Budget", "Policy", "Time", "% of compute", "% of bound", "% of fluid", "Out", "In", "SSD wrote", "SSD lasts"];
  section("table", "All figures", "").append(el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, titles.map((title, i) => el("th", { class: i < 2 ? null : "number" }, title)))),
    el("tbody", {}, data.rows.map((row) => el("tr", {}, rowCells(row)))))));
}

theme();
document.getElementById("program").textContent = data.program;
document.getElementById("subtitle").textContent = data.subtitle;
timeSection();
bytesSection();
tableSection();
keepFitting();
