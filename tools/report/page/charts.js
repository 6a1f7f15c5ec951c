// Line charts by dygraphs: values over time or over budgets, with a reading at the pointer, zoom by drag or keys.
// Called by the sections of memory, iterations and budgets.

// chart: {label, labels: [x, name...], rows, series: [{name, css, dash, width, step, points}], format, xFormat, levels, box, height, xStep}
function lineChart(parent, chart) {
  const box = el("div", { class: "chart line", role: "img", "aria-label": chart.label, tabindex: 0 });
  const tools = el("div", { class: "tools" }, el("span", { class: "space" }),
    el("button", { type: "button", onclick: () => zoomLines(graph, 0.5) }, "Zoom in"),
    el("button", { type: "button", onclick: () => zoomLines(graph, 2) }, "Zoom out"),
    el("button", { type: "button", onclick: () => graph.resetZoom() }, "All"));
  parent.append(tools, box);
  const series = {};
  for (const one of chart.series) {
    series[one.name] = { strokeWidth: one.width || 2, strokePattern: one.dash || null, stepPlot: Boolean(one.step),
      drawPoints: Boolean(one.points), pointSize: 4, highlightCircleSize: one.points ? 6 : 3, fillGraph: Boolean(one.fill) };
  }
  const most = Math.max(...chart.rows.flatMap((row) => row.slice(1).filter((value) => value !== null && value !== undefined)),
    ...(chart.levels || []).map((level) => level.value), 1e-9);
  const graph = new Dygraph(box, chart.rows, { labels: chart.labels, series, colors: chart.series.map((one) => color(one.css)),
    height: innerWidth < 600 ? 220 : chart.height || 300, width: Math.max(260, box.clientWidth), labelsDiv: el("div", {}), legend: "always",
    connectSeparatedPoints: Boolean(chart.connect), fillAlpha: 0.1, gridLineColor: color("grid"), axisLineColor: color("line"),
    valueRange: [0, most * 1.06], includeZero: true, animatedZooms: false, xRangePad: 4, rightGap: 8,
    interactionModel: quietInteraction(), highlightCallback: (event, x, points) => readLines(chart, event, x, points), unhighlightCallback: hideTip,
    underlayCallback: (context, area, one) => drawLevels(context, area, one, chart.levels || []),
    axes: { x: { valueFormatter: chart.xFormat, axisLabelWidth: 84, ticker: niceTicker(chart.xTick, innerWidth < 600 ? 110 : 130, chart.xMemory) },
      y: { axisLabelWidth: 66, ticker: niceTicker(chart.tick, 44, chart.memory) } } });
  box.addEventListener("keydown", (event) => keyLines(event, graph));
  onRedraw(() => {
    graph.updateOptions({ colors: chart.series.map((one) => color(one.css)), gridLineColor: color("grid"), axisLineColor: color("line") }, true);
    graph.resize(Math.max(260, box.clientWidth), innerWidth < 600 ? 220 : chart.height || 300);
  });
  return graph;
}

// dygraphs' own, without the wheel (pages scroll) and without taking over touches that scroll.
function quietInteraction() {
  const model = { ...Dygraph.defaultInteractionModel };
  delete model.wheel;
  delete model.mousewheel;
  return model;
}

// Ticks at steps of 1, 2, 5, or of powers of two for memory; label: (value, step) => text.
function niceTicker(label, pixels, memory) {
  return (from, to, length) => {
    const count = Math.max(2, Math.floor(length / pixels));
    const step = memory ? memoryStep(to - from, count) : niceStep(Math.max(1e-9, to - from), count);
    const ticks = [];
    for (let value = Math.ceil(from / step) * step; value <= to; value += step) ticks.push({ v: value, label: label(value, step) });
    return ticks;
  };
}

function zoomLines(graph, factor) {
  const [from, to] = graph.xAxisRange(), [least, most] = graph.xAxisExtremes();
  const half = Math.min((most - least) / 2, ((to - from) / 2) * factor);
  const middle = Math.min(most - half, Math.max(least + half, (from + to) / 2));
  graph.updateOptions({ dateWindow: [middle - half, middle + half] });
}

function keyLines(event, graph) {
  const shift = (share) => {
    const [from, to] = graph.xAxisRange(), [least, most] = graph.xAxisExtremes();
    const by = Math.max(least - from, Math.min(most - to, (to - from) * share));
    graph.updateOptions({ dateWindow: [from + by, to + by] });
  };
  const actions = { "+": () => zoomLines(graph, 0.5), "=": () => zoomLines(graph, 0.5), "-": () => zoomLines(graph, 2), "0": () => graph.resetZoom(),
    ArrowLeft: () => shift(-0.2), ArrowRight: () => shift(0.2) };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function readLines(chart, event, x, points) {
  const rows = points.filter((point) => point.yval !== null && !Number.isNaN(point.yval))
    .map((point) => `${point.name}: ${chart.format(point.yval)}`);
  showTip([chart.xFormat(x), ...(chart.extra ? chart.extra(x) : []), ...rows].join("\n"), event.clientX, event.clientY);
}

function drawLevels(context, area, graph, levels) {
  context.save();
  for (const level of levels) {
    context.strokeStyle = color(level.css);
    context.lineWidth = 1.5;
    context.setLineDash(level.dash || [7, 5]);
    context.beginPath();
    if (level.x !== undefined) {
      const x = graph.toDomXCoord(level.x);
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
    } else {
      const y = graph.toDomYCoord(level.value);
      context.moveTo(area.x, y);
      context.lineTo(area.x + area.w, y);
    }
    context.stroke();
  }
  context.restore();
}

// Several stepped lines with times of their own as rows that share one x: a line that has ended is null from there on.
function mergeSteps(lines) {
  const times = [...new Set(lines.flatMap((line) => [...line.points.filter((_, i) => i % 2 === 0), ...(line.gaps || []).flat()]))].sort((a, b) => a - b);
  const unknown = (line, time) => (line.gaps || []).some(([from, to]) => time > from && time < to);
  const at = lines.map(() => 0);
  // A moment inside each gap, so that there is a row in which the line is not known.
  for (const [from, to] of lines.flatMap((line) => line.gaps || [])) times.push(from + (to - from) * 0.001, from + (to - from) * 0.999);
  times.sort((a, b) => a - b);
  return times.map((time) => [time, ...lines.map((line, index) => {
    const points = line.points, last = points.length - 2;
    while (at[index] < last && points[at[index] + 2] <= time) at[index] += 2;
    return time < points[0] || time > points[last] || unknown(line, time) ? null : points[at[index] + 1];
  })]);
}
