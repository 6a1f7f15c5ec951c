// Memory over time: stepped lines against the budget, with a reading at the pointer.
function memoryChart(parent, chart) {
  const box = el("div", { class: "chart" });
  const entries = chart.lines.map((line) => [`${line.name} (peak ${bytes(line.peak)})`, line.style, "stroke"]);
  const levels = chart.levels || [];
  for (const level of levels) entries.push([`${level.name} (${bytes(level.value)})`, level.style, "dash"]);
  if (chart.budget > 0) entries.push([`Budget ${bytes(chart.budget)}`, "wait", "dash"]);
  parent.append(legend(entries), box);
  onRedraw(() => drawMemory(box, chart));
}

function valueAt(points, time) {
  let low = 0, high = points.length / 2 - 1, found = 0;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (points[2 * middle] <= time) { found = middle; low = middle + 1; } else high = middle - 1;
  }
  return points[2 * found + 1];
}

function stepPath(points, x, y) {
  let path = "";
  for (let i = 0; i < points.length; i += 2) {
    const px = x(points[i]).toFixed(1), py = y(points[i + 1]).toFixed(1);
    path += i === 0 ? `M${px} ${py}` : `H${px}V${py}`;
  }
  return path;
}

function drawMemory(box, chart) {
  const width = Math.max(280, box.clientWidth), height = width < 600 ? 220 : 300;
  const left = 64, right = 10, top = 10, bottom = 26;
  const most = Math.max(chart.budget, ...(chart.levels || []).map((level) => level.value), ...chart.lines.map((line) => line.peak), 1) * 1.05;
  const span = Math.max(1, chart.span);
  const x = (time) => left + (time / span) * (width - left - right);
  const y = (value) => height - bottom - (value / most) * (height - top - bottom);
  const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": chart.lines.map((line) => `${line.name}: peak ${bytes(line.peak)}`).join("; ") });
  const step = memoryStep(most, 6);
  for (let value = 0; value <= most; value += step) {
    image.append(svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: "var(--grid)" }),
      svg("text", { class: "axis", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, bytes(value)));
  }
  const timeStep = niceStep(span, width / 130);
  for (let time = 0; time <= span * 1.0001; time += timeStep) {
    image.append(svg("text", { class: "axis", x: x(time), y: height - 6,
      "text-anchor": time === 0 ? "start" : x(time) > width - 50 ? "end" : "middle" }, timeLabel(time, timeStep)));
  }
  for (const line of chart.lines) {
    const path = stepPath(line.points, x, y);
    const last = line.points[line.points.length - 2];
    image.append(svg("path", { d: `${path}V${y(0)}H${x(line.points[0])}Z`, fill: `var(--${line.style})`, opacity: 0.1 }),
      svg("path", { d: path, fill: "none", stroke: `var(--${line.style})`, "stroke-width": 2, "stroke-linejoin": "round" }));
    if (last < span * 0.995) {
      image.append(svg("line", { x1: x(last), x2: x(last), y1: y(0), y2: top, stroke: `var(--${line.style})`,
        "stroke-dasharray": "2 4" }));
    }
  }
  for (const level of chart.levels || []) {
    image.append(svg("line", { x1: left, x2: width - right, y1: y(level.value), y2: y(level.value),
      stroke: `var(--${level.style})`, "stroke-width": 1, "stroke-dasharray": "2 4" }));
  }
  if (chart.budget > 0) {
    image.append(svg("line", { x1: left, x2: width - right, y1: y(chart.budget), y2: y(chart.budget),
      stroke: "var(--wait)", "stroke-width": 1.5, "stroke-dasharray": "7 5" }));
  }
  addReading(image, chart, { left, width: width - left - right, top, bottom: height - bottom, span, total: width });
  box.replaceChildren(image);
}

function addReading(image, chart, area) {
  const cursor = svg("line", { y1: area.top, y2: area.bottom, stroke: "var(--quiet)", visibility: "hidden" });
  image.append(cursor);
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * area.total;
    const time = Math.min(1, Math.max(0, (px - area.left) / area.width)) * area.span;
    const at = area.left + (time / area.span) * area.width;
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    const rows = chart.lines.map((line) => time > line.points[line.points.length - 2]
      ? `${line.name}: not known` : `${line.name}: ${bytes(valueAt(line.points, time))}`);
    showTip([duration(time), ...rows].join("\n"), event.clientX, event.clientY);
  });
  image.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); hideTip(); });
}
