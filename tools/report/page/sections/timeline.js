// The timeline: compute and the two copy engines, one lane each, overlapping work of a lane in rows below each other.
const laneNames = ["Compute", "Host to device", "Device to host"];
const shortLaneNames = ["Comp.", "H\u2192D", "D\u2192H"];
const laneColors = ["compute", "to-device", "to-host"];
const rowHeight = 24, mostRows = 4;

// Columns to bars: [lane, start, ns, name, bytes, own, count, busy].
function barsOf(timeline) {
  const c = timeline.bars, bars = new Array(c.lane.length);
  let start = 0;
  for (let i = 0; i < bars.length; ++i) {
    start += c.start[i];
    bars[i] = [c.lane[i], start, c.ns[i], c.name[i], c.bytes[i], c.own[i], c.count[i], c.busy[i]];
  }
  return bars;
}

function barName(timeline, bar) {
  const name = timeline.bars.names[bar[3]];
  return bar[6] > 1 ? `${bar[6]} pieces of work (${name})` : name;
}

// Greedy rows: a bar goes to the first row that is free when it starts.
function packLanes(timeline) {
  const lanes = [0, 1, 2].map(() => []);
  for (const bar of barsOf(timeline)) {
    const rows = lanes[bar[0]];
    let row = rows.findIndex((one) => one.end <= bar[1]);
    if (row < 0 && rows.length < mostRows) row = rows.push({ end: 0, bars: [] }) - 1;
    if (row < 0) row = mostRows - 1;
    rows[row].bars.push(bar);
    rows[row].end = Math.max(rows[row].end, bar[1] + bar[2]);
  }
  for (const rows of lanes) if (rows.length === 0) rows.push({ end: 0, bars: [] });
  return lanes;
}

function firstVisible(bars, time) {
  let low = 0, high = bars.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars[middle][1] + bars[middle][2] < time) low = middle + 1; else high = middle;
  }
  return low;
}

class TimelinePainter {
  constructor(timeline) {
    this.timeline = timeline;
    this.span = timeline.span;
    this.lanes = packLanes(timeline);
    this.waits = timeline.waits.filter((wait) => wait.transfer).sort((a, b) => a.start - b.start);
  }
  height() { return this.lanes.reduce((sum, rows) => sum + rows.length * rowHeight + 12, 4); }

  draw(context, chart) {
    let y = 4;
    this.tops = [];
    this.lanes.forEach((rows, lane) => {
      context.fillStyle = color("ink");
      context.fillText((chart.left > 90 ? laneNames : shortLaneNames)[lane], 0, y + 16);
      if (lane === 0) this.drawWaits(context, chart, y, rows.length * rowHeight);
      for (const row of rows) {
        this.tops.push({ y, lane, bars: row.bars });
        this.drawRow(context, chart, row.bars, lane, y);
        y += rowHeight;
      }
      y += 12;
    });
  }

  drawRow(context, chart, bars, lane, y) {
    const fill = color(laneColors[lane]), paper = color("panel");
    let drawnTo = -1;
    context.save();
    context.beginPath();
    context.rect(chart.left, 0, chart.width - chart.left, chart.height);
    context.clip();
    for (let i = firstVisible(bars, chart.from); i < bars.length && bars[i][1] <= chart.to; ++i) {
      const x = chart.x(bars[i][1]), end = chart.x(bars[i][1] + bars[i][2]);
      const from = Math.max(x, drawnTo);
      if (end - from < 0.3 && end <= drawnTo + 0.3) continue;
      const width = Math.max(0.7, end - from - (end - x > 4 ? 1 : 0));
      context.fillStyle = fill;
      const share = bars[i][6] > 1 ? Math.max(0.3, Math.min(1, bars[i][7] / Math.max(1, bars[i][2]))) : 1;
      context.globalAlpha = (lane !== 0 && bars[i][5] === 0 ? 0.55 : 1) * share;
      context.fillRect(from, y, width, rowHeight - 4);
      context.globalAlpha = 1;
      drawnTo = from + width;
      context.fillStyle = paper;
      const start = Math.max(from, chart.left);
      barText(context, barName(this.timeline, bars[i]), start, y + 14, Math.min(end, chart.width) - start);
    }
    context.restore();
  }

  drawWaits(context, chart, y, height) {
    context.strokeStyle = color("wait");
    for (const wait of this.waits) {
      const x = Math.max(chart.left, chart.x(wait.start)), end = Math.min(chart.width, chart.x(wait.start + wait.ns));
      if (end - x < 1.5) continue;
      context.strokeRect(x + 0.5, y + 0.5, end - x - 1, height - 5);
      context.save();
      context.beginPath();
      context.rect(x, y, end - x, height - 4);
      context.clip();
      context.beginPath();
      for (let at = x - height; at < end; at += 7) { context.moveTo(at, y + height); context.lineTo(at + height, y); }
      context.stroke();
      context.restore();
    }
  }

  tipAt(x, y, chart) {
    const row = (this.tops || []).find((one) => y >= one.y && y < one.y + rowHeight);
    if (!row || x < chart.left) return "";
    const time = chart.time(x), slack = (chart.to - chart.from) / chart.width;
    for (let i = firstVisible(row.bars, time - slack); i < row.bars.length && row.bars[i][1] <= time + slack; ++i) {
      const bar = row.bars[i];
      if (bar[6] > 1) {
        return `${barName(this.timeline, bar)}\n${duration(bar[7])} of work within ${duration(bar[2])} from ${duration(bar[1])}` +
          (bar[4] > 0 ? `\n${bytes(bar[4])}` : "");
      }
      return `${barName(this.timeline, bar)}\n${duration(bar[2])} from ${duration(bar[1])}` +
        (bar[4] > 0 ? `\n${bytes(bar[4])}, ${rate(bar[4] / (bar[2] / 1e9 || 1))}` : "");
    }
    const wait = row.lane === 0 && this.waits.find((one) => time >= one.start && time <= one.start + one.ns);
    return wait ? `Waits ${duration(wait.ns)} for ${wait.reason}\nbefore ${wait.op}` : "";
  }
}

sections.timelines = () => {
  if (data.timelines.length === 0) return;
  const node = section("timeline", "Timeline",
    "Drag to move, Ctrl + wheel or pinch to zoom, double click to zoom in, arrow keys, + and - when focused.");
  const meaning = el("div", {});
  node.append(meaning);
  const holder = el("div", {});
  const label = "Timeline of compute, host to device and device to host; the tables below have the same as text";
  const chart = new ZoomChart(holder, new TimelinePainter(data.timelines[0]), label, innerWidth < 600 ? 46 : 112);
  const facts = el("p", { class: "quiet" });
  const waits = el("div", {});
  const select = (timeline, button) => {
    for (const one of chart.buttons.querySelectorAll("[aria-pressed]")) one.setAttribute("aria-pressed", one === button);
    chart.setPainter(new TimelinePainter(timeline));
    const whose = timeline.note ? ", the program's own" : "";
    const waiting = timeline.note ? [] : [["Waiting for a transfer", "wait", "dash"]];
    meaning.replaceChildren(legend([["Computing", "compute"], ...waiting, [`Host to device${whose}`, "to-device"],
      [`Device to host${whose}`, "to-host"]]));
    const hidden = timeline.copy_ns > 0 ? `, ${percent(timeline.both_ns, timeline.copy_ns, 0)} % of it while something computed` : "";
    facts.textContent = `${duration(timeline.span)} in all; computing ${duration(timeline.compute_ns)}; copying ` +
      `${duration(timeline.copy_ns)}${hidden}.` + (timeline.total_bars > timeline.bars.lane.length
        ? ` ${timeline.total_bars} pieces of work are drawn as ${timeline.bars.lane.length} bars: neighbours that are too short to see stand together.` : "") +
      (timeline.note ? ` ${timeline.note}` : "");
    waits.replaceChildren();
    if (timeline.waits.length > 0) waits.append(waitsTable(timeline, chart));
  };
  const choices = data.timelines.map((timeline) => {
    const button = el("button", { type: "button", "aria-pressed": "false" }, timeline.name);
    button.addEventListener("click", () => select(timeline, button));
    return button;
  });
  chart.buttons.prepend(...choices);
  node.append(holder, facts, waits);
  select(data.timelines[0], choices[0]);
};

function waitsTable(timeline, chart) {
  const rows = timeline.waits.map((wait) => [
    { text: duration(wait.ns), value: wait.ns }, { text: duration(wait.start), value: wait.start }, wait.op, wait.reason]);
  const table = sortableTable([["Wait", 1], ["At", 1], ["Before"], ["Waited for"]], rows, 10);
  table.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row) return;
    const wait = timeline.waits[Number(row.dataset.index)];
    chart.show(wait.start - 2 * wait.ns, wait.start + 3 * wait.ns);
  });
  return el("details", { open: innerWidth < 600 ? null : "" }, el("summary", {}, `The ${timeline.waits.length} longest waits of computing`), table);
}

sections.waits = () => {
  const waits = data.waits;
  if (!waits || waits.total_ns === 0) return;
  const node = section("waits", "What computing waited for", `${waits.timeline}: the compute engine stood still for ${duration(waits.total_ns)} of ` +
    `${duration(waits.span)}, ${duration(waits.transfer_ns)} of that until a copy was done. The same time three times over: by what ended a wait, ` +
    "by the tensor that was copied, and by what the plan had decided.");
  const table = (title, rows) => rows.length === 0 ? null : el("div", {}, el("h3", {}, title),
    sortableTable([["Cause"], ["Time", 1], ["Share", 1], ["Waits", 1]], rows.map((row) => [row.what, { text: duration(row.ns), value: row.ns },
      { text: percent(row.ns, waits.total_ns, 1) + " %", value: row.ns }, { text: String(row.count), value: row.count }]), 10));
  for (const one of [table("By transfer", waits.by_transfer), table("By tensor", waits.by_tensor), table("By decision", waits.by_decision)]) {
    if (one) node.append(one);
  }
};
