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

function drawIterations(box) {
  const width = Math.max(280, box.clientWidth), height = 150, left = 64, bottom = 22;
  const list = data.iterations, most = Math.max(...list.map((row) => row[2]), 1) * 1.05;
  const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Time of each iteration" });
  const step = niceStep(most, 4);
  const y = (value) => height - bottom - (value / most) * (height - bottom - 6);
  for (let value = 0; value <= most; value += step) {
    image.append(svg("line", { x1: left, x2: width, y1: y(value), y2: y(value), stroke: "var(--grid)" }),
      svg("text", { class: "axis", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, timeLabel(value, step)));
  }
  const slot = (width - left) / list.length;
  list.forEach((row, index) => {
    image.append(svg("rect", { x: left + index * slot, y: y(row[2]), width: Math.max(0.5, slot - (slot > 4 ? 1.5 : 0)),
      height: height - bottom - y(row[2]), fill: row[1] ? "var(--planned)" : "var(--before)" }));
  });
  image.append(svg("text", { class: "axis", x: left, y: height - 5 }, "iteration " + list[0][0]),
    svg("text", { class: "axis", x: width, y: height - 5, "text-anchor": "end" }, String(list[list.length - 1][0])));
  image.addEventListener("pointermove", (event) => {
    const area = image.getBoundingClientRect();
    const row = list[Math.floor((((event.clientX - area.left) / area.width) * width - left) / slot)];
    if (!row) { hideTip(); return; }
    showTip(`Iteration ${row[0]}: ${row[1] ? "planned" : "on demand"}\n${duration(row[2])}, waited ${duration(row[3])}\n` +
      `${bytes(row[4])} out, ${bytes(row[5])} back\n${row[6]} memory-mapping calls`, event.clientX, event.clientY);
  });
  image.addEventListener("pointerleave", hideTip);
  box.replaceChildren(image);
}

function iterationSection() {
  if (data.iterations.length === 0) return;
  const node = section("iterations", "Iterations", "How long each iteration of the run took, and whether it ran by the plan.");
  const box = el("div", { class: "chart" });
  node.append(legend([["Planned", "planned"], ["On demand", "before"]]), box);
  onRedraw(() => drawIterations(box));
  const rows = data.iterations.map((row) => [{ text: String(row[0]), value: row[0] }, row[1] ? "planned" : "on demand",
    { text: duration(row[2]), value: row[2] }, { text: duration(row[3]), value: row[3] }, { text: bytes(row[4]), value: row[4] },
    { text: bytes(row[5]), value: row[5] }, { text: String(row[6]), value: row[6] }]);
  node.append(el("details", {}, el("summary", {}, "As a table"), sortableTable([["Iteration", 1], ["Mode"], ["Time", 1],
    ["Waited", 1], ["Out", 1], ["Back", 1], ["Mapping calls", 1]], rows, 100)));
}

function divergenceSection() {
  if (data.divergences.length === 0) return;
  const node = section("divergences", "Divergences", "Where the program did something else than in the recorded iteration. " +
    "From there on it ran on demand until the plan matched again.");
  node.append(sortableTable([["Iteration", 1], ["Call", 1], ["Expected"], ["Got"], ["Then"]], data.divergences.map((row) => [
    { text: String(row.iteration), value: row.iteration }, { text: String(row.call), value: row.call }, row.expected, row.got,
    row.then]), 20));
}

function unmanagedSection() {
  if (data.unmanaged.length === 0) return;
  const node = section("unmanaged", "Not managed", "What stayed on the device or passed through, and why.");
  node.append(sortableTable([["What"], ["Count", 1], ["Bytes", 1]], data.unmanaged.map((row) => [row.what,
    { text: String(row.count), value: row.count }, { text: bytes(row.bytes), value: row.bytes }]), 50));
}
