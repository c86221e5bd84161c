// All runs, the newest first.

import { get, listen } from "../api.js";
import { h } from "../dom.js";
import { count, moment, rate, seconds, short } from "../format.js";
import { badge, empty } from "../parts/pieces.js";
import { Table, chips, searchBox } from "../parts/table.js";

const STATES = ["running", "starting", "completed", "failed", "cancelled", "lost"];
const FIRST = `# any of these makes runs appear here
pyrite run my_module:my_dag
pyrite workload run my_workload.py --ui

# in Python
pyr = pyrite.instance(ui=True)`;

export async function runs(main) {
  document.title = "Runs · Pyrite";
  const wanted = { search: "", state: "" };
  let last = await get("/api/runs?limit=1000");
  const table = new Table({
    columns: columns(),
    id: (row) => row.id,
    caption: "Runs",
    kind: "cards",
    tall: false,
    onChoose: (row) => document.querySelector(`a[href="${CSS.escape(href(row))}"]`)?.click(),
  });
  const states = chips("State", (state) => {
    wanted.state = state;
    filter();
  });
  const search = searchBox("Search by name, id, host or error", (text) => {
    wanted.search = text;
    filter();
    if (last.total > last.runs.length) askServer();
  });
  const list = h("section", { class: "card", "aria-label": "Runs" }, table.shown);
  const nothing = h(
    "section",
    { class: "card" },
    empty("No runs yet", "Runs appear here as soon as a job starts.", FIRST),
  );
  const left = h("p", { class: "note" });

  let timer = null;
  let asked = null;
  function askServer() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const { search: text } = wanted;
      const found = text
        ? await get(`/api/runs?limit=1000&search=${encodeURIComponent(text)}`).catch(() => asked)
        : null;
      if (text !== wanted.search) return;
      asked = found;
      draw();
    }, 250);
  }

  function filter() {
    const { search: text, state } = wanted;
    table.only((row) => (!state || row.state === state) && (!text || words(row).includes(text)));
  }

  function draw() {
    const shown = asked || last;
    const counts = {};
    for (const row of shown.runs) counts[row.state] = (counts[row.state] || 0) + 1;
    states.update(
      STATES.filter((state) => counts[state]).map((state) => [state, state, counts[state]]),
    );
    list.hidden = last.runs.length === 0;
    nothing.hidden = last.runs.length > 0;
    left.textContent =
      last.total > last.runs.length
        ? `The newest ${count(last.runs.length)} of ${count(last.total)}. Search finds older ones.`
        : "";
    table.update(shown.runs);
  }

  main.replaceChildren(
    h("div", { class: "title" }, h("div", { class: "words" }, h("h1", {}, "Runs"), left)),
    h("div", { class: "filters" }, search, states.shown),
    list,
    nothing,
  );
  filter();
  draw();
  const stop = listen("/api/events?limit=1000", {
    runs(found) {
      last = found;
      draw();
      if (asked) askServer(); // what the search has found moves, too
    },
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

const href = (row) => `/runs/${encodeURIComponent(row.id)}`;

const words = (row) => [row.name, row.id, row.host, row.kind, row.failure].join(" ").toLowerCase();

function columns() {
  return [
    {
      key: "name",
      label: "Run",
      kind: "wrap wide",
      value: (row) => row.name.toLowerCase(),
      show: (row) => ({
        key: `${row.name}|${row.failure}`,
        make: () => [
          h("a", { class: "main", href: href(row) }, row.name),
          row.failure
            ? h(
                "span",
                { class: "sub bad" },
                row.failure.length > 220 ? `${row.failure.slice(0, 220)} …` : row.failure,
              )
            : null,
        ],
      }),
    },
    {
      key: "state",
      label: "State",
      value: (row) => STATES.indexOf(row.state),
      show: (row) => ({ key: row.state, make: () => badge(row.state) }),
    },
    { key: "kind", label: "Kind", kind: "kind", value: (row) => row.kind, show: (row) => row.kind },
    {
      key: "submitted",
      label: "Started",
      number: true,
      short: "started",
      value: (row) => row.submitted,
      show: (row) => moment(row.submitted),
    },
    {
      key: "seconds",
      label: "Duration",
      number: true,
      short: "took",
      value: (row) => row.seconds,
      show: (row) => seconds(row.seconds),
    },
    {
      key: "in",
      label: "Items in",
      title: "The items that the sources have emitted",
      number: true,
      short: "in",
      value: (row) => row.items_in,
      show: (row) => short(row.items_in || 0),
      zero: (row) => !row.items_in,
    },
    {
      key: "out",
      label: "Items out",
      title: "The items that the sinks have received",
      number: true,
      short: "out",
      value: (row) => row.items_out,
      show: (row) => short(row.items_out || 0),
      zero: (row) => !row.items_out,
    },
    {
      key: "rate",
      label: "Rate in",
      number: true,
      short: "at",
      value: (row) => row.rate_in,
      show: (row) => (row.rate_in && row.state === "running" ? rate(row.rate_in) : ""),
    },
    {
      key: "where",
      label: "Process",
      value: (row) => row.host,
      show: (row) => [row.host, row.pid].filter(Boolean).join(" · "),
      kind: "where",
    },
  ];
}
