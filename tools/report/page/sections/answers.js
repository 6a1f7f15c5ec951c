// The answers at the top: how it went, what to change, what other budgets would cost, where the time went.
sections.verdict = () => {
  const verdict = data.verdict;
  document.getElementById("verdict").append(el("p", { class: "verdict " + verdict.tone }, verdict.text));
};

sections.advice = () => {
  if (data.advice.length === 0) return;
  const node = section("advice", "What to change", "What would help most comes first.");
  node.append(el("ol", { class: "advice" }, data.advice.map((one) => el("li", {}, el("strong", {}, one.title), el("p", {}, one.detail),
    one.command ? el("code", {}, one.command) : null))));
};

sections.budget_curve = () => {
  const curve = data.budget_curve;
  if (!curve) return;
  const alone = curve.covers ? `Of this one iteration, which covers ${curve.covers}: what else the program does may need more. ` : "";
  const node = section("budgets", "What other budgets would cost", `${alone}Time of an iteration, predicted ${curve.times}, as ` +
    `policy ${curve.policy} would plan it: the plan that is chosen can be a little faster. ` +
    `${curve.own ? `From ${bytes(curve.own)} on the plan of this page counts, too. ` : ""}With ${bytes(curve.peak)}, which is 100 %, nothing has to move.`);
  const rows = new Map(curve.points.map(([budget, time]) => [budget, [time, null]]));
  const series = [{ name: "Planned", css: "compute", points: true }];
  const entries = [["Planned", "compute", "stroke"]];
  if (curve.here > 0 && curve.here_ns > 0) {
    const name = curve.here_measured ? `You are here (measured${curve.here_link ? `, on ${curve.here_link}` : ""})` : "You are here (predicted)";
    rows.set(curve.here, [rows.has(curve.here) ? rows.get(curve.here)[0] : null, curve.here_ns]);
    series.push({ name, css: "to-host", points: true });
    entries.push([name, "to-host"]);
  }
  const levels = [{ value: curve.compute_ns, css: "before" }];
  if (curve.here > 0) levels.push({ x: curve.here, value: 0, css: "wait" });
  entries.push([`Computing alone (${duration(curve.compute_ns)}, ${curve.times})`, "before", "dash"]);
  if (curve.here > 0) entries.push([`${curve.here_name} (${bytes(curve.here)})`, "wait", "dash"]);
  node.append(legend(entries));
  const moved = new Map(curve.points.map(([budget, , bytesMoved]) => [budget, bytesMoved]));
  lineChart(node, { label: `Time of an iteration over budgets from ${bytes(curve.minimum)} to ${bytes(curve.peak)}`,
    labels: ["budget", ...series.map((one) => one.name)], rows: [...rows].sort((a, b) => a[0] - b[0]).map(([budget, values]) => [budget, ...values.slice(0, series.length)]),
    series, levels, connect: true, format: duration, tick: timeLabel, xFormat: bytes, xTick: (value) => bytes(value), xMemory: true, height: 260,
    extra: (budget) => moved.has(budget) ? [`${bytes(moved.get(budget))} moved`] : [] });
  node.append(el("details", {}, el("summary", {}, "As a table"), sortableTable([["Budget", 1], ["Of the peak", 1], ["Time", 1], ["Over computing alone", 1], ["Moved", 1]],
    curve.points.map(([budget, time, bytesMoved, percent]) => [{ text: bytes(budget), value: budget }, { text: percent, value: budget },
      { text: duration(time), value: time }, { text: decimal(time, curve.compute_ns, 2) + " x", value: time }, { text: bytes(bytesMoved), value: bytesMoved }]), 30)));
};

sections.time_went = () => {
  if (data.time_went.length === 0) return;
  const node = section("time-went", "Where the time went", "");
  for (const bar of data.time_went) {
    const parts = bar.parts.filter((part) => part.ns > 0);
    const sum = Math.max(1, parts.reduce((all, part) => all + part.ns, 0));
    node.append(el("h3", {}, `${bar.name}, ${duration(bar.ns)}`),
      el("div", { class: "stack", role: "img", "aria-label": parts.map((part) => `${part.what}: ${duration(part.ns)}`).join("; ") },
        parts.map((part) => el("span", { style: `width:${(100 * part.ns) / sum}%;background:var(--${part.style})`, title: `${part.what}: ${duration(part.ns)}` }))),
      legend(parts.map((part) => [`${part.what}: ${duration(part.ns)} (${percent(part.ns, sum, 1)} %)`, part.style])));
  }
};

sections.sentences = () => {
  if (data.sentences.length === 0) return;
  section("story", "What happened", "").append(el("ul", { class: "story" },
    data.sentences.map((one) => el("li", { class: one.tone }, one.text))));
};

sections.about = () => {
  const about = data.about, node = document.getElementById("about");
  const facts = [["Reprise", about.version], ["Report of", about.date], ["Device", about.device], ["Driver", about.driver]].filter(([, value]) => value);
  for (const [name, value] of facts) node.append(el("dt", {}, name), el("dd", {}, value));
  for (const file of about.files) node.append(el("dt", {}, file.kind), el("dd", {}, `${file.name}, ${bytes(file.bytes)}, hash ${file.hash}`));
  node.append(el("dt", {}, "Something wrong?"), el("dd", {}, "Please report it to whoever you have Reprise from, with this page, the output of ", el("code", {}, "reprise doctor --json"),
    " and, if you may share it, the trace."));
};
