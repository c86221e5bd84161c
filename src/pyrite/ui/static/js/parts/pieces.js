// Small pieces that all pages use: badges, cards, figures, bars.

import { h, setContent, setState, setText } from "../dom.js";
import { count, percent, plural } from "../format.js";

export function badge(state, { pill = false } = {}) {
  const shown = h("span", { class: pill ? "badge pill" : "badge" }, h("i"), h("span"));
  setBadge(shown, state);
  return shown;
}

export function setBadge(shown, state) {
  setState(shown, state);
  setText(shown.lastChild, String(state).toLowerCase());
}

// A workload that has ended is not simply green: some of its jobs may have failed.
export function outcome({ phase, counts }) {
  if (phase !== "ended") return phase;
  const failures = ["FAILED", "CRASHED", "TIMEOUT", "BLOCKED"].some(
    (state) => (counts || {})[state],
  );
  return failures ? "failed" : "completed";
}

export function card(title, { end = [], body = true, kind = "" } = {}, ...children) {
  const tools = h("div", { class: "end" }, end);
  const inside = body ? h("div", { class: "body" }, children) : children;
  const shown = h(
    "section",
    { class: `card ${kind}`.trim(), "aria-label": title },
    h("div", { class: "head" }, h("h2", {}, title), tools),
    inside,
  );
  shown.body = body ? inside : shown;
  return shown;
}

// A list of figures that are updated in place: [[key, label, kind]].
export function figures(names) {
  const values = {};
  const shown = h(
    "dl",
    { class: "figures" },
    names.map(([key, label, kind]) => {
      values[key] = h("dd");
      return h("div", { class: kind, "data-figure": key }, h("dt", {}, label), values[key]);
    }),
  );
  const set = (key, text, small = "") =>
    setContent(values[key], `${text}|${small}`, () => [text, small && h("small", {}, small)]);
  const hide = (key, hidden) => {
    values[key].parentNode.hidden = hidden;
  };
  return { shown, set, hide };
}

export function pairs(rows) {
  return h(
    "dl",
    { class: "pairs" },
    rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

export function bar(share, state = null) {
  const inside = h("i", { css: { width: `${Math.max(0, Math.min(1, share)) * 100}%` } });
  return h("span", { class: state ? `bar s-${state}` : "bar" }, inside);
}

export function progress({ label, done, total }) {
  const share = total ? done / total : 0;
  const state = total && done >= total ? "completed" : "running";
  return h(
    "div",
    { class: "progress", title: `${label}: ${count(done)} of ${count(total)}` },
    h("span", { class: "what" }, label),
    bar(share, state),
    h("span", { class: "how" }, `${count(done)} / ${count(total)}`),
  );
}

// A bar with the shares of the states, and a legend below it.
export function shares() {
  const line = h("div", { class: "shares", role: "img" });
  const legend = h("div", { class: "legend" });
  const update = (counts, noun) => {
    const found = Object.entries(counts).filter(([, n]) => n > 0);
    const total = found.reduce((sum, [, n]) => sum + n, 0);
    setContent(line, JSON.stringify(found), () =>
      found.map(([state, n]) =>
        h("i", {
          class: `s-${state.toLowerCase()}`,
          css: { "flex-grow": n },
          title: `${state}: ${n}`,
        }),
      ),
    );
    line.setAttribute("aria-label", found.map(([state, n]) => `${n} ${state}`).join(", "));
    setContent(legend, JSON.stringify(found), () => [
      h("span", {}, h("b", {}, plural(total, noun))),
      found.map(([state, n]) =>
        h(
          "span",
          { class: `badge s-${state.toLowerCase()}` },
          h("i"),
          h(
            "span",
            {},
            h("b", {}, count(n)),
            ` ${state.toLowerCase()}`,
            total ? ` (${percent(n / total)})` : "",
          ),
        ),
      ),
    ]);
  };
  return { shown: [line, legend], update };
}

export function empty(title, text, code = null, level = "h2") {
  return h(
    "div",
    { class: "empty" },
    h(level, {}, title),
    h("p", {}, text),
    code && h("pre", {}, code),
  );
}

export function failed(error) {
  const advice =
    error.status === 404
      ? "It may have been removed since, or the address is wrong."
      : "Load the page again to try once more.";
  return empty(
    error.status === 404 ? "There is no such thing here" : "This could not be loaded",
    `${error.message} ${advice}`,
    null,
    "h1",
  );
}
