// Memory over time: stepped lines against the budget, which end where nothing more is known.
function memoryChart(parent, chart) {
  const levels = (chart.levels || []).map((level) => ({ name: level.name, value: level.value, css: level.style, dash: [2, 4] }));
  if (chart.budget > 0) levels.push({ name: chart.budget_name, value: chart.budget, css: "wait", dash: [7, 5] });
  parent.append(legend([...chart.lines.map((line) => [`${line.name} (peak ${bytes(line.peak)})`, line.style, "stroke"]),
    ...levels.map((level) => [`${level.name} (${bytes(level.value)})`, level.css, "dash"])]));
  lineChart(parent, { label: chart.lines.map((line) => `${line.name}: peak ${bytes(line.peak)}`).join("; "),
    labels: ["time", ...chart.lines.map((line) => line.name)], rows: mergeSteps(chart.lines),
    series: chart.lines.map((line) => ({ name: line.name, css: line.style, step: true, fill: true })), levels, memory: true,
    format: bytes, tick: bytes, xFormat: duration, xTick: timeLabel });
}
