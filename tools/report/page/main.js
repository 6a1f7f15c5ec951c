// Puts the page together from what the data has.
function header() {
  const words = data.program ? data.program.split(" ") : ["(unknown program)"];
  const short = words.map((word) => word.split("/").pop()).join(" ");
  const shown = short.length > 120 ? short.slice(0, 119) + "\u2026" : short;
  // "--steps" may not be cut behind its dashes.
  document.getElementById("program").append(...shown.split(" ").flatMap((word, index) => [index > 0 ? " " : "",
    word.length < 30 ? el("span", { class: "word" }, word) : word]));
  const facts = [];
  if (data.budget_words) facts.push(data.budget_words);
  if (data.policy) facts.push(`plan by policy ${data.policy}`);
  document.getElementById("subtitle").textContent = facts.join(" \u00b7 ");
  for (const card of data.cards) {
    document.getElementById("cards").append(el("div", { class: "card " + card.tone }, el("div", { class: "label" }, card.label),
      el("div", { class: "value" }, card.value), el("div", { class: "detail" }, card.detail)));
  }
}

function story() {
  if (data.sentences.length === 0) return;
  section("story", "What happened", "").append(el("ul", { class: "story" },
    data.sentences.map((one) => el("li", { class: one.tone }, one.text))));
}

function memorySections() {
  if (data.iteration_memory) {
    memoryChart(section("iteration-memory", "Memory during one iteration", data.iteration_memory.about), data.iteration_memory);
  }
  if (data.run_memory) memoryChart(section("run-memory", "Memory during the whole run", ""), data.run_memory);
}

theme();
header();
verdictSection();
adviceSection();
budgetSection();
timeWentSection();
story();
memorySections();
peakSection();
tensorTableSection();
timelineSection();
waitsSection();
tensorSection();
iterationSection();
totalsSection();
kernelSection();
siteSection();
divergenceSection();
unmanagedSection();
aboutSection();
keepFitting();
