// A table that can be sorted and searched, and whose rows stay the same elements while their
// numbers change: what a person has focused or is about to click does not go away.

import { h, setContent } from "../dom.js";
import { count } from "../format.js";

const ROWS_MAX = 1000;

// A column: {key, label, title, number, kind, short, value(row), show(row), zero(row), warn(row)}.
// `value` is what it is sorted by, and `short` its name on a small screen. `show` gives text, or
// {key, make}: make() gives nodes, and is called again only if the key has changed.
export class Table {
  constructor({ columns, id, onChoose = null, sort = null, caption, kind = "", tall = true }) {
    this.columns = columns;
    this.id = id;
    this.onChoose = onChoose;
    this.sort = sort;
    this.kept = new Map();
    this.rows = [];
    this.filter = () => true;
    this.chosen = null;
    this.heads = columns.map((column) => this.head(column));
    this.body = h("tbody");
    this.more = h("p", { class: "more", hidden: true });
    this.shown = h(
      "div",
      {},
      h(
        "div",
        { class: tall ? "scroll tall" : "scroll" },
        h(
          "table",
          { class: kind, "aria-label": caption },
          h("thead", {}, h("tr", {}, this.heads)),
          this.body,
        ),
      ),
      this.more,
    );
    this.markSort();
  }

  head(column) {
    const kind = column.number ? "n" : "";
    if (!column.value)
      return h(
        "th",
        { class: kind, scope: "col", title: column.title },
        h("span", {}, column.label),
      );
    const button = h("button", { type: "button", title: column.title }, column.label);
    button.addEventListener("click", () => this.sortBy(column));
    return h("th", { class: kind, scope: "col" }, button);
  }

  sortBy(column) {
    const first = column.number ? "descending" : "ascending";
    const other = column.number ? "ascending" : "descending";
    const now = this.sort && this.sort[0] === column.key ? this.sort[1] : null;
    this.sort = now === null ? [column.key, first] : now === first ? [column.key, other] : null;
    this.markSort();
    this.draw();
  }

  markSort() {
    this.columns.forEach((column, n) => {
      const is = this.sort && this.sort[0] === column.key;
      if (is) this.heads[n].setAttribute("aria-sort", this.sort[1]);
      else this.heads[n].removeAttribute("aria-sort");
    });
  }

  update(rows) {
    this.rows = rows;
    this.draw();
  }

  only(filter) {
    this.filter = filter;
    this.draw();
  }

  choose(id) {
    this.chosen = id;
    for (const [key, kept] of this.kept) mark(kept.row, key === id);
  }

  inOrder() {
    const found = this.rows.filter(this.filter);
    if (!this.sort) return found;
    const column = this.columns.find((each) => each.key === this.sort[0]);
    const sign = this.sort[1] === "ascending" ? 1 : -1;
    const order = (a, b) => {
      const [x, y] = [column.value(a), column.value(b)];
      if (x === y) return 0;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return typeof x === "string"
        ? sign * x.localeCompare(y, "en", { numeric: true })
        : sign * (x - y);
    };
    return found.sort(order);
  }

  draw() {
    const all = this.inOrder();
    const rows = all.slice(0, ROWS_MAX);
    const seen = new Set();
    let place = this.body.firstChild;
    for (const row of rows) {
      const id = this.id(row);
      seen.add(id);
      const shown = this.rowOf(id, row);
      if (shown === place) place = place.nextSibling;
      else this.body.insertBefore(shown, place);
    }
    for (const [id, kept] of [...this.kept]) {
      if (seen.has(id)) continue;
      kept.row.remove();
      this.kept.delete(id);
    }
    const left = all.length - rows.length;
    this.more.hidden = left === 0 && all.length > 0;
    this.more.textContent = all.length
      ? `${count(rows.length)} of ${count(all.length)} rows are shown. Search to see others.`
      : "Nothing matches.";
  }

  rowOf(id, data) {
    let kept = this.kept.get(id);
    if (!kept) {
      const cells = this.columns.map((column) =>
        h("td", {
          class: `${column.number ? "n " : ""}${column.kind || ""}`.trim(),
          "data-label": column.short,
        }),
      );
      const row = h("tr", { class: this.onChoose ? "row" : null }, cells);
      mark(row, id === this.chosen);
      if (this.onChoose) {
        row.addEventListener("click", (event) => {
          if (!event.target.closest("a") && !String(getSelection()))
            this.onChoose(this.kept.get(id).data);
        });
      }
      kept = { row, cells };
      this.kept.set(id, kept);
    }
    kept.data = data;
    this.columns.forEach((column, n) => {
      const cell = kept.cells[n];
      const found = column.show(data);
      if (typeof found === "object" && found !== null) setContent(cell, found.key, found.make);
      else setContent(cell, `=${found ?? ""}`, () => String(found ?? ""));
      if (column.zero) cell.classList.toggle("zero", Boolean(column.zero(data)));
      if (column.warn) cell.classList.toggle("warn", Boolean(column.warn(data)));
      if (column.short) cell.classList.toggle("none", found === "" || found === null);
    });
    return kept.row;
  }
}

function mark(row, isChosen) {
  row.classList.toggle("chosen", isChosen);
  if (isChosen) row.setAttribute("aria-current", "true");
  else row.removeAttribute("aria-current");
}

// A box to search in, which "/" goes to.
export function searchBox(label, onInput) {
  const box = h("input", {
    type: "search",
    placeholder: label,
    "aria-label": label,
    "data-shortcut": "/",
  });
  box.addEventListener("input", () => onInput(box.value.trim().toLowerCase()));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && box.value) {
      event.stopPropagation();
      box.value = "";
      onInput("");
    }
  });
  return box;
}

// Buttons of which one is pressed. `update` takes [[value, label, count]].
export function chips(label, onChange) {
  let chosen = "";
  const shown = h("div", { class: "chips", role: "group", "aria-label": label });
  let last = [];
  const update = (choices) => {
    last = choices;
    setContent(shown, JSON.stringify([choices, chosen]), () =>
      choices.map(([value, text, n]) =>
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(value === chosen),
            onclick: () => {
              chosen = value === chosen ? "" : value;
              update(last);
              onChange(chosen);
            },
          },
          text,
          n === undefined ? null : h("b", {}, count(n)),
        ),
      ),
    );
  };
  return { shown, update };
}
