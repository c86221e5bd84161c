// One workload: its graph, what ran when on which worker, its jobs with their logs.

import { get, listen } from "../api.js";
import { h, setContent } from "../dom.js";
import { count, moment, plural, seconds } from "../format.js";
import { cancelButton } from "../parts/cancel.js";
import { Graph } from "../parts/graph.js";
import { STATES, jobColumns } from "../parts/job_columns.js";
import { JobLog, jobDetail } from "../parts/job_panel.js";
import { laneChart } from "../parts/lanes.js";
import { announce } from "../parts/news.js";
import { groupDetail, panelHead } from "../parts/panel.js";
import { badge, card, figures, outcome, setBadge, shares } from "../parts/pieces.js";
import { Table, chips, searchBox } from "../parts/table.js";

const BARS_MAX = 3000;
const LANES_MAX = 60;

export async function workload(main, [key], about) {
  const path = `/api/workloads/${encodeURIComponent(key)}`;
  const page = new WorkloadPage(path, await get(path), about.read_only);
  main.replaceChildren(...page.shown.flat());
  await page.start();
  return () => page.stop();
}

const isOver = (doc) => !["starting", "running"].includes(doc.phase);

class WorkloadPage {
  constructor(path, doc, isReadOnly) {
    this.path = path;
    this.isReadOnly = isReadOnly;
    this.doc = doc;
    this.name = doc.label || doc.store.split("/").pop();
    this.chosen = null;
    this.stops = [];
    this.graph = new Graph({
      path: `${path}/graph.svg`,
      label: "The jobs",
      onChoose: (name) => this.choose(name),
    });
    this.graph.repaint = () => this.paint();
    this.badge = badge(outcome(doc), { pill: true });
    this.figures = figures([
      ["seconds", "Duration"],
      ["critical", "Critical path"],
      ["started", "Started", "plain"],
      ["ended", "Ended", "plain"],
      ["store", "Store", "plain"],
    ]);
    this.actions = h("div", { class: "actions" });
    this.trouble = h("div");
    this.shares = shares();
    this.panel = h("aside", { class: "card panel", "aria-label": "Details" });
    this.log = new JobLog(path);
    this.time = card("Time", {}, h("div"));
    this.wanted = { search: "", state: "" };
    this.table = new Table({
      columns: jobColumns(),
      id: (row) => row.job,
      caption: "Jobs",
      kind: "cards",
      sort: ["state", "ascending"],
      onChoose: (row) => this.choose(row.job, { show: true }),
    });
    this.states = chips("State", (state) => {
      this.wanted.state = state;
      this.filter();
    });
    const search = searchBox("Find a job or an error", (text) => {
      this.wanted.search = text;
      this.filter();
    });
    this.graphCard = card("Graph", { end: this.graph.tools, body: false }, this.graph.view);
    this.shown = [
      h(
        "div",
        { class: "title" },
        h(
          "div",
          { class: "words" },
          h("p", { class: "crumbs" }, h("a", { href: "/workloads" }, "Workloads")),
          h("h1", {}, this.name, this.badge),
        ),
        this.actions,
      ),
      this.figures.shown,
      this.shares.shown,
      this.trouble,
      h("div", { class: "columns" }, this.graphCard, this.panel),
      this.time,
      card("Jobs", { end: [search, this.states.shown], body: false }, this.table.shown),
    ];
    this.keys = (event) => {
      if (event.key === "Escape" && this.chosen !== null && !document.querySelector("dialog[open]"))
        this.choose(null);
    };
  }

  async start() {
    document.addEventListener("keydown", this.keys);
    this.update(this.doc);
    await this.loadGraph();
    this.stops.push(
      listen(`${this.path}/events`, {
        workload: (doc) => doc.jobs && this.update(doc),
      }),
    );
  }

  async loadGraph() {
    this.drawn = this.doc.jobs.length;
    await this.graph
      .load()
      .catch((error) =>
        this.graph.view.replaceChildren(h("p", { class: "loading" }, error.message)),
      );
  }

  stop() {
    document.removeEventListener("keydown", this.keys);
    this.stops.forEach((stop) => stop());
    this.graph.stop();
  }

  filter() {
    const { search, state } = this.wanted;
    this.table.only(
      (row) =>
        (!state || row.state === state) &&
        (!search ||
          `${row.job} ${row.error || ""} ${row.worker || ""}`.toLowerCase().includes(search)),
    );
  }

  update(doc) {
    if (outcome(doc) !== outcome(this.doc)) announce(`${this.name}: ${outcome(doc)}`);
    this.doc = doc;
    this.byName = new Map(doc.jobs.map((job) => [job.job, job]));
    this.above = new Map();
    this.below = new Map();
    for (const [from, to] of doc.edges || []) {
      push(this.above, to, from);
      push(this.below, from, to);
    }
    setBadge(this.badge, outcome(doc));
    document.title = `${this.name} (${outcome(doc)}) · Pyrite`;
    const { set, hide } = this.figures;
    set("seconds", seconds(doc.seconds));
    set("critical", seconds(doc.critical_path_seconds));
    hide("critical", !doc.critical_path_seconds);
    set("started", moment(doc.started));
    set("ended", doc.ended ? moment(doc.ended) : "");
    hide("ended", !doc.ended);
    set("store", doc.store);
    const counts = {};
    for (const state of STATES) if (doc.counts[state]) counts[state] = doc.counts[state];
    this.shares.update(counts, "job");
    this.states.update(Object.entries(counts).map(([state, n]) => [state, state.toLowerCase(), n]));
    setContent(this.actions, String(doc.can_cancel), () => [
      doc.can_cancel && !this.isReadOnly
        ? cancelButton({
            what: "workload",
            name: this.name,
            path: `${this.path}/cancel`,
            consequence:
              "The jobs that run now are stopped, and no others start. Results that are there " +
              "stay, and the run can be resumed.",
          })
        : null,
    ]);
    setContent(this.trouble, JSON.stringify(doc.problem), () => [
      doc.problem ? h("p", { class: "card waits" }, doc.problem) : null,
    ]);
    this.table.update(doc.jobs);
    this.drawTime();
    this.drawPanel();
    this.paint();
    if (this.drawn !== undefined && this.drawn !== doc.jobs.length) this.loadGraph();
  }

  choose(name, { show = false } = {}) {
    if (name === null && this.panel.contains(document.activeElement)) this.graph.focus(this.chosen);
    this.chosen = name;
    this.graph.choose(name);
    if (show && name !== null) this.graph.show(name);
    this.table.choose(name);
    this.drawPanel();
    for (const bar of this.time.querySelectorAll(".lane button"))
      bar.classList.toggle("chosen", bar.dataset.job === name);
    if (name !== null && innerWidth <= 1000)
      this.panel.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  drawPanel() {
    const { chosen } = this;
    const job = this.byName.get(chosen);
    const members = this.graph.vertices.get(chosen)?.members;
    if (job) {
      setContent(this.panel, JSON.stringify(job), () => [
        panelHead(job.job, job.state, () => this.choose(null)),
        h(
          "div",
          { class: "body" },
          jobDetail(job, {
            above: this.above.get(chosen) || [],
            below: this.below.get(chosen) || [],
            onChoose: (name) => this.choose(name, { show: true }),
          }),
          this.log.shown,
        ),
      ]);
      this.log.load(chosen);
    } else if (members) {
      setContent(
        this.panel,
        JSON.stringify([chosen, members.map((name) => this.byName.get(name)?.state)]),
        () => [
          panelHead(chosen, null, () => this.choose(null)),
          h(
            "div",
            { class: "body" },
            groupDetail({
              names: members,
              many: plural(members.length, "job"),
              stateOf: (name) => this.byName.get(name)?.state || "WAITING",
              onChoose: (name) => this.choose(name, { show: true }),
              onUnfold: () => this.graph.open(chosen),
            }),
          ),
        ],
      );
    } else {
      const notable = this.doc.jobs
        .filter((each) => ["RUNNING", "FAILED", "CRASHED", "TIMEOUT"].includes(each.state))
        .slice(0, 12);
      setContent(
        this.panel,
        JSON.stringify(notable.map((each) => [each.job, each.state, each.error])),
        () => [
          h(
            "div",
            { class: "head" },
            h("h2", {}, notable.length ? "Running and failed" : "Details"),
          ),
          h(
            "div",
            { class: "body" },
            h("p", { class: "note" }, "Choose a job to see its output, and why it runs."),
            notable.map((each) => this.notableRow(each)),
          ),
        ],
      );
    }
  }

  notableRow(job) {
    return h(
      "div",
      { class: "notable" },
      h(
        "button",
        {
          type: "button",
          class: "quiet-button",
          onclick: () => this.choose(job.job, { show: true }),
        },
        badge(job.state),
        job.job,
      ),
      job.error ? h("p", { class: "note bad-text" }, job.error) : null,
    );
  }

  paint() {
    if (!this.graph.svg) return;
    this.graph.paint(
      (name) => this.byName.get(name)?.state,
      (names) => jobLine(names.map((name) => this.byName.get(name)).filter(Boolean)),
    );
    this.graph.paintEdges(new Map());
  }

  drawTime() {
    const ran = this.doc.jobs.filter((job) => job.started !== null && job.started !== undefined);
    const now = isOver(this.doc)
      ? Math.max(...ran.map((job) => job.ended || job.started))
      : Date.now() / 1000;
    const key = JSON.stringify([
      ran.length,
      this.doc.counts,
      isOver(this.doc) ? 0 : Math.round(now),
    ]);
    setContent(this.time.body, key, () => {
      if (!ran.length)
        return h("p", { class: "note" }, "No job has run yet, or all were up to date.");
      const start = Math.min(...ran.map((job) => job.started));
      const lanes = new Map();
      for (const job of ran.slice(-BARS_MAX))
        push(lanes, job.worker || "?", {
          start: job.started,
          end: job.ended || now,
          state: job.state,
          job,
        });
      const rows = [...lanes].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
      return [
        laneChart({
          lanes: rows.slice(0, LANES_MAX),
          start,
          end: now,
          draw: (bar, left, width) => this.bar(bar, left, width),
          label: "What ran when, by worker",
        }),
        rows.length > LANES_MAX
          ? h(
              "p",
              { class: "note" },
              `${count(rows.length - LANES_MAX)} other workers are left out.`,
            )
          : null,
      ];
    });
  }

  bar({ start, end, state, job }, left, width) {
    const isNamed = width > (innerWidth < 640 ? 18 : 6);
    const took = `${state.toLowerCase()}, ${seconds(end - start)}`;
    const title = [job.job, took, job.error].filter(Boolean).join("\n");
    return h(
      "button",
      {
        type: "button",
        title,
        "aria-label": title.replaceAll("\n", ", "),
        "data-job": job.job,
        class: [
          `s-${state.toLowerCase()}`,
          isNamed ? "named" : "",
          job.job === this.chosen ? "chosen" : "",
        ].join(" "),
        css: { left: `${left}%`, width: `${width}%` },
        onclick: () => this.choose(job.job, { show: true }),
      },
      isNamed ? job.job : null,
    );
  }
}

function push(map, key, value) {
  const found = map.get(key);
  if (found) found.push(value);
  else map.set(key, [value]);
}

function jobLine(jobs) {
  const took = jobs.reduce((sum, job) => sum + (job.seconds || 0), 0);
  if (jobs.length > 1) {
    const done = jobs.filter((job) => ["DONE", "SKIPPED"].includes(job.state)).length;
    return `${count(done)} of ${count(jobs.length)} done`;
  }
  const [job] = jobs;
  if (!job) return "";
  return job.state === "DONE" && took ? seconds(took) : job.state.toLowerCase();
}
