// The log of a run: lines that are added while it runs.

import { get } from "../api.js";
import { h } from "../dom.js";
import { clock } from "../format.js";
import { card } from "./pieces.js";

const LINES_MAX = 2000;

export function runLog(id) {
  const lines = h("div", {
    class: "log",
    role: "log",
    tabindex: "0",
    "aria-label": "Log",
    "aria-live": "off", // there may be thousands of lines
  });
  const nothing = h("p", { class: "note" }, "It has logged nothing so far.");
  const shown = card("Log", {}, nothing, lines);
  lines.hidden = true;
  let next = 0;
  let busy = false;

  async function more() {
    if (busy) return;
    busy = true;
    try {
      const found = await get(`/api/runs/${encodeURIComponent(id)}/log?after=${next}`);
      next = found.next;
      add(found.lines);
    } catch {
      // the stream of the run says it if the server is gone
    } finally {
      busy = false;
    }
  }

  function add(found) {
    if (!found.length) return;
    const follows = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 30;
    lines.append(...found.map(line));
    while (lines.children.length > LINES_MAX) lines.firstChild.remove();
    nothing.hidden = true;
    lines.hidden = false;
    if (follows) lines.scrollTop = lines.scrollHeight;
  }

  function end() {
    nothing.textContent = "It has logged nothing.";
  }

  return { shown, more, end };
}

function line({ time, level, logger, message, vertex }) {
  const name = String(level || "info").toLowerCase();
  return h(
    "div",
    { class: `l-${name.replace(/[^a-z]/g, "")}`, title: logger },
    h("time", {}, clock(time)),
    h("span", { class: "level" }, name),
    h("span", { class: "message" }, vertex ? `[${vertex}] ${message}` : message),
  );
}
