// Talks to the server: JSON documents, requests that change something, and streams of events.

import { connection } from "./parts/connection.js";

export async function get(path) {
  return answered(await fetch(path, { headers: { Accept: "application/json" } }));
}

export async function getText(path) {
  const answer = await fetch(path);
  if (!answer.ok) await answered(answer);
  return answer.text();
}

export async function post(path) {
  return answered(await fetch(path, { method: "POST", headers: { "X-Pyrite": "1" } }));
}

async function answered(answer) {
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  const error = new Error(found.error || `The server answered ${answer.status}.`);
  error.status = answer.status;
  throw error;
}

const LONGEST_WAIT = 10_000;

// Calls handlers[event](document) for each event until it is stopped, or an "end" has come. It
// connects again after a failure. While nobody looks at the page, it listens to nothing. If the
// server says that it cannot read the document now, the banner says so.
export function listen(path, handlers) {
  let source = null;
  let timer = null;
  let wait = 500;
  let stopped = false;
  const token = {};

  function open() {
    if (stopped || source || document.hidden) return;
    source = new EventSource(path);
    source.onopen = () => {
      wait = 500;
      connection.found(token);
    };
    source.onerror = () => {
      if (stopped) return;
      close();
      connection.lost(token);
      timer = setTimeout(open, wait);
      wait = Math.min(LONGEST_WAIT, wait * 2);
    };
    source.addEventListener("problem", (message) =>
      connection.failed(token, JSON.parse(message.data).error),
    );
    for (const [event, handle] of Object.entries(handlers)) {
      source.addEventListener(event, (message) => {
        connection.found(token);
        handle(JSON.parse(message.data || "null"));
        if (event === "end") stop();
      });
    }
  }

  function close() {
    if (source) source.close();
    source = null;
    clearTimeout(timer);
  }

  function look() {
    if (document.hidden) close();
    else open();
  }

  function stop() {
    stopped = true;
    close();
    connection.found(token);
    document.removeEventListener("visibilitychange", look);
  }

  document.addEventListener("visibilitychange", look);
  open();
  return stop;
}
