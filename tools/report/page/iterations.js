// The iterations of a run. Rows: [first, last, count, planned, median, least, most, stall, out, back, mapping calls]; a row of
// several is a group. The last four are null where they are not known, as on demand.
function iterationName(row) { return row[2] > 1 ? `Iterations ${row[0]} to ${row[1]}` : `Iteration ${row[0]}`; }

function iterationSection() {
  const list = data.iterations;
  if (list.length === 0) return;
  const all = list.reduce((sum, row) => sum + row[2], 0);
  const grouped = all > list.length;
  const others = data.iterations_in_all - all;
  const node = section("iterations", data.repetitions ? "What repeats" : "Iterations", (data.repetitions
    ? `${data.repetitions}, and how long each took: only a trace tells what an iteration of the program is.`
    : "How long each iteration of the run took, and whether it ran by the plan.") +
    (others > 0 ? ` ${all} of ${data.iterations_in_all} were timed; the others passed before the program was seen to repeat itself or between plans, or were not finished.` : "") +
    (grouped ? ` ${all} of them stand in ${list.length} groups: each has its median, and its longest one.` : ""));
  const series = [{ name: "Planned", css: "planned", points: list.length < 200, width: 1.5 }, { name: "On demand", css: "before", points: true, width: 1.5 }];
  if (grouped) series.push({ name: "Longest of the group", css: "to-host", width: 1 });
  node.append(legend(series.map((one) => [one.name, one.css, "stroke"])));
  const byIndex = new Map(list.map((row) => [row[0], row]));
  lineChart(node, { label: `Time of ${all} iterations`, labels: ["iteration", ...series.map((one) => one.name)],
    rows: list.map((row) => [row[0], row[3] ? row[4] : null, row[3] ? null : row[4], ...(grouped ? [row[6]] : [])]), series, height: 220,
    format: duration, tick: timeLabel, xFormat: (index) => byIndex.has(index) ? iterationName(byIndex.get(index)) : `Iteration ${index}`,
    xTick: wholeTick,
    extra: (index) => {
      const row = byIndex.get(index);
      return row && row[7] !== null ? [`waited ${duration(row[7])}, ${bytes(row[8])} out, ${bytes(row[9])} back`, `${row[10]} memory-mapping calls`] : [];
    } });
  const known = (value, format) => ({ text: value === null ? "" : format(value), value: value === null ? -1 : value });
  const rows = list.map((row) => [{ text: row[2] > 1 ? `${row[0]}\u2013${row[1]}` : String(row[0]), value: row[0] }, row[3] ? "planned" : "on demand",
    { text: duration(row[4]), value: row[4] }, { text: duration(row[6]), value: row[6] }, known(row[7], duration),
    known(row[8], bytes), known(row[9], bytes), known(row[10], String)]);
  node.append(el("details", {}, el("summary", {}, "As a table"), sortableTable([["Iteration", 1], ["Mode"], ["Time", 1], ["Longest", 1],
    ["Waited", 1], ["Out", 1], ["Back", 1], ["Mapping calls", 1]], rows, 100)));
}
