// Who is alive at the peak: an icicle of call stacks, outermost frame at the top. A click makes a frame the whole width.
const icicleRow = 22;

// Frames that hold everything say nothing: the last of them is the first that is drawn.
function icicleRoot(node) {
  let at = node;
  while (at[3].length === 1 && at[3][0][1] === at[1] && at[3][0][3].length > 0) at = at[3][0];
  return at;
}

sections.peak = () => {
  if (!data.peak) return;
  const node = section("peak", "Who is alive at the peak", `${bytes(data.peak.bytes)} in ${data.peak.count} allocations, by the call stack that ` +
    "made them: a frame is as wide as what it holds. Click, or press Enter, to look into one.");
  const path = el("div", { class: "tools path" }), box = el("div", { class: "icicle", role: "tree", "aria-label": "Allocations alive at the peak by call stack" });
  node.append(path, box);
  const root = icicleRoot(data.peak.tree);
  const above = [];
  const show = (top) => {
    path.replaceChildren(...[...above, top].map((one, index) => el("button", { type: "button", onclick: () => { above.length = index; show(one); } },
      one === root ? "all" : shortFrame(one[0]).slice(0, 40))));
    const depth = (one) => 1 + Math.max(0, ...one[3].map(depth));
    box.style.height = Math.min(30, depth(top)) * icicleRow + "px";
    box.replaceChildren();
    let drawn = 0;
    const draw = (one, left, width, row, ancestors) => {
      if (width < 0.15 || row >= 30 || drawn++ > 3000) return;
      const text = `${one[0]}\n${bytes(one[1])} in ${one[2]} allocations, ${percent(one[1], data.peak.bytes, 1)} % of the peak`;
      const enter = () => { if (one !== top && one[3].length > 0) { above.push(top, ...ancestors); show(one); } };
      box.append(el("div", { class: "frame" + (one === top ? " top" : ""), role: "treeitem", tabindex: width > 1 ? 0 : -1, "aria-label": text.replace("\n", ": "),
        style: `left:${left}%;width:${width}%;top:${row * icicleRow}px`, onclick: enter,
        onkeydown: (event) => { if (event.key === "Enter") enter(); if (event.key === "Escape" && above.length > 0) show(above.pop()); },
        onpointermove: (event) => showTip(text, event.clientX, event.clientY), onpointerleave: hideTip }, width > 3 ? shortFrame(one[0]) : ""));
      let at = left;
      for (const child of one[3]) {
        const share = (width * child[1]) / Math.max(1, one[1]);
        draw(child, at, share, row + 1, one === top ? [] : [...ancestors, one]);
        at += share;
      }
    };
    draw(top, 0, 100, 0, []);
  };
  show(root);
};

// All tensors of the plan, to search: by size, by number, by any frame of the stack that allocated them.
sections.tensor_table = () => {
  const table = data.tensor_table;
  if (!table || table.rows.length === 0) return;
  const others = table.others > 0 ? ` ${table.others} more (${bytes(table.other_bytes)}) cost less than each of these and are in the exports.` : "";
  const left = table.left_bytes > 0 ? ` The run moved ${bytes(table.left_bytes)} less in each: copies out of what the host had already were left out.` : "";
  const node = section("tensor-table", "What each tensor costs", "Of an iteration: bytes that its copies move as planned, and how long computing waits for them." +
    left + others);
  const stack = (row) => row[7] > 0 ? table.stacks[row[7] - 1] : "";
  const frames = table.stacks.map((one) => one.split("\n"));
  const cells = (row) => {
    const own = row[7] > 0 ? ownFrames(frames[row[7] - 1]) : "";
    const where = row[7] > 0 && frames[row[7] - 1].length > 1
      ? () => el("details", {}, el("summary", {}, own), el("pre", {}, stack(row))) : null;
    return [{ text: "#" + row[0], value: row[0] }, { text: bytes(row[1]), value: row[1] }, row[2] ? "kept" : "transient", { text: String(row[3]), value: row[3] },
      { text: row[4] ? String(row[4]) : "\u2013", value: row[4] }, { text: row[5] ? bytes(row[5]) : "\u2013", value: row[5] },
      { text: row[6] ? duration(row[6]) : "\u2013", value: row[6] }, { lazy: where, text: own, value: own }];
  };
  const columns = [["Tensor", 1], ["Size", 1], ["Kind"], ["Uses", 1], ["Copies", 1], ["Moved, as planned", 1], ["Waited for", 1], ["Allocated in"]];
  searchableTable(node, columns, table.rows.map((row) => () => cells(row)),
    (index) => { const row = table.rows[index]; return `#${row[0]} ${bytes(row[1])} ${row[2] ? "kept" : "transient"} ${stack(row)}`.toLowerCase(); }, 25);
};
