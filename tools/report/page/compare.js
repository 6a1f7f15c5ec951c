// The page that compares two runs, or two plans.
function compareTable() {
  const node = section("figures", "What changed", `A is ${data.names[0]}, B is ${data.names[1]}.`);
  node.append(el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "What changed" }, el("table", {}, el("thead", {}, el("tr", {}, ["", "A", "B", "Change"].map((title, index) =>
    el("th", { class: index > 0 ? "number" : null, scope: "col" }, title || "Figure")))),
  el("tbody", {}, data.rows.map((row) => el("tr", {}, el("td", {}, row.label), el("td", { class: "number" }, row.before || "\u2013"),
    el("td", { class: "number" }, row.after || "\u2013"), el("td", { class: "number tone " + row.tone }, row.change || "\u2013")))))));
}

// [out, in, left without a copy, computed again] of an iteration.
function trafficWords([out, back, spared, again]) {
  const parts = [[out, "out"], [back, "back"], [spared, "left without a copy"], [again, "computed again"]].filter(([value]) => value > 0);
  return parts.length > 0 ? parts.map(([value, what]) => `${bytes(value)} ${what}`).join(", ") : "stays";
}

function compareMoves() {
  if (!data.moves) return;
  const rest = data.moves.others > 0 ? ` ${data.moves.others} more that differ less are not shown.` : "";
  const node = section("moves", "What moves differently", data.moves.text + (data.moves.rows.length > 0
    ? " Tensors with which the plans do not do the same, most bytes first, by their numbers in A." + rest : " Both do the same with each tensor."));
  if (data.moves.rows.length === 0) return;
  const stacks = data.moves.stacks.map((stack) => stack.split("\n"));
  const rows = data.moves.rows.map(([tensor, size, a, b, stack]) => [{ text: "#" + tensor, value: tensor }, { text: bytes(size), value: size },
    { text: trafficWords(a), value: a[0] + a[1] }, { text: trafficWords(b), value: b[0] + b[1] }, stack > 0 ? ownFrames(stacks[stack - 1]) : "\u2013"]);
  searchableTable(node, [["Tensor", 1], ["Size", 1], ["By A"], ["By B"], ["Allocated in"]], rows, (index) =>
    rows[index].map((cell) => (cell.text !== undefined ? cell.text : cell)).join(" ").toLowerCase() + (data.moves.rows[index][4] > 0
      ? stacks[data.moves.rows[index][4] - 1].join(" ").toLowerCase() : ""), 30);
}

function compareChart() {
  if (data.compared !== "runs" || data.before.length === 0 && data.after.length === 0) return;
  const node = section("iterations", "Iterations", "How long each took, planned and on demand, by its number in the run.");
  const series = [{ name: "A", css: "before", width: 1.5 }, { name: "B", css: "compute", width: 1.5 }];
  node.append(legend([[`A: ${data.names[0]}`, "before", "stroke"], [`B: ${data.names[1]}`, "compute", "stroke"]]));
  const rows = new Map();
  data.before.forEach((row) => rows.set(row[0], [row[3], null]));
  data.after.forEach((row) => rows.set(row[0], [rows.has(row[0]) ? rows.get(row[0])[0] : null, row[3]]));
  lineChart(node, { label: "Time of each iteration of both runs", labels: ["iteration", "A", "B"], connect: true,
    rows: [...rows].sort((a, b) => a[0] - b[0]).map(([index, values]) => [index, ...values]), series, format: duration, tick: timeLabel,
    xFormat: (index) => `Iteration ${index}`, xTick: wholeTick });
}

theme();
document.title = "Reprise: two " + data.compared;
document.getElementById("program").textContent = "Two " + data.compared + (data.program ? " of " + data.program.split("/").pop() : "");
document.getElementById("verdict").append(el("p", { class: "verdict " + data.verdict.tone }, data.verdict.text));
compareTable();
compareMoves();
compareChart();
keepFitting();
