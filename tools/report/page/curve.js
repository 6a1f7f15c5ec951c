// Values over budgets: one line for each policy, with a reading at the budget next to the pointer.
const curveColors = ["#0068a8", "#d98500", "#008a64", "#c8440c", "#8a5fbf", "#b0568a", "#4f8f00", "#3f9fc8", "#a07c2c", "#6b4a3a",
  "#d0508f", "#1f8f9f", "#7a6fd0", "#b58900"];

// Styles by name, so that a policy looks the same in every chart; the best of all is set apart.
function curveStyle(name, index) {
  const css = "curve-" + index;
  document.documentElement.style.setProperty("--" + css, name === "auto" ? "var(--ink)" : curveColors[index % curveColors.length]);
  return { css, width: name === "auto" ? 3 : 1.8, dash: index >= curveColors.length ? "6 4" : null };
}

// chart: lines [{name, style, points: [[budget, value]]}], format, label.
function curveChart(parent, chart) {
  const box = el("div", { class: "chart" });
  parent.append(legend(chart.lines.map((line) => [line.name, line.style.css, line.style.dash ? "dash" : "stroke"])), box);
  onRedraw(() => drawCurves(box, chart));
}

function drawCurves(box, chart) {
  const width = Math.max(280, box.clientWidth), height = width < 600 ? 240 : 360;
  const area = { left: 76, right: 16, top: 10, bottom: 28, width, height };
  const points = chart.lines.flatMap((line) => line.points);
  const budgets = [...new Set(points.map(([budget]) => budget))].sort((a, b) => a - b);
  const first = budgets[0], last = budgets[budgets.length - 1], span = Math.max(1, last - first);
  const most = Math.max(1, ...points.map(([, value]) => value)) * 1.05;
  const x = (budget) => area.left + (last === first ? 0.5 : (budget - first) / span) * (width - area.left - area.right);
  const y = (value) => height - area.bottom - (value / most) * (height - area.top - area.bottom);
  const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": chart.label });
  const step = chart.memory ? memoryStep(most, 6) : niceStep(most, 6);
  for (let value = 0; value <= most; value += step) {
    image.append(svg("line", { x1: area.left, x2: width - area.right, y1: y(value), y2: y(value), stroke: "var(--grid)" }),
      svg("text", { class: "axis", x: area.left - 8, y: y(value) + 4, "text-anchor": "end" },
        chart.memory ? bytes(value) : timeLabel(value, step)));
  }
  let free = -Infinity;
  for (const budget of budgets) {
    if (x(budget) < free) continue;
    free = x(budget) + 72;
    image.append(svg("text", { class: "axis", x: x(budget), y: height - 6, "text-anchor": "middle" }, bytes(budget)));
  }
  for (const line of chart.lines) {
    const stroke = `var(--${line.style.css})`;
    const path = line.points.map(([budget, value], i) => `${i === 0 ? "M" : "L"}${x(budget).toFixed(1)} ${y(value).toFixed(1)}`);
    image.append(svg("path", { d: path.join(""), fill: "none", stroke, "stroke-width": line.style.width,
      "stroke-dasharray": line.style.dash, "stroke-linejoin": "round" }));
    for (const [budget, value] of line.points) image.append(svg("circle", { cx: x(budget), cy: y(value), r: 2.5, fill: stroke }));
  }
  addCurveReading(image, chart, budgets, x, area);
  box.replaceChildren(image);
}

function addCurveReading(image, chart, budgets, x, area) {
  const cursor = svg("line", { y1: area.top, y2: area.height - area.bottom, stroke: "var(--quiet)", visibility: "hidden" });
  image.append(cursor);
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * area.width;
    const budget = budgets.reduce((a, b) => Math.abs(x(b) - at) < Math.abs(x(a) - at) ? b : a);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(budget));
    cursor.setAttribute("visibility", "visible");
    const rows = chart.lines.map((line) => [line.name, line.points.find(([one]) => one === budget)])
      .filter(([, point]) => point).sort((a, b) => a[1][1] - b[1][1])
      .map(([name, point]) => `${name}: ${chart.memory ? bytes(point[1]) : duration(point[1])}`);
    showTip([`Budget ${bytes(budget)}`, ...rows].join("\n"), event.clientX, event.clientY);
  });
  image.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); hideTip(); });
}
