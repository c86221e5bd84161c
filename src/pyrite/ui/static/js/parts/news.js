// What a screen reader says, although nothing that has the focus has changed.

import { setText } from "../dom.js";

export function announce(text) {
  setText(document.getElementById("news"), text);
}
