// The columns of the tables of peers and of durable jobs, and what the states of peers mean.

import { h } from "../dom.js";
import { count, moment } from "../format.js";
import { badge, bar } from "./pieces.js";

export const STATES = {
  new: "no coordinator has seen it yet",
  idle: "waits for a part",
  acking: "was offered a part",
  active: "works on a part",
  waiting: "has read all that is there, and waits for others",
  sealing: "writes the last of its part",
  revoked: "its part was given to another peer",
  lost: "is gone, and no coordinator has seen that yet",
  dead: "is gone",
};

export function peerColumns(jobName) {
  return [
    {
      key: "name",
      label: "Peer",
      kind: "wrap wide",
      value: (row) => row.name,
      show: (row) => ({
        key: `${row.name}|${row.address}`,
        make: () => [
          h("span", { class: "main" }, row.name),
          h("span", { class: "sub" }, row.address),
        ],
      }),
    },
    {
      key: "state",
      label: "State",
      kind: "peer-state",
      value: (row) => row.state,
      show: (row) => ({
        key: row.state,
        make: () => h("span", { title: STATES[row.state] }, badge(row.state)),
      }),
    },
    {
      key: "part",
      label: "Works on",
      kind: "wrap",
      value: (row) => (row.part ? jobName(row.part.job) : null),
      show: (row) => ({
        key: JSON.stringify(row.part),
        make: () =>
          row.part
            ? [
                h(
                  "a",
                  { href: `/runs/${encodeURIComponent(row.part.job)}` },
                  jobName(row.part.job),
                ),
                h("span", { class: "sub" }, `task ${row.part.task}, part ${row.part.part}`),
              ]
            : "",
      }),
    },
    {
      key: "since",
      label: "Since",
      number: true,
      short: "since",
      value: (row) => row.since,
      show: (row) => moment(row.since),
    },
  ];
}

export function durableJobColumns() {
  return [
    {
      key: "name",
      label: "Job",
      kind: "wrap wide",
      value: (row) => (row.name || row.id).toLowerCase(),
      show: (row) => ({
        key: JSON.stringify([row.name, row.failure, row.waits_for]),
        make: () => [
          h(
            "a",
            { class: "main", href: `/runs/${encodeURIComponent(row.id)}` },
            row.name || row.id,
          ),
          row.failure ? h("span", { class: "sub bad" }, row.failure) : null,
          row.waits_for ? h("span", { class: "sub" }, row.waits_for) : null,
        ],
      }),
    },
    {
      key: "status",
      label: "State",
      value: (row) => row.status,
      show: (row) => ({ key: row.status, make: () => badge(row.status) }),
    },
    {
      key: "parts",
      label: "Parts complete",
      number: true,
      value: (row) => (row.parts ? row.complete / row.parts : null),
      show: (row) => ({
        key: `${row.complete}/${row.parts}`,
        make: () =>
          row.parts
            ? [`${count(row.complete)} / ${count(row.parts)}`, bar(row.complete / row.parts)]
            : "",
      }),
    },
    {
      key: "tasks",
      label: "Tasks",
      kind: "wrap",
      short: "tasks",
      show: (row) =>
        row.tasks.map((task) => `${task.name} ${task.complete}/${task.parts}`).join(", "),
    },
    {
      key: "submitted",
      label: "Submitted",
      number: true,
      short: "submitted",
      value: (row) => row.submitted,
      show: (row) => moment(row.submitted),
    },
  ];
}
