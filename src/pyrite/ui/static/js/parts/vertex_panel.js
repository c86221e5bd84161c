// All that is known of one vertex.

import { h } from "../dom.js";
import { bytes, count, percent, plural, rate, seconds } from "../format.js";
import { notableKeys } from "./heavy_keys.js";
import { bar, pairs } from "./pieces.js";
import { busyShare } from "./run_overview.js";
import { spark } from "./spark.js";

export function vertexDetail(vertex, history, run, onChoose) {
  return [
    vertex.step && h("code", { class: "step" }, vertex.step),
    history && history.t.length > 1
      ? section(
          "Rates",
          spark(history.t, [
            ["in", "spark-in", history.received_rate],
            ["out", "spark-out", history.emitted_rate],
          ]),
        )
      : null,
    pairs([
      ["Received", `${count(vertex.received)} (${rate(vertex.received_rate)})`],
      ["Emitted", `${count(vertex.emitted)} (${rate(vertex.emitted_rate)})`],
      ["Waits in queues", plural(vertex.queue_fill, "item")],
      ["Busy", `${seconds(vertex.busy_seconds)} (${percent(busyShare(vertex, run))} of the time)`],
      vertex.skipped
        ? ["Errors", `${plural(vertex.skipped, "item")} could not be processed`]
        : null,
      vertex.dead_letters ? ["Dead letters", count(vertex.dead_letters)] : null,
      vertex.held_bytes ? ["In memory", bytes(vertex.held_bytes)] : null,
      vertex.spilled_bytes ? ["Spilled to files", bytes(vertex.spilled_bytes)] : null,
      vertex.origin ? ["Added at", h("code", {}, vertex.origin)] : null,
    ]),
    processors(vertex),
    heaviest(notableKeys(vertex)),
    vertex.fused_with.length
      ? section(
          "Runs in one loop with",
          h(
            "div",
            { class: "chips" },
            vertex.fused_with.map((name) =>
              h("button", { type: "button", onclick: () => onChoose(name) }, name),
            ),
          ),
        )
      : null,
  ];
}

const section = (title, ...children) => h("section", {}, h("h3", {}, title), children);

function processors(vertex) {
  if (vertex.processors.length < 2) return null;
  const load = (each) => each.received || each.emitted;
  const most = Math.max(1, ...vertex.processors.map(load));
  const skew = vertex.skew.toFixed(1);
  const words =
    vertex.skew > 1.5
      ? `The busiest one has ${skew} times the mean: the items are spread unevenly.`
      : `The items are spread evenly: the busiest one has ${skew} times the mean.`;
  return section(
    plural(vertex.processor_count, "processor"),
    h(
      "div",
      { class: "processors", role: "img", "aria-label": words },
      vertex.processors.map((each) =>
        h("i", {
          css: { height: `${(load(each) / most) * 100}%` },
          title: [
            `${count(each.received)} in`,
            `${count(each.emitted)} out`,
            seconds(each.busy_seconds),
          ].join(", "),
        }),
      ),
    ),
    h("p", { class: "note" }, words),
  );
}

function heaviest(keys) {
  if (!keys.length) return null;
  return section(
    "Heaviest keys",
    h(
      "table",
      { class: "keys" },
      h(
        "tbody",
        {},
        keys.map((each) =>
          h(
            "tr",
            { title: each.edge },
            h("td", {}, h("code", {}, each.key)),
            h("td", { class: "n" }, `≈ ${count(each.count)}`),
            h("td", { class: "n" }, percent(each.share), bar(each.share)),
          ),
        ),
      ),
    ),
  );
}
