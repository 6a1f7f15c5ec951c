// The page that compares two runs.
function compareTable() {
  const node = section("figures", "What changed", `A is ${data.names[0]}, B is ${data.names[1]}.`);
  node.append(el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "What changed" }, el("table", {}, el("thead", {}, el("tr", {}, ["", "A", "B", "Change"].map((title, index) =>
    el("th", { class: index > 0 ? "number" : null, scope: "col" }, title || "Figure")))),
  el("tbody", {}, data.rows.map((row) => el("tr", {}, el("td", {}, row.label), el("td", { class: "number" }, row.before || "\u2013"),
    el("td", { class: "number" }, row.after || "\u2013"), el("td", { class: "number tone " + row.tone }, row.change || "\u2013")))))));
}

function compareChart() {
  if (data.before.length === 0 && data.after.length === 0) return;
  const node = section("iterations", "Iterations", "How long each took, planned and on demand, by its number in the run.");
  const series = [{ name: "A", css: "before", width: 1.5 }, { name: "B", css: "compute", width: 1.5 }];
  node.append(legend([[`A: ${data.names[0]}`, "before", "stroke"], [`B: ${data.names[1]}`, "compute", "stroke"]]));
  const rows = new Map();
  data.before.forEach((row) => rows.set(row[0], [row[3], null]));
  data.after.forEach((row) => rows.set(row[0], [rows.has(row[0]) ? rows.get(row[0])[0] : null, row[3]]));
  lineChart(node, { label: "Time of each iteration of both runs", labels: ["iteration", "A", "B"], connect: true,
    rows: [...rows].sort((a, b) => a[0] - b[0]).map(([index, values]) => [index, ...values]), series, format: duration, tick: timeLabel,
    xFormat: (index) => `Iteration ${index}`, xTick: (value) => Number.isInteger(value) ? value.toLocaleString("en") : "" });
}

theme();
document.title = "Reprise: two runs";
document.getElementById("program").textContent = "Two runs" + (data.program ? " of " + data.program.split("/").pop() : "");
document.getElementById("verdict").append(el("p", { class: "verdict " + data.verdict.tone }, data.verdict.text));
compareTable();
compareChart();
keepFitting();
