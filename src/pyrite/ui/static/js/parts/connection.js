// The banner that says that the server cannot be reached, or cannot read what is shown.

import { setText } from "../dom.js";

const LOST = "The connection to the server is lost. Trying again …";
const missing = new Map();
let timer = null;

function show() {
  const banner = document.getElementById("banner");
  banner.hidden = missing.size === 0;
  setText(banner, [...new Set(missing.values())].join(" "));
}

export const connection = {
  lost(token, why = LOST) {
    missing.set(token, why);
    clearTimeout(timer);
    timer = setTimeout(show, 700); // a short break is no news
  },
  found(token) {
    if (!missing.delete(token)) return;
    clearTimeout(timer);
    show();
  },
};
