// What the details beside a graph have in common: their head, and a group of boxes.

import { h } from "../dom.js";
import { count } from "../format.js";
import { badge } from "./pieces.js";

export function panelHead(name, state, onClose) {
  const close = h(
    "button",
    {
      type: "button",
      class: "quiet-button",
      "aria-label": "Close the details",
      title: "Close (Esc)",
      onclick: onClose,
    },
    "✕",
  );
  return h(
    "div",
    { class: "head" },
    h("h2", { class: "name" }, name),
    state ? badge(state, { pill: true }) : null,
    close,
  );
}

const NAMES_MAX = 100;

// `many` is how many of what, as in "96 jobs".
export function groupDetail({ names, many, stateOf, onChoose, onUnfold }) {
  const row = (name) =>
    h(
      "button",
      { class: "quiet-button", type: "button", onclick: () => onChoose(name) },
      badge(stateOf(name)),
      name,
    );
  const left = names.length - NAMES_MAX;
  return [
    h("p", { class: "note" }, `${many} shown as one box. A double click on it unfolds it.`),
    h("button", { type: "button", onclick: onUnfold }, "Unfold"),
    h(
      "div",
      {},
      names.slice(0, NAMES_MAX).map((name) => h("div", {}, row(name))),
      left > 0 ? h("p", { class: "note" }, `And ${count(left)} others.`) : null,
    ),
  ];
}
