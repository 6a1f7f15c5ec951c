// The iterations of a run. Rows: [first, last, count, mode, median, least, most, stall, out, back, mapping calls]; a row of
// several is a group. The last four are null where they are not known, as on demand. Mode: 0 on demand, 1 the plan, 2 the plan
// that was made at once, before the better one.
const modeNames = ["on demand", "planned", "first plan"];
const modeStyles = ["before", "planned", "to-host"];
const marksOfPlans = { kept: "plan of an earlier run", first: "first plan", better: "better plan", plan: "plan" };

function iterationName(row) { return row[2] > 1 ? `Iterations ${row[0]} to ${row[1]}` : `Iteration ${row[0]}`; }

// In the order in which they come: on demand, first plan, plan.
function modeTable(node, modes) {
  if (modes.length < 2) return;
  const right = (value) => el("td", { class: "number" }, value);
  node.append(el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Times by mode" }, el("table", {}, el("thead", {}, el("tr", {},
    ["Iterations", "Number", "Median", "Shortest", "Longest"].map((title, index) => el("th", { class: index > 0 ? "number" : null, scope: "col" }, title)))),
  el("tbody", {}, modes.map(([mode, count, median, least, most]) => el("tr", {}, el("td", {}, modeNames[mode]), right(String(count)), right(duration(median)),
    right(duration(least)), right(duration(most))))))));
}

sections.iterations = () => {
  const list = data.iterations;
  if (list.length === 0) return;
  const all = list.reduce((sum, row) => sum + row[2], 0);
  const grouped = all > list.length;
  const others = data.iterations_in_all - all;
  const several = new Set(data.in_force.map(([, plan]) => plan)).size > 1;
  const marks = data.in_force.map(([iteration, plan, what]) => `${marksOfPlans[what]}${several ? " " + (plan + 1) : ""} from iteration ${iteration} on`);
  const node = section("iterations", data.repetitions ? "What repeats" : "Iterations", (data.repetitions
    ? `${data.repetitions}, and how long each took: only a trace tells what an iteration of the program is.`
    : "How long each iteration of the run took, and whether it ran by the plan.") +
    (others > 0 ? ` ${all} of ${data.iterations_in_all} were timed; the others passed before the program was seen to repeat itself or between plans, or were not finished.` : "") +
    (grouped ? ` ${all} of them stand in ${list.length} groups: each has its median, and its longest one.` : "") +
    (marks.length > 0 ? ` Marked: ${marks.slice(0, 12).join(", ")}${marks.length > 12 ? ", ..." : ""}.` : ""));
  modeTable(node, data.modes);
  const modes = [1, 2, 0].filter((mode) => mode !== 2 || list.some((row) => row[3] === 2));
  const series = modes.map((mode) => ({ name: modeNames[mode][0].toUpperCase() + modeNames[mode].slice(1), css: modeStyles[mode],
    points: mode === 0 || list.length < 200, width: 1.5 }));
  if (grouped) series.push({ name: "Longest of the group", css: "wait", width: 1 });
  node.append(legend([...series.map((one) => [one.name, one.css, "stroke"]), ...(marks.length > 0 ? [["A plan came in force", "good", "dash"]] : [])]));
  const byIndex = new Map(list.map((row) => [row[0], row]));
  lineChart(node, { label: `Time of ${all} iterations`, labels: ["iteration", ...series.map((one) => one.name)],
    rows: list.map((row) => [row[0], ...modes.map((mode) => (row[3] === mode ? row[4] : null)), ...(grouped ? [row[6]] : [])]), series, height: 220,
    levels: data.in_force.map(([iteration]) => ({ x: iteration - 0.5, css: "good", dash: [3, 4] })),
    format: duration, tick: timeLabel, xFormat: (index) => byIndex.has(index) ? iterationName(byIndex.get(index)) : `Iteration ${index}`,
    xTick: wholeTick,
    extra: (index) => {
      const row = byIndex.get(index);
      return row && row[7] !== null ? [`waited ${duration(row[7])}, ${bytes(row[8])} out, ${bytes(row[9])} back`, `${row[10]} memory-mapping calls`] : [];
    } });
  const known = (value, format) => ({ text: value === null ? "" : format(value), value: value === null ? -1 : value });
  const rows = list.map((row) => [{ text: row[2] > 1 ? `${row[0]}\u2013${row[1]}` : String(row[0]), value: row[0] }, modeNames[row[3]],
    { text: duration(row[4]), value: row[4] }, { text: duration(row[6]), value: row[6] }, known(row[7], duration),
    known(row[8], bytes), known(row[9], bytes), known(row[10], String)]);
  node.append(el("details", {}, el("summary", {}, "As a table"), sortableTable([["Iteration", 1], ["Mode"], ["Time", 1], ["Longest", 1],
    ["Waited", 1], ["Out", 1], ["Back", 1], ["Mapping calls", 1]], rows, 100)));
};
