// What is known of a run as a whole: its rates, its busiest vertices, stages, processes, timings.

import { h } from "../dom.js";
import { bytes, count, percent, plural, seconds } from "../format.js";
import { bar, pairs, progress } from "./pieces.js";
import { spark } from "./spark.js";

const WORKED = "The share of the time of the run that its processors have worked";

export function overview(doc, hint, onChoose) {
  const section = (title, ...children) => h("section", {}, h("h3", {}, title), children);
  const timings = Object.entries(doc.timings || {});
  const chart = throughputChart(doc);
  return [
    hint ? h("p", { class: "note" }, hint) : null,
    chart ? section("Items per second", chart) : null,
    busiest(doc).length
      ? section(
          "Busiest vertices",
          busiest(doc).map((row) => busyRow(...row, onChoose)),
        )
      : null,
    doc.stages.length
      ? section(
          doc.kind === "durable" ? "Tasks and their parts" : "Stages and their tasks",
          doc.stages.map(progress),
        )
      : null,
    doc.members.length
      ? section(
          doc.members.length === 1 ? "Process" : `${count(doc.members.length)} processes`,
          members(doc.members),
        )
      : null,
    timings.length
      ? section(
          "Where the time went",
          pairs(timings.map(([name, value]) => [name.replaceAll("_", " "), seconds(value)])),
        )
      : null,
  ];
}

function busiest(doc) {
  const seen = new Set(); // vertices in one loop have one time
  const found = [];
  for (const vertex of doc.vertices) {
    if (seen.has(vertex.name)) continue;
    vertex.fused_with.forEach((name) => seen.add(name));
    found.push([vertex.name, busyShare(vertex, doc), vertex.fused_with.length]);
  }
  return found
    .filter(([, share]) => share >= 0.01)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 4);
}

function busyRow(name, share, others, onChoose) {
  return h(
    "div",
    {
      class: "progress",
      title: others ? `${WORKED}, with ${plural(others, "other")} in its loop` : WORKED,
    },
    h(
      "button",
      { type: "button", class: "what plain-button", onclick: () => onChoose(name) },
      others ? `${name} + ${count(others)}` : name,
    ),
    bar(share),
    h("span", { class: "how" }, percent(share)),
  );
}

export const busyShare = (vertex, doc) =>
  Math.min(
    1,
    vertex.busy_seconds / (Math.max(1e-9, doc.seconds) * Math.max(1, vertex.processor_count)),
  );

function throughputChart(doc) {
  const history = doc.history || {};
  const fed = new Set(doc.edges.map((edge) => edge.destination));
  const feeds = new Set(doc.edges.map((edge) => edge.source));
  const times = Object.values(history).reduce(
    (best, each) => (each.t.length > best.length ? each.t : best),
    [],
  );
  if (times.length < 2) return null;
  const sum = (inner, key) =>
    times.map((_, n) =>
      Object.entries(history).reduce(
        (total, [name, each]) =>
          total + (inner.has(name) ? 0 : each[key][n - times.length + each.t.length] || 0),
        0,
      ),
    );
  return spark(times, [
    ["in", "spark-in", sum(fed, "emitted_rate")],
    ["out", "spark-out", sum(feeds, "received_rate")],
  ]);
}

// The number of a member alone says little.
function memberName({ member, host, pid }) {
  return /^\d*$/.test(member) ? [host, pid].filter(Boolean).join(" · ") || member : member;
}

function members(found) {
  const most = Math.max(1, ...found.map((each) => each.memory_bytes));
  return [
    found
      .slice(0, 32)
      .map((each) =>
        h(
          "div",
          { class: "progress", title: [each.host, each.pid].filter(Boolean).join(" · ") },
          h("span", { class: "what" }, memberName(each)),
          bar(each.memory_bytes / most),
          h("span", { class: "how" }, each.memory_bytes ? bytes(each.memory_bytes) : ""),
        ),
      ),
    found.length > 32 ? h("p", { class: "note" }, `And ${count(found.length - 32)} others.`) : null,
  ];
}
