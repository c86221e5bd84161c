// One run: its graph with live rates, its vertices, stages, members, errors and log.

import { get, listen } from "../api.js";
import { h, setContent } from "../dom.js";
import { bytes, moment, plural, rate, seconds, short } from "../format.js";
import { cancelButton } from "../parts/cancel.js";
import { connection } from "../parts/connection.js";
import { failureCard } from "../parts/failure.js";
import { Graph } from "../parts/graph.js";
import { runLog } from "../parts/log.js";
import { announce } from "../parts/news.js";
import { groupDetail, panelHead } from "../parts/panel.js";
import { badge, card, figures, setBadge } from "../parts/pieces.js";
import { overview } from "../parts/run_overview.js";
import { Table, searchBox } from "../parts/table.js";
import { vertexColumns } from "../parts/vertex_columns.js";
import { vertexDetail } from "../parts/vertex_panel.js";

export async function run(main, [id], about) {
  const path = `/api/runs/${encodeURIComponent(id)}`;
  const page = new RunPage(id, path, await get(path), about.read_only);
  main.replaceChildren(...page.shown);
  await page.start();
  return () => page.stop();
}

const SILENT_SECONDS = 15;
const isOver = (doc) => !["starting", "running"].includes(doc.state);

class RunPage {
  constructor(id, path, doc, isReadOnly) {
    this.path = path;
    this.isReadOnly = isReadOnly;
    this.doc = doc;
    this.chosen = null;
    this.stops = [];
    this.heard = performance.now();
    this.silence = 0;
    this.graph = new Graph({
      path: `${path}/graph.svg`,
      label: "The DAG",
      onChoose: (name) => this.choose(name),
    });
    this.graph.repaint = () => this.paint();
    this.log = runLog(id);
    this.badge = badge(doc.state, { pill: true });
    this.figures = figures([
      ["seconds", "Duration"],
      ["in", "Items in"],
      ["out", "Items out"],
      ["started", "Started", "plain"],
      ["ended", "Ended", "plain"],
      ["memory", "Memory"],
      ["where", "Process", "plain"],
      ["id", "Id", "plain"],
    ]);
    this.actions = h("div", { class: "actions" });
    this.trouble = h("div");
    this.panel = h("aside", { class: "card panel", "aria-label": "Details", "aria-live": "off" });
    this.table = new Table({
      columns: vertexColumns(() => this.doc),
      id: (row) => row.name,
      caption: "Vertices",
      onChoose: (row) => this.choose(row.name, { show: true }),
    });
    const search = searchBox("Find a vertex", (text) =>
      this.table.only((row) => row.name.toLowerCase().includes(text)),
    );
    this.shown = [
      h(
        "div",
        { class: "title" },
        h(
          "div",
          { class: "words" },
          h("p", { class: "crumbs" }, h("a", { href: "/" }, "Runs"), " / ", doc.kind),
          h("h1", {}, doc.name, this.badge),
        ),
        this.actions,
      ),
      this.figures.shown,
      this.trouble,
      h(
        "div",
        { class: "columns" },
        card("Graph", { end: this.graph.tools, body: false }, this.graph.view),
        this.panel,
      ),
      card("Vertices", { end: search, body: false }, this.table.shown),
      this.log.shown,
    ];
    this.keys = (event) => {
      if (event.key === "Escape" && this.chosen !== null && !document.querySelector("dialog[open]"))
        this.choose(null);
    };
  }

  async start() {
    document.addEventListener("keydown", this.keys);
    this.update(this.doc);
    if (this.doc.vertices.length)
      await this.graph
        .load()
        .catch((error) =>
          this.graph.view.replaceChildren(h("p", { class: "loading" }, error.message)),
        );
    else
      this.graph.view.replaceChildren(
        h("p", { class: "loading" }, "The DAG of this run is not known yet."),
      );
    this.log.more();
    if (isOver(this.doc)) {
      this.log.end();
      return;
    }
    let n = 0;
    this.stops.push(
      listen(`${this.path}/events`, {
        run: (doc) => {
          if (!doc.id) return; // it was deleted in the meantime
          if (doc.seen !== this.doc.seen) {
            this.heard = performance.now();
            this.silence = 0;
          }
          this.update({ ...doc, history: wholeHistory(this.doc.history, doc) });
          n += 1;
          if (n % 2 === 0) this.log.more();
        },
        end: () => this.finish(),
      }),
    );
    const timer = setInterval(() => this.listenForSilence(), 1000);
    this.stops.push(() => clearInterval(timer));
  }

  // A process that hangs tells nothing, so nothing comes to update the page with.
  listenForSilence() {
    if (document.hidden || !connection.isWhole || isOver(this.doc)) this.heard = performance.now();
    const seconds = Math.floor((performance.now() - this.heard) / 1000);
    const silence = seconds < SILENT_SECONDS ? 0 : seconds;
    if (silence === this.silence) return;
    this.silence = silence;
    this.update(this.doc);
  }

  async finish() {
    this.update(await get(this.path).catch(() => this.doc));
    this.log.end();
    this.log.more();
  }

  stop() {
    document.removeEventListener("keydown", this.keys);
    this.stops.forEach((stop) => stop());
    this.graph.stop();
  }

  update(doc) {
    if (doc.state !== this.doc.state) announce(`${doc.name}: ${doc.state}`);
    const hadVertices = this.doc.vertices.length > 0;
    doc = this.silence || doc.state === "lost" ? stopped(doc) : doc;
    this.doc = doc;
    this.byName = new Map(doc.vertices.map((vertex) => [vertex.name, vertex]));
    setBadge(this.badge, doc.state);
    document.title = `${doc.name} (${doc.state}) · Pyrite`;
    const { set, hide } = this.figures;
    set("seconds", seconds(doc.seconds));
    set("in", short(doc.items_in), throughput(doc, "in"));
    set("out", short(doc.items_out), throughput(doc, "out"));
    set("started", moment(doc.submitted));
    set("ended", doc.ended ? moment(doc.ended) : "");
    hide("ended", !doc.ended);
    const memory = doc.members.reduce((sum, each) => sum + each.memory_bytes, 0);
    set("memory", bytes(memory));
    hide("memory", !memory);
    set("where", [doc.host, doc.pid].filter(Boolean).join(" · "));
    hide("where", !doc.host);
    set("id", doc.id);
    this.drawActions();
    this.drawTrouble();
    this.drawPanel();
    this.table.update(doc.vertices);
    this.paint();
    if (!hadVertices && doc.vertices.length) this.graph.load();
  }

  drawActions() {
    const { doc } = this;
    setContent(this.actions, `${doc.page}|${doc.can_cancel}`, () => [
      isHttp(doc.page)
        ? h(
            "a",
            { class: "button", href: doc.page, target: "_blank", rel: "noopener noreferrer" },
            "Spark’s page ↗",
          )
        : null,
      doc.can_cancel && !this.isReadOnly
        ? cancelButton({
            what: "run",
            name: doc.name,
            path: `${this.path}/cancel`,
            consequence: "It stops at once. What it has written so far may stay.",
          })
        : null,
    ]);
  }

  drawTrouble() {
    const { failure, waits_for: waits, state, host, pid } = this.doc;
    setContent(this.trouble, JSON.stringify([failure, waits, state, this.silence]), () => [
      failure ? failureCard(failure, (name) => this.choose(name, { show: true })) : null,
      waits && !isOver(this.doc) ? h("p", { class: "card waits" }, waits) : null,
      this.silence
        ? h(
            "p",
            { class: "card waits" },
            `Nothing was heard of its process (${pid} on ${host || "this host"}) for ` +
              `${seconds(this.silence)}: it may be stopped, or in a call that lets no other ` +
              "thread run. Below is what was known last.",
          )
        : null,
      state === "lost"
        ? h(
            "p",
            { class: "card waits" },
            `The process that ran it (${pid} on ${host || "this host"}) is gone, and never said ` +
              "how it ended. Below is what was known last.",
          )
        : null,
    ]);
  }

  choose(name, { show = false } = {}) {
    if (name === null && this.panel.contains(document.activeElement)) this.graph.focus(this.chosen);
    this.chosen = name;
    this.graph.choose(name);
    if (show && name !== null) this.graph.show(name);
    this.table.choose(name);
    this.drawPanel();
    if (name !== null && innerWidth <= 1000)
      this.panel.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  drawPanel() {
    const { doc, chosen } = this;
    const vertex = this.byName.get(chosen);
    const members = this.graph.vertices.get(chosen)?.members;
    if (vertex) {
      setContent(
        this.panel,
        JSON.stringify([vertex, (doc.history || {})[chosen], doc.seconds]),
        () => [
          panelHead(vertex.name, vertex.state, () => this.choose(null)),
          h(
            "div",
            { class: "body" },
            vertexDetail(vertex, (doc.history || {})[chosen], doc, (name) =>
              this.choose(name, { show: true }),
            ),
          ),
        ],
      );
    } else if (members) {
      const states = members.map((name) => this.byName.get(name)?.state);
      setContent(this.panel, JSON.stringify([chosen, states]), () => [
        panelHead(chosen, null, () => this.choose(null)),
        h(
          "div",
          { class: "body" },
          groupDetail({
            names: members,
            many: plural(members.length, "vertex", "vertices"),
            stateOf: (name) => this.byName.get(name)?.state || "waiting",
            onChoose: (name) => this.choose(name, { show: true }),
            onUnfold: () => this.graph.open(chosen),
          }),
        ),
      ]);
    } else {
      setContent(this.panel, `overview|${doc.state}|${doc.seconds}`, () => [
        h("div", { class: "head" }, h("h2", {}, "Overview")),
        h(
          "div",
          { class: "body" },
          overview(doc, this.hint(), (name) => this.choose(name, { show: true })),
        ),
      ]);
    }
  }

  hint() {
    return this.doc.vertices.length > 1
      ? "Choose a vertex to see its rates, processors and heaviest keys."
      : null;
  }

  paint() {
    const { doc, graph } = this;
    if (!graph.svg) return;
    const fed = new Set(doc.edges.map((edge) => edge.destination));
    const feeds = new Set(doc.edges.map((edge) => edge.source));
    const live = doc.state === "running" && !this.silence;
    graph.paint(
      (name) => this.byName.get(name)?.state,
      (names) =>
        rateLine(
          names.map((name) => this.byName.get(name)).filter(Boolean),
          names.some((name) => fed.has(name)),
          names.some((name) => feeds.has(name)),
          live,
        ),
    );
    const fills = new Map();
    for (const edge of doc.edges) {
      const key = `${graph.boxOf(edge.source)}\0${graph.boxOf(edge.destination)}`;
      const found = fills.get(key) || { fill: 0, capacity: 0, moves: false };
      found.fill += edge.fill;
      found.capacity += edge.capacity;
      found.moves ||=
        live &&
        this.byName.get(edge.source)?.emitted_rate > 0 &&
        this.byName.get(edge.destination)?.state !== "completed";
      fills.set(key, found);
    }
    graph.paintEdges(fills);
  }
}

const POINTS = 120;

// Events have only the points of the history that are new, unless they say nothing about that.
function wholeHistory(known, { history, history_after: after }) {
  if (after === undefined) return history;
  const whole = { ...known };
  for (const [name, added] of Object.entries(history)) {
    const before = known[name] || { t: [], received_rate: [], emitted_rate: [] };
    const joined = (key) => [...before[key], ...added[key]].slice(-POINTS);
    whole[name] = Object.fromEntries(Object.keys(added).map((key) => [key, joined(key)]));
  }
  return whole;
}

// As the run was when it was seen last, without what moves.
function stopped(doc) {
  const vertices = doc.vertices.map((vertex) => ({
    ...vertex,
    state: doc.state === "lost" && vertex.state === "running" ? "lost" : vertex.state,
    received_rate: 0,
    emitted_rate: 0,
  }));
  return { ...doc, vertices };
}

// Only what the server says is Spark's page may be a link, and only if it is one of the web.
const isHttp = (link) => /^https?:\/\//.test(link || "");

function rateLine(vertices, isFed, feeds, live) {
  const sum = (key) => vertices.reduce((total, vertex) => total + vertex[key], 0);
  const moving = live && vertices.some((vertex) => vertex.state === "running");
  if (!moving && !sum("received") && !sum("emitted"))
    return vertices.every((vertex) => vertex.state === "waiting") ? "waiting" : "no items";
  const [into, out] = moving ? ["received_rate", "emitted_rate"] : ["received", "emitted"];
  const unit = moving ? "/s" : "";
  if (!isFed) return `${short(sum(out))}${unit} out`;
  if (!feeds) return `${short(sum(into))}${unit} in`;
  return `${short(sum(into))} → ${short(sum(out))}${moving ? " /s" : ""}`;
}

function throughput(doc, way) {
  const [other, key] = way === "in" ? ["destination", "emitted_rate"] : ["source", "received_rate"];
  const inner = new Set(doc.edges.map((edge) => edge[other]));
  const sum = doc.vertices
    .filter((vertex) => !inner.has(vertex.name))
    .reduce((total, vertex) => total + vertex[key], 0);
  return sum ? rate(sum) : "";
}
