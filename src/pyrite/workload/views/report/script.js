// Sorts and filters the table of the jobs. The page is complete without it.
"use strict";
(() => {
  const table = document.querySelector("#jobs table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const filters = document.querySelector(".filters");
  const search = filters.querySelector("input");
  const matches = document.getElementById("matches");
  const states = new Set();
  filters.hidden = false;

  function filter() {
    const text = search.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const isShown = (!states.size || states.has(row.dataset.state)) &&
        (!text || row.textContent.toLowerCase().includes(text));
      row.hidden = !isShown;
      shown += isShown;
    }
    matches.textContent = shown < rows.length ? `${shown} of ${rows.length}` : "";
  }

  const value = (row, n) => {
    const cell = row.cells[n];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number"
    ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });

  search.addEventListener("input", filter);
  for (const button of filters.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const isOn = !states.delete(button.dataset.state);
      if (isOn) states.add(button.dataset.state);
      button.setAttribute("aria-pressed", String(isOn));
      filter();
    });
  }
  table.querySelectorAll("th").forEach((head, n) => {
    head.firstElementChild.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      body.append(...[...rows].sort((a, b) => direction * compare(value(a, n), value(b, n))));
    });
  });
  function reveal() {
    const found = location.hash.startsWith("#failure-") && document.querySelector(location.hash);
    if (found) found.open = true;
  }
  window.addEventListener("hashchange", reveal);
  reveal();
})();
