// The banner that says that the server cannot be reached, or cannot read what it shows.

import { setText } from "../dom.js";

const missing = new Set();
const problems = new Map();
let timer = null;

function show() {
  const banner = document.getElementById("banner");
  const [problem] = problems.values();
  const text = missing.size ? "The connection to the server is lost. Trying again …" : problem;
  banner.hidden = !text;
  setText(banner, text || "");
}

export const connection = {
  lost(token) {
    missing.add(token);
    clearTimeout(timer);
    timer = setTimeout(show, 700); // a short break is no news
  },
  // The server answers, but a store that it reads from does not.
  failed(token, sentence) {
    missing.delete(token);
    problems.set(token, `What is shown is not new: ${sentence}`);
    show();
  },
  found(token) {
    const had = problems.delete(token);
    if (!missing.delete(token) && !had) return;
    clearTimeout(timer);
    show();
  },
  get isWhole() {
    return missing.size === 0;
  },
};
