// One job of a workload: why it ran, what it waits for, what it wrote.

import { get } from "../api.js";
import { h, setContent } from "../dom.js";
import { count, moment, plural, seconds } from "../format.js";
import { pairs } from "./pieces.js";

const LOG_END = 20_000;

export function jobDetail(job, { above, below, onChoose }) {
  const links = (names) =>
    h(
      "div",
      { class: "chips" },
      names
        .slice(0, 30)
        .map((name) => h("button", { type: "button", onclick: () => onChoose(name) }, name)),
      names.length > 30
        ? h("span", { class: "note" }, `and ${count(names.length - 30)} others`)
        : null,
    );
  return [
    job.error ? h("p", { class: "message bad-text" }, job.error) : null,
    job.why
      ? h("section", {}, h("h3", {}, "Why it runs"), h("p", { class: "why" }, job.why))
      : null,
    pairs([
      ["Attempt", job.attempt ? count(job.attempt) : "none yet"],
      job.worker ? ["Worker", job.worker] : null,
      job.started ? ["Started", moment(job.started)] : null,
      job.seconds !== null && job.seconds !== undefined ? ["Took", seconds(job.seconds)] : null,
      job.selected === false ? ["Selected", "no: an earlier result is used"] : null,
    ]),
    above.length
      ? h("section", {}, h("h3", {}, `After ${plural(above.length, "job")}`), links(above))
      : null,
    below.length
      ? h("section", {}, h("h3", {}, `Before ${plural(below.length, "job")}`), links(below))
      : null,
  ];
}

// What a job has written, which is read when somebody asks for it.
export class JobLog {
  constructor(path) {
    this.path = path;
    this.shown = h("div");
  }

  async load(job) {
    const found = await get(`${this.path}/jobs/${encodeURIComponent(job)}/log`).catch((error) => ({
      problem: error.message,
    }));
    setContent(this.shown, JSON.stringify(found), () => [
      found.problem ? h("p", { class: "note" }, found.problem) : null,
      found.traceback
        ? h("section", {}, h("h3", {}, "Traceback"), h("pre", { tabindex: "0" }, found.traceback))
        : null,
      found.problem
        ? null
        : h(
            "section",
            {},
            h("h3", {}, "Output"),
            found.log
              ? h("pre", { tabindex: "0" }, ending(found.log))
              : h("p", { class: "note" }, "It has written nothing."),
          ),
    ]);
  }
}

const ending = (text) => (text.length > LOG_END ? `… ${text.slice(-LOG_END)}` : text);
