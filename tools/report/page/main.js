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

theme();
header();
// In the order of the data, which is that of tools/report/sections.def.
for (const name of Object.keys(data)) if (sections[name]) sections[name]();
keepFitting();
