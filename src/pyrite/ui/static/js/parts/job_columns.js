// The columns of the table of a workload's jobs.

import { h } from "../dom.js";
import { moment, seconds } from "../format.js";
import { badge } from "./pieces.js";

// What a person should see first.
export const STATES = [
  "RUNNING",
  "FAILED",
  "CRASHED",
  "TIMEOUT",
  "ASSIGNED",
  "READY",
  "BLOCKED",
  "WAITING",
  "CANCELLED",
  "DONE",
  "SKIPPED",
];

export function jobColumns() {
  return [
    {
      key: "job",
      label: "Job",
      kind: "wrap wide",
      value: (row) => row.job,
      show: (row) => ({
        key: `${row.job}|${row.error}`,
        make: () => [
          h("button", { type: "button", class: "main-button" }, row.job),
          row.error ? h("span", { class: "sub bad" }, row.error) : null,
        ],
      }),
    },
    {
      key: "state",
      label: "State",
      value: (row) => STATES.indexOf(row.state),
      show: (row) => ({ key: row.state, make: () => badge(row.state) }),
    },
    { key: "why", label: "Why", kind: "wrap wide", short: "because", show: (row) => row.why || "" },
    {
      key: "attempt",
      label: "Attempt",
      number: true,
      short: "attempt",
      value: (row) => row.attempt,
      show: (row) => row.attempt || "",
    },
    {
      key: "worker",
      label: "Worker",
      short: "on",
      value: (row) => row.worker,
      show: (row) => row.worker || "",
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
      show: (row) =>
        row.seconds === null || row.seconds === undefined ? "" : seconds(row.seconds),
    },
  ];
}
