// Tensors over one iteration: where each one is, when it is used, when it leaves and comes back.
const tensorRow = 20;
const foldedTensors = 24;

class TensorPainter {
  constructor(chart) {
    this.all = chart.rows;
    this.rows = chart.rows.slice(0, foldedTensors);
    this.span = chart.span;
  }
  unfold() { this.rows = this.all; }
  height() { return this.rows.length * tensorRow + 4; }

  draw(context, chart) {
    const colors = { resident: color("resident"), use: color("compute"), grid: color("line"), ink: color("ink"),
      out: color("to-host"), back: color("to-device") };
    this.rows.forEach((row, index) => this.drawRow(context, chart, row, 4 + index * tensorRow, colors));
  }

  drawRow(context, chart, row, y, colors) {
    context.fillStyle = colors.ink;
    context.fillText(chart.left > 100 ? `#${row.id}  ${bytes(row.size)}${row.persistent ? "  \u221e" : ""}` : bytes(row.size), 0, y + 12);
    context.save();
    context.beginPath();
    context.rect(chart.left, 0, chart.width - chart.left, chart.height);
    context.clip();
    context.fillStyle = colors.grid;
    const bar = (span, top, height, least) => {
      const x = chart.x(span[0]), end = chart.x(span[1]);
      if (end < chart.left || x > chart.width) return;
      context.fillRect(x, y + top, Math.max(least, end - x), height);
    };
    bar(row.life, 7, 1.5, 1);
    context.fillStyle = colors.resident;
    for (const span of row.resident) bar(span, 2, 12, 0.7);
    context.fillStyle = colors.use;
    for (const span of row.uses) bar(span, 2, 12, 1);
    for (const [out, start, end] of row.moves) {
      context.fillStyle = out ? colors.out : colors.back;
      bar([start, end], out ? 9 : 2, 5, 2);
    }
    context.restore();
  }

  tipAt(x, y, chart) {
    const row = this.rows[Math.floor((y - 4) / tensorRow)];
    if (!row) return "";
    const time = chart.time(x);
    const inside = (span) => time >= span[0] && time <= span[1];
    const move = row.moves.find((one) => time >= one[1] && time <= one[2]);
    const state = move ? (move[0] ? "being offloaded" : "being reloaded") : row.uses.some(inside) ? "in use"
      : row.resident.some(inside) ? "on the device, not used" : inside(row.life) ? "away" : "not allocated";
    const where = row.site ? "\nallocated in " + ownFrame(row.site.split("\n")) : "";
    return `Tensor ${row.id}: ${bytes(row.size)}${row.persistent ? ", kept across iterations" : ""}\n` +
      (x >= chart.left ? `${duration(time)}: ${state}` : `${row.use_count} uses`) + where;
  }
}

function gaps(row) {
  let longest = 0;
  for (let i = 1; i < row.uses.length; ++i) longest = Math.max(longest, row.uses[i][0] - row.uses[i - 1][1]);
  return longest;
}

sections.tensors = () => {
  if (!data.tensors || data.tensors.rows.length === 0) return;
  const shown = data.tensors.rows.length;
  const node = section("tensors", "Tensors", `The ${shown} of ${data.tensors.total} tensors that hold the most memory for ` +
    "the longest time, over one planned iteration. A thin line is time in which the tensor is alive but away. " +
    "\u221e marks tensors that are kept across iterations.");
  node.append(legend([["On the device", "resident"], ["In use", "compute"], ["Offload", "to-host"], ["Reload", "to-device"],
    ["Alive, but away", "line", "stroke"]]));
  const holder = el("div", {});
  const painter = new TensorPainter(data.tensors);
  const chart = new ZoomChart(holder, painter, "When each tensor is on the device; the table below has the same as text",
    innerWidth < 600 ? 64 : 132);
  if (shown > foldedTensors) {
    const more = el("button", { type: "button" }, `Show all ${shown}`);
    more.addEventListener("click", () => { painter.unfold(); more.remove(); chart.draw(); });
    holder.append(el("div", { class: "tools" }, more));
  }
  const rows = data.tensors.rows.map((row) => [
    { text: "#" + row.id, value: row.id }, { text: bytes(row.size), value: row.size }, row.persistent ? "kept" : "transient",
    { text: String(row.use_count), value: row.use_count }, { text: duration(gaps(row)), value: gaps(row) },
    { text: String(row.moves.filter((move) => move[0]).length), value: row.moves.length }, ownFrame(row.site.split("\n"))]);
  node.append(holder, el("details", {}, el("summary", {}, "As a table"), sortableTable([["Tensor", 1], ["Size", 1], ["Kind"],
    ["Uses", 1], ["Longest gap", 1], ["Offloads", 1], ["Allocated in"]], rows, 60)));
};
