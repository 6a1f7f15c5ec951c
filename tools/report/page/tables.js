// Tables that sort by a click on a column, and the sections made of them.

// columns: [title, numeric?]; rows: lists of cells, or functions that make them when they are needed; cells: text, {text, value},
// {node, value}, or {lazy, value} with a function that makes the node.
function sortableTable(columns, rows, most) {
  const body = el("tbody", {});
  const made = rows.slice();
  const rowAt = (index) => (typeof made[index] === "function" ? (made[index] = made[index]()) : made[index]);
  let order = rows.map((_, index) => index);
  const limit = { now: most };
  const cellOf = (cell, numeric) => el("td", { class: numeric ? "number" : "name" },
    cell.node || (cell.lazy ? cell.lazy() : cell.text !== undefined ? cell.text : cell));
  const refill = () => {
    body.replaceChildren(...order.slice(0, limit.now).map((index) => el("tr", { "data-index": index },
      rowAt(index).map((cell, column) => cellOf(cell, columns[column][1])))));
    if (more) more.hidden = order.length <= limit.now;
    if (more) more.textContent = `Show all ${order.length}`;
  };
  const key = (cell) => (cell.value !== undefined ? cell.value : String(cell.text !== undefined ? cell.text : cell));
  const heads = columns.map(([title, numeric], column) => {
    const head = el("th", { class: numeric ? "number" : null, scope: "col" }, el("button", { type: "button" }, title));
    head.firstChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : Boolean(numeric);
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      order.sort((a, b) => {
        const left = key(rowAt(a)[column]), right = key(rowAt(b)[column]);
        return (left < right ? -1 : left > right ? 1 : 0) * (down ? -1 : 1);
      });
      refill();
    });
    return head;
  });
  const more = rows.length > most ? el("button", { type: "button", onclick: () => { limit.now = Math.min(order.length, 2000); refill(); } }) : null;
  refill();
  const label = "Table: " + columns.map(([title]) => title).join(", ");
  const holder = el("div", {}, el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, heads)), body)), more ? el("div", { class: "tools" }, more) : null);
  holder.keep = (wanted) => {
    order = rows.map((_, index) => index).filter(wanted);
    limit.now = most;
    for (const head of heads) head.removeAttribute("aria-sort");
    refill();
    return order.length;
  };
  return holder;
}

// The same with a search above it; textOf: what is searched of a row, in lower case.
function searchableTable(parent, columns, rows, textOf, most) {
  const table = sortableTable(columns, rows, most);
  const found = el("span", { class: "quiet", role: "status" }, `${rows.length} rows`);
  const search = el("input", { type: "search", placeholder: "Search: a size, a number, a function, a file", "aria-label": "Search the table" });
  let texts = null;
  search.addEventListener("input", () => {
    texts = texts || rows.map((_, index) => textOf(index));
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
    const count = table.keep((index) => words.every((word) => texts[index].includes(word)));
    found.textContent = words.length > 0 ? `${count} of ${rows.length} rows` : `${rows.length} rows`;
  });
  parent.append(el("div", { class: "tools" }, search, found), table);
}
