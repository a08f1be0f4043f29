"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  // Elements are built from text, never from HTML: ids and names may hold anything.
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  // The browser's own tooltips need no script; these come at once, and on touch.
  for (const title of document.querySelectorAll("svg title")) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  const tip = byId("tip");
  const hideTip = () => { tip.hidden = true; };
  const showTip = (event) => {
    const over = event.target instanceof Element && event.target.closest("[data-tip]");
    if (!over) return hideTip();
    tip.textContent = over.dataset.tip;
    tip.hidden = false;
    const gap = 14;
    const left = Math.min(event.clientX + gap, innerWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - gap;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + gap}px`;
  };
  document.addEventListener("pointermove", showTip);
  document.addEventListener("pointerdown", showTip);
  document.addEventListener("scroll", hideTip, { passive: true });

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = "sort" in cell.dataset ? cell.dataset.sort : cell.textContent;
    const number = Number(text);
    return text.trim() !== "" && !Number.isNaN(number) ? number : text;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b);
  };
  const sortBy = (table, heading) => {
    const column = heading.cellIndex;
    const numeric = heading.classList.contains("number");
    const before = heading.getAttribute("aria-sort");
    // Numbers begin with the largest, text with the first.
    const up = before ? before === "descending" : !numeric;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
    rows.sort((x, y) => {
      if (x[0] === "" || y[0] === "") return (x[0] === "") - (y[0] === "");
      return up ? compare(x[0], y[0]) : compare(y[0], x[0]);
    });
    body.append(...rows.map((pair) => pair[1]));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    table.tHead.addEventListener("click", (event) => {
      if (event.target.closest("button")) sortBy(table, event.target.closest("th"));
    });
  }

  for (const input of document.querySelectorAll("input[data-table]")) {
    const lines = [...byId(input.dataset.table).tBodies[0].rows];
    const said = input.parentElement.querySelector("output");
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of lines) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      said.textContent = wanted ? `${shown} of ${lines.length}` : "";
    });
  }

  const cards = byId("component-cards");
  const orders = document.querySelectorAll("[data-order]");
  for (const button of orders) {
    button.addEventListener("click", () => {
      cards.classList.toggle("by-largest", button.dataset.order === "largest");
      for (const other of orders) other.setAttribute("aria-pressed", String(other === button));
    });
  }

  const people = JSON.parse(byId("people").textContent);
  const portrait = byId("portrait");
  const words = JSON.parse(portrait.dataset.words);
  const columns = JSON.parse(portrait.dataset.columns);
  const hasValues = columns.length > 2;
  const table = byId("users-table");
  const rows = [...table.tBodies[0].rows];
  const texts = people.users.map(([id, , , history, advice]) =>
    [id, ...[...history, ...advice].map((entry) => people.items[entry[0]])].join("\n").toLowerCase());

  const search = byId("search");
  const found = byId("found");
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !texts[row.dataset.row].includes(wanted);
      shown += !row.hidden;
    }
    const none = shown || !found.dataset.none ? "" : `. ${found.dataset.none}`;
    found.textContent = wanted ? `${shown} of ${rows.length} ${words.users}${none}` : "";
  };
  search.addEventListener("input", filter);

  const tableOf = (header, lines) => {
    const kind = (j) => (j > 0 ? { class: "number" } : {});
    const head = make("tr", {}, ...header.map((name, j) => make("th", { scope: "col", ...kind(j) }, name)));
    const body = lines.map((line) => make("tr", {}, ...line.map((cell, j) => make("td", kind(j), cell))));
    const whole = make("table", { class: "tight" }, make("thead", {}, head), make("tbody", {}, ...body));
    return make("div", { class: "scroll" }, whole);
  };
  const both = (text, below) => {
    const all = document.createDocumentFragment();
    all.append(text, ...(below ? [make("small", {}, below)] : []));
    return all;
  };
  const because = (entries, list) => {
    const count = `${entries.toLocaleString("en")} ${entries === 1 ? words.one_user : words.users}`;
    const reasons = list.map(([item, share]) => `${people.items[item]} (${share})`).join(", ");
    return reasons ? `${count}; because of ${reasons}` : count;
  };
  const show = (place, behavior = "auto") => {
    const [id, count, total, history, advice] = people.users[place];
    portrait.replaceChildren(
      make("header", {}, make("h3", {}, `${words.user} ${id}`), make("p", {}, `${count.toLocaleString("en")} ${count === 1 ? words.item : words.items}${hasValues ? `, ${words.currency}${total} in total` : ""}`)),
      make("div", {}, make("h4", {}, hasValues ? `Has (largest ${words.values})` : "Has"),
        tableOf([columns[0], words.heading].slice(0, columns.length - 1), history.map(([item, value]) => [people.items[item], ...(hasValues ? [value] : [])]))),
      make("div", {}, make("h4", {}, "Is recommended"),
        tableOf(columns, advice.map(([item, chance, value, range, entries, why]) =>
          [both(people.items[item], because(entries, why)), chance, ...(hasValues ? [both(value, range)] : [])]))),
    );
    portrait.hidden = false;
    for (const row of rows) row.setAttribute("aria-selected", String(Number(row.dataset.row) === place));
    portrait.scrollIntoView({ block: "nearest", behavior });
  };
  table.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row) show(Number(row.dataset.row));
  });

  // A link such as report.html#user=17850 opens at that user.
  const follow = () => {
    const match = /^#(user|search)=(.*)$/.exec(location.hash);
    if (!match) return;
    const wanted = decodeURIComponent(match[2]);
    if (match[1] === "search") {
      search.value = wanted;
      filter();
      return;
    }
    const place = people.users.findIndex((user) => user[0] === wanted);
    if (place >= 0) show(place, "instant");
  };
  addEventListener("hashchange", follow);
  follow();
})();
