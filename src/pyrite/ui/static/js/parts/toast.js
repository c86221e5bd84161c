// A short message that goes away by itself.

import { h } from "../dom.js";

export function toast(text, { bad = false } = {}) {
  const shown = h("div", { class: bad ? "toast bad" : "toast" }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), bad ? 9000 : 4500);
}
