// Why a run failed: the error, the item and the traceback.

import { h } from "../dom.js";
import { card } from "./pieces.js";

export function failureCard(failure, onChoose) {
  const where = failure.vertex
    ? h(
        "button",
        { type: "button", onclick: () => onChoose(failure.vertex) },
        `Vertex ${failure.vertex}`,
      )
    : null;
  return card(
    "It failed",
    { kind: "failure", end: where },
    h("p", { class: "message" }, failure.message),
    failure.edge ? h("p", { class: "note" }, `Edge ${failure.edge}`) : null,
    failure.item
      ? h("div", {}, h("h3", {}, "Item"), h("pre", { class: "item" }, failure.item))
      : null,
    failure.traceback
      ? h("div", {}, h("h3", {}, "Traceback"), h("pre", { tabindex: "0" }, failure.traceback))
      : null,
  );
}
