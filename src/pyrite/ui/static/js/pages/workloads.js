// All workloads that the server knows.

import { get } from "../api.js";
import { h } from "../dom.js";
import { count, moment, seconds } from "../format.js";
import { badge, empty, outcome, shares } from "../parts/pieces.js";
import { Table } from "../parts/table.js";

const EVERY = 3000;
const FIRST = `pyrite workload run my_workload.py --ui

# or the store of a run that is there already
pyrite ui --workload path/to/store`;

export async function workloads(main) {
  document.title = "Workloads · Pyrite";
  let found = (await get("/api/workloads")).workloads;
  const table = new Table({
    columns: columns(),
    id: (row) => row.key,
    caption: "Workloads",
    kind: "cards",
    tall: false,
    onChoose: (row) => document.querySelector(`a[href="${CSS.escape(href(row))}"]`)?.click(),
  });
  const list = h("section", { class: "card", "aria-label": "Workloads" }, table.shown);
  const nothing = h(
    "section",
    { class: "card" },
    empty("No workloads yet", "A workload is a DAG of jobs on workers.", FIRST),
  );
  const draw = () => {
    list.hidden = found.length === 0;
    nothing.hidden = found.length > 0;
    table.update(found);
  };
  main.replaceChildren(
    h("div", { class: "title" }, h("div", { class: "words" }, h("h1", {}, "Workloads"))),
    list,
    nothing,
  );
  draw();
  const timer = setInterval(async () => {
    if (document.hidden) return;
    found = (await get("/api/workloads").catch(() => ({ workloads: found }))).workloads;
    draw();
  }, EVERY);
  return () => clearInterval(timer);
}

const href = (row) => `/workloads/${encodeURIComponent(row.key)}`;
const jobs = (row) => Object.values(row.counts || {}).reduce((sum, n) => sum + n, 0);

function columns() {
  return [
    {
      key: "label",
      label: "Workload",
      kind: "wrap wide",
      value: (row) => row.label.toLowerCase(),
      show: (row) => ({
        key: `${row.label}|${row.problem}`,
        make: () => [
          h("a", { class: "main", href: href(row) }, row.label),
          h("span", { class: row.problem ? "sub bad" : "sub" }, row.problem || row.store),
        ],
      }),
    },
    {
      key: "phase",
      label: "State",
      value: outcome,
      show: (row) => ({ key: outcome(row), make: () => badge(outcome(row)) }),
    },
    {
      key: "started",
      label: "Started",
      number: true,
      short: "started",
      value: (row) => row.started,
      show: (row) => moment(row.started),
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
      key: "jobs",
      label: "Jobs",
      number: true,
      short: "jobs",
      value: jobs,
      show: (row) => count(jobs(row)),
    },
    {
      key: "counts",
      label: "States of the jobs",
      kind: "wide",
      show: (row) => ({
        key: JSON.stringify(row.counts),
        make: () => {
          const { shown, update } = shares();
          update(row.counts || {}, "job");
          return h("div", { class: "in-cell" }, shown[0]);
        },
      }),
    },
  ];
}
