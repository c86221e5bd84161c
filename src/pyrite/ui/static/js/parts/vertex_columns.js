// The columns of the table of vertices.

import { h } from "../dom.js";
import { bytes, count, percent, rate, seconds, short } from "../format.js";
import { badge, bar } from "./pieces.js";
import { busyShare } from "./run_overview.js";

// `doc()` gives the document of the run.
export function vertexColumns(doc) {
  const number = (key, label, title, text = short, warn = null) => ({
    key,
    label,
    title,
    number: true,
    value: (row) => row[key],
    show: (row) => (row[key] ? text(row[key]) : "0"),
    zero: (row) => !row[key],
    warn,
  });
  const busy = (row) => busyShare(row, doc());
  return [
    {
      key: "name",
      label: "Vertex",
      kind: "wrap",
      value: (row) => row.name.toLowerCase(),
      show: (row) => ({
        key: row.name,
        make: () => h("button", { type: "button", class: "main-button" }, row.name),
      }),
    },
    {
      key: "state",
      label: "State",
      value: (row) => row.state,
      show: (row) => ({ key: row.state, make: () => badge(row.state) }),
    },
    number("received", "Received", "Items received", count),
    number("emitted", "Emitted", "Items emitted", count),
    number("received_rate", "Rate in", "Items received per second", rate),
    number("emitted_rate", "Rate out", "Items emitted per second", rate),
    {
      key: "busy",
      label: "Busy",
      title: "The time that its processors have worked, and its share of the time of the run",
      number: true,
      value: busy,
      show: (row) => ({
        key: `${seconds(row.busy_seconds)}|${percent(busy(row))}`,
        make: () => [seconds(row.busy_seconds), bar(busy(row))],
      }),
    },
    {
      key: "skew",
      label: "Skew",
      title: "What the busiest processor has received, divided by the mean of all: 1 is even",
      number: true,
      value: (row) => row.skew,
      show: (row) => (row.processor_count > 1 ? row.skew.toFixed(1) : ""),
      warn: (row) => row.processor_count > 1 && row.skew >= 2,
    },
    number("skipped", "Errors", "Items that could not be processed", short, (row) => row.skipped),
    number("dead_letters", "Dead letters", "Items that were sent to the dead letters"),
    number("held_bytes", "Memory", "What its groups, joins and sorts hold in memory", bytes),
    number(
      "spilled_bytes",
      "Spilled",
      "What it has written to files, because it did not fit",
      bytes,
    ),
    number("processor_count", "Processors", "How many processors it has", count),
  ];
}
