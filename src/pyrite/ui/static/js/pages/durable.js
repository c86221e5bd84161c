// A durable deployment: who coordinates, what the peers do, what waits in queues, which jobs run.

import { get, listen } from "../api.js";
import { h, setContent } from "../dom.js";
import { clock, count, plural, seconds } from "../format.js";
import { STATES, durableJobColumns, peerColumns } from "../parts/durable_columns.js";
import { laneChart } from "../parts/lanes.js";
import { bar, card, empty, figures } from "../parts/pieces.js";
import { Table, searchBox } from "../parts/table.js";

const LANES_MAX = 100;
const SHOWN_SECONDS = 600;

export async function durables(main, _, about) {
  document.title = "Durable · Pyrite";
  const found = about.sources.filter((source) => source.kind === "durable");
  main.replaceChildren(
    h("div", { class: "title" }, h("div", { class: "words" }, h("h1", {}, "Durable deployments"))),
    found.length
      ? h(
          "section",
          { class: "card" },
          h(
            "div",
            { class: "list" },
            found.map((source) =>
              h(
                "p",
                {},
                h(
                  "a",
                  { class: "main", href: `/durable/${encodeURIComponent(source.key)}` },
                  source.label,
                ),
              ),
            ),
          ),
        )
      : h(
          "section",
          { class: "card" },
          empty(
            "No deployments",
            "A durable deployment has coordinators, peers and queues. Tell the page where its " +
              "folder is, or the address of its store.",
            "pyrite ui --durable path/to/folder",
          ),
        ),
  );
}

export async function durable(main, [key], about) {
  const path = `/api/durable/${encodeURIComponent(key)}`;
  const label =
    about.sources.find((source) => source.kind === "durable" && source.key === key)?.label || key;
  const page = new DurablePage(label, await get(path));
  document.title = `${nameOf(label)} · Pyrite`;
  main.replaceChildren(...page.shown);
  page.update(page.doc);
  return listen(`${path}/events`, { durable: (doc) => page.update(doc) });
}

class DurablePage {
  constructor(label, doc) {
    this.doc = doc;
    this.figures = figures([
      ["peers", "Peers"],
      ["busy", "On a part"],
      ["jobs", "Open jobs"],
      ["waiting", "Waiting in queues"],
      ["leader", "Coordinator", "plain"],
    ]);
    this.trouble = h("div");
    this.time = card("Peers over time", {}, h("div"));
    this.legend = h("div", { class: "legend" });
    this.queues = card("Queues", {}, h("div"));
    this.peers = new Table({
      columns: peerColumns((id) => this.jobName(id)),
      id: (row) => row.name,
      caption: "Peers",
      kind: "cards",
    });
    this.jobs = new Table({
      columns: durableJobColumns(),
      id: (row) => row.id,
      caption: "Jobs",
      kind: "cards",
    });
    const search = searchBox("Find a job", (text) =>
      this.jobs.only((row) =>
        `${row.name || ""} ${row.id} ${row.failure || ""}`.toLowerCase().includes(text),
      ),
    );
    this.shown = [
      h(
        "div",
        { class: "title" },
        h(
          "div",
          { class: "words" },
          h(
            "p",
            { class: "crumbs" },
            h("a", { href: "/durable" }, "Durable"),
            nameOf(label) === label ? null : ` / ${label}`,
          ),
          h("h1", {}, nameOf(label)),
        ),
      ),
      this.figures.shown,
      this.trouble,
      card("Jobs", { end: search, body: false }, this.jobs.shown),
      this.time,
      h("div", { class: "halves" }, card("Peers", { body: false }, this.peers.shown), this.queues),
    ];
  }

  jobName(id) {
    return this.doc.jobs.find((job) => job.id === id)?.name || id;
  }

  update(doc) {
    this.doc = doc;
    const open = doc.jobs.filter((job) => !job.has_ended);
    const waiting = doc.queues.reduce((sum, queue) => sum + queue.messages, 0);
    const { set } = this.figures;
    set("peers", count(doc.peers.length));
    set("busy", count(doc.peers.filter((peer) => peer.part).length));
    set("jobs", count(open.length));
    set("waiting", count(waiting), waiting === 1 ? "batch" : "batches");
    const others = doc.coordinators.length - 1;
    set(
      "leader",
      doc.coordinators[0] || "none",
      others > 0 ? `leads; ${plural(others, "other")} ready` : "",
    );
    const problems = [
      doc.coordinators.length
        ? null
        : "No coordinator runs, so no job goes on. Start one with: pyrite coordinator",
      doc.coordinators.length && !doc.peers.length
        ? "There are no peers, so no job goes on. Start some with: pyrite peers"
        : null,
      doc.problem ? `The queues cannot be read: ${doc.problem}` : null,
    ].filter(Boolean);
    setContent(this.trouble, JSON.stringify(problems), () =>
      problems.map((text) => h("p", { class: "card waits" }, text)),
    );
    this.jobs.update(doc.jobs);
    this.peers.update(doc.peers);
    this.drawTime();
    this.drawQueues();
  }

  drawTime() {
    const { history, peers, seen } = this.doc;
    const end = seen || Date.now() / 1000;
    const start = Math.max(
      end - SHOWN_SECONDS,
      Math.min(end - 10, ...history.map((each) => each.t)),
    );
    setContent(this.time.body, JSON.stringify([history.length, Math.round(end)]), () => {
      if (!history.length) return h("p", { class: "note" }, "No coordinator has seen a peer yet.");
      const lanes = new Map(peers.map((peer) => [peer.name, []]));
      const last = new Map();
      for (const each of history) {
        if (!lanes.has(each.peer)) lanes.set(each.peer, []);
        const before = last.get(each.peer);
        if (before) before.end = each.t;
        const span = { start: each.t, end, state: each.state, part: each.part };
        if (each.state !== "dead") lanes.get(each.peer).push(span);
        last.set(each.peer, span);
      }
      const seenStates = new Set();
      const rows = [...lanes]
        .map(([name, spans]) => [laneName(name, peers), spans.filter((span) => span.end > start)])
        .filter(([, spans]) => spans.length);
      rows.forEach(([, spans]) => spans.forEach((span) => seenStates.add(span.state)));
      return [
        laneChart({
          lanes: rows.slice(0, LANES_MAX),
          start,
          end,
          label: "The states of the peers over time",
          absolute: true,
          draw: (span, left, width) => this.span(span, left, width),
        }),
        h(
          "div",
          { class: "legend" },
          Object.keys(STATES)
            .filter((state) => seenStates.has(state))
            .map((state) =>
              h(
                "span",
                { class: `badge s-${state}`, title: STATES[state] },
                h("i"),
                h("span", {}, state),
              ),
            ),
        ),
      ];
    });
  }

  span({ start, end, state, part }, left, width) {
    const on = part ? `\n${this.jobName(part.job)}, task ${part.task}, part ${part.part}` : "";
    return h("div", {
      class: `span s-${state}`,
      title: `${state}: ${STATES[state] || ""}${on}\n${clock(start)}, ${seconds(end - start)}`,
      css: { left: `${left}%`, width: `${width}%` },
    });
  }

  drawQueues() {
    const { queues } = this.doc;
    const most = Math.max(1, ...queues.map((queue) => queue.messages + queue.in_flight));
    setContent(this.queues.body, JSON.stringify(queues), () =>
      queues.length
        ? queues.map((queue) =>
            h(
              "div",
              {
                class: "progress",
                title: `${batches(queue.messages)} wait, ${batches(queue.in_flight)} in work`,
              },
              h(
                "span",
                { class: "what" },
                queue.edge || queue.task,
                h("span", { class: "sub note" }, ` ${this.jobName(queue.job)}`),
              ),
              bar((queue.messages + queue.in_flight) / most),
              h(
                "span",
                { class: "how" },
                count(queue.messages),
                queue.in_flight ? ` + ${count(queue.in_flight)}` : "",
              ),
            ),
          )
        : h("p", { class: "note" }, "No open job has a queue."),
    );
  }
}

const batches = (n) => plural(n, "batch", "batches");

// Of a folder, its last part; of a URL, all of it.
const nameOf = (label) =>
  label.startsWith("/") ? label.split("/").filter(Boolean).pop() || label : label;

// The address of a peer says more than its name, unless several peers have the same.
function laneName(name, peers) {
  const found = peers.find((peer) => peer.name === name);
  if (!found) return name;
  const isOnly = peers.filter((peer) => peer.address === found.address).length === 1;
  return isOnly ? found.address : `${found.address} · ${name.slice(-4)}`;
}
