// The banner that says that the server cannot be reached.

import { setText } from "../dom.js";

const missing = new Set();
let timer = null;

function show() {
  const banner = document.getElementById("banner");
  banner.hidden = missing.size === 0;
  setText(banner, missing.size ? "The connection to the server is lost. Trying again …" : "");
}

export const connection = {
  lost(token) {
    missing.add(token);
    clearTimeout(timer);
    timer = setTimeout(show, 700); // a short break is no news
  },
  found(token) {
    if (!missing.delete(token)) return;
    clearTimeout(timer);
    show();
  },
};
