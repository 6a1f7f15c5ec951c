// What the plan and the run come to in numbers, and what did not go as planned.
sections.totals = () => {
  if (!data.totals) return;
  const node = section("totals", "One iteration in numbers", "");
  node.append(sortableTable([["What"], ["Predicted", 1], ["Measured", 1], ["Note"]],
    data.totals.map((row) => [row.label, row.predicted || "\u2013", row.measured || "\u2013", row.note]), 50));
};

sections.kernels = () => {
  if (data.kernels.length === 0) return;
  const node = section("kernels", "Work by time", "Everything the program runs on the device in one iteration, or in the whole " +
    "recording where there is no plan.");
  const most = Math.max(...data.kernels.map((row) => row.share), 1e-9);
  node.append(sortableTable([["Share"], ["Total", 1], ["Calls", 1], ["Mean", 1], ["Name"]], data.kernels.map((row) => {
    const share = el("span", { class: "share", style: `width:${((90 * row.share) / most).toFixed(1)}px` });
    return [{ node: el("span", {}, share, percent(row.share, 1, 1) + " %"), value: row.share },
      { text: duration(row.total_ns), value: row.total_ns }, { text: String(row.calls), value: row.calls },
      { text: duration(row.total_ns / row.calls), value: row.total_ns / row.calls }, row.name];
  }), 20));
};

sections.sites = () => {
  if (data.sites.length === 0) return;
  const node = section("sites", "Where memory is allocated", "Call sites by the most that their allocations held at one time.");
  node.append(sortableTable([["Held at most", 1], ["Allocations", 1], ["Largest", 1], ["Call site"]], data.sites.map((row) => {
    const frames = row.stack.split("\n").filter((frame) => frame);
    const rest = frames.length > 1 ? el("details", {}, el("summary", {}, ownFrames(frames)), el("pre", {}, frames.join("\n")))
      : frames[0] || "";
    return [{ text: bytes(row.peak), value: row.peak }, { text: String(row.count), value: row.count },
      { text: bytes(row.largest), value: row.largest }, { node: rest, value: row.stack }];
  }), 15));
};

sections.divergences = () => {
  if (data.divergences.length === 0) return;
  const node = section("divergences", "Divergences", "Where the program did something else than in the recorded iteration. " +
    "From there on it ran on demand until the plan matched again.");
  node.append(sortableTable([["Iteration", 1], ["Times", 1], ["Call", 1], ["Expected"], ["Got"], ["Then"]], data.divergences.map((row) => [
    { text: row.count > 1 ? `${row.iteration} to ${row.last}` : String(row.iteration), value: row.iteration }, { text: String(row.count), value: row.count },
    { text: String(row.call), value: row.call }, row.expected, row.got, row.then]), 20));
};

sections.unmanaged = () => {
  if (data.unmanaged.length === 0) return;
  const node = section("unmanaged", "Not managed", "What stayed on the device or passed through, and why.");
  node.append(sortableTable([["What"], ["Count", 1], ["Bytes", 1]], data.unmanaged.map((row) => [row.what,
    { text: String(row.count), value: row.count }, { text: bytes(row.bytes), value: row.bytes }]), 50));
};
