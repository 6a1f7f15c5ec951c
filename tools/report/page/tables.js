// Tables that sort by a click on a column, and the sections made of them.

// columns: [title, numeric?]; cells: text, {text, value} or a node with a value property.
function sortableTable(columns, rows, most) {
  const body = el("tbody", {});
  const order = rows.map((row, index) => ({ row, index }));
  const limit = { now: most };
  const cellOf = (cell, numeric, first) => el("td", { class: numeric ? "number" : "name" },
    cell.node || (cell.text !== undefined ? cell.text : cell));
  const refill = () => {
    body.replaceChildren(...order.slice(0, limit.now).map(({ row, index }) => el("tr", { "data-index": index },
      row.map((cell, column) => cellOf(cell, columns[column][1], column === 0)))));
  };
  const key = (cell) => (cell.value !== undefined ? cell.value : String(cell.text !== undefined ? cell.text : cell));
  const heads = columns.map(([title, numeric], column) => {
    const head = el("th", { class: numeric ? "number" : null, scope: "col" }, el("button", { type: "button" }, title));
    head.firstChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : Boolean(numeric);
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      order.sort((a, b) => {
        const left = key(a.row[column]), right = key(b.row[column]);
        return (left < right ? -1 : left > right ? 1 : 0) * (down ? -1 : 1);
      });
      refill();
    });
    return head;
  });
  refill();
  const holder = el("div", {}, el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads)), body)));
  if (rows.length > most) {
    const button = el("button", { type: "button" }, `Show all ${rows.length}`);
    button.addEventListener("click", () => { limit.now = rows.length; refill(); button.remove(); });
    holder.append(el("div", { class: "tools" }, button));
  }
  return holder;
}

function totalsSection() {
  if (!data.totals) return;
  const node = section("totals", "One iteration in numbers", "");
  node.append(sortableTable([["What"], ["Predicted", 1], ["Measured", 1], ["Note"]],
    data.totals.map((row) => [row.label, row.predicted || "\u2013", row.measured || "\u2013", row.note]), 50));
}

function kernelSection() {
  if (data.kernels.length === 0) return;
  const node = section("kernels", "Work by time", "Everything the program runs on the device in one iteration, or in the whole " +
    "recording where there is no plan.");
  const most = Math.max(...data.kernels.map((row) => row.share), 1e-9);
  node.append(sortableTable([["Share"], ["Total", 1], ["Calls", 1], ["Mean", 1], ["Name"]], data.kernels.map((row) => {
    const share = el("span", { class: "share", style: `width:${((90 * row.share) / most).toFixed(1)}px` });
    return [{ node: el("span", {}, share, (100 * row.share).toFixed(1) + " %"), value: row.share },
      { text: duration(row.total_ns), value: row.total_ns }, { text: String(row.calls), value: row.calls },
      { text: duration(row.total_ns / row.calls), value: row.total_ns / row.calls }, row.name];
  }), 20));
}

function siteSection() {
  if (data.sites.length === 0) return;
  const node = section("sites", "Where memory is allocated", "Call sites by the most that their allocations held at one time.");
  node.append(sortableTable([["Held at most", 1], ["Allocations", 1], ["Largest", 1], ["Call site"]], data.sites.map((row) => {
    const frames = row.stack.split("\n").filter((frame) => frame);
    const rest = frames.length > 1 ? el("details", {}, el("summary", {}, ownFrames(frames)), el("pre", {}, frames.join("\n")))
      : frames[0] || "";
    return [{ text: bytes(row.peak), value: row.peak }, { text: String(row.count), value: row.count },
      { text: bytes(row.largest), value: row.largest }, { node: rest, value: row.stack }];
  }), 15));
}

// Rows: [first, last, count, planned, median, least, most, stall, out, back, mapping calls]; a row of several is a group.
function drawIterations(box) {
  const width = Math.max(280, box.clientWidth), height = 150, left = 64, bottom = 22;
  const list = data.iterations, most = Math.max(...list.map((row) => row[6]), 1) * 1.05;
  const all = list.reduce((sum, row) => sum + row[2], 0);
  const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Time of each iteration" });
  const step = niceStep(most, 4);
  const y = (value) => height - bottom - (value / most) * (height - bottom - 6);
  for (let value = 0; value <= most; value += step) {
    image.append(svg("line", { x1: left, x2: width, y1: y(value), y2: y(value), stroke: "var(--grid)" }),
      svg("text", { class: "axis", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, timeLabel(value, step)));
  }
  const slot = (width - left) / all;
  let before = 0;
  const starts = list.map((row) => { const at = before; before += row[2]; return at; });
  list.forEach((row, index) => {
    const x = left + starts[index] * slot, wide = Math.max(0.5, slot * row[2] - (slot > 4 ? 1.5 : 0));
    const fill = row[3] ? "var(--planned)" : "var(--before)";
    if (row[2] > 1) image.append(svg("rect", { x, y: y(row[6]), width: wide, height: Math.max(0.5, y(row[5]) - y(row[6])), fill, opacity: 0.35 }));
    image.append(svg("rect", { x, y: y(row[4]), width: wide, height: height - bottom - y(row[4]), fill, opacity: row[2] > 1 ? 0.8 : 1 }));
  });
  image.append(svg("text", { class: "axis", x: left, y: height - 5 }, "iteration " + list[0][0]),
    svg("text", { class: "axis", x: width, y: height - 5, "text-anchor": "end" }, String(list[list.length - 1][1])));
  image.addEventListener("pointermove", (event) => {
    const area = image.getBoundingClientRect();
    const at = (((event.clientX - area.left) / area.width) * width - left) / slot;
    const row = at < 0 ? null : list[starts.findLastIndex((start) => start <= at)];
    if (!row) { hideTip(); return; }
    const each = row[2] > 1 ? " each" : "";
    showTip(`${iterationName(row)}: ${row[3] ? "planned" : "on demand"}\n` +
      (row[2] > 1 ? `${duration(row[4])} in the middle, ${duration(row[5])} to ${duration(row[6])}` : duration(row[4])) +
      `, waited ${duration(row[7])}${each}\n${bytes(row[8])} out, ${bytes(row[9])} back${each}\n${row[10]} memory-mapping calls`,
      event.clientX, event.clientY);
  });
  image.addEventListener("pointerleave", hideTip);
  box.replaceChildren(image);
}

function iterationName(row) { return row[2] > 1 ? `Iterations ${row[0]} to ${row[1]}` : `Iteration ${row[0]}`; }

function iterationSection() {
  if (data.iterations.length === 0) return;
  const all = data.iterations.reduce((sum, row) => sum + row[2], 0);
  const node = section("iterations", "Iterations", "How long each iteration of the run took, and whether it ran by the plan." +
    (all > data.iterations.length ? ` ${all} of them stand in ${data.iterations.length} groups: the full bar is the median, the pale part goes from the shortest to the longest.` : ""));
  const box = el("div", { class: "chart" });
  node.append(legend([["Planned", "planned"], ["On demand", "before"]]), box);
  onRedraw(() => drawIterations(box));
  const rows = data.iterations.map((row) => [{ text: row[2] > 1 ? `${row[0]}\u2013${row[1]}` : String(row[0]), value: row[0] }, row[3] ? "planned" : "on demand",
    { text: duration(row[4]), value: row[4] }, { text: duration(row[6]), value: row[6] }, { text: duration(row[7]), value: row[7] },
    { text: bytes(row[8]), value: row[8] }, { text: bytes(row[9]), value: row[9] }, { text: String(row[10]), value: row[10] }]);
  node.append(el("details", {}, el("summary", {}, "As a table"), sortableTable([["Iteration", 1], ["Mode"], ["Time", 1], ["Longest", 1],
    ["Waited", 1], ["Out", 1], ["Back", 1], ["Mapping calls", 1]], rows, 100)));
}

function divergenceSection() {
  if (data.divergences.length === 0) return;
  const node = section("divergences", "Divergences", "Where the program did something else than in the recorded iteration. " +
    "From there on it ran on demand until the plan matched again.");
  node.append(sortableTable([["Iteration", 1], ["Times", 1], ["Call", 1], ["Expected"], ["Got"], ["Then"]], data.divergences.map((row) => [
    { text: row.count > 1 ? `${row.iteration} to ${row.last}` : String(row.iteration), value: row.iteration }, { text: String(row.count), value: row.count },
    { text: String(row.call), value: row.call }, row.expected, row.got, row.then]), 20));
}

function unmanagedSection() {
  if (data.unmanaged.length === 0) return;
  const node = section("unmanaged", "Not managed", "What stayed on the device or passed through, and why.");
  node.append(sortableTable([["What"], ["Count", 1], ["Bytes", 1]], data.unmanaged.map((row) => [row.what,
    { text: String(row.count), value: row.count }, { text: bytes(row.bytes), value: row.bytes }]), 50));
}
