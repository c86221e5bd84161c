// The page: which address shows what, and the frame around it.

import { get } from "./api.js";
import { h, setContent } from "./dom.js";
import { durable, durables } from "./pages/durable.js";
import { run } from "./pages/run.js";
import { runs } from "./pages/runs.js";
import { workload } from "./pages/workload.js";
import { workloads } from "./pages/workloads.js";
import { failed } from "./parts/pieces.js";

// What is drawn into `main` gives back how to stop it.
const ROUTES = [
  [/^\/(?:runs\/?)?$/, "runs", runs],
  [/^\/runs\/([^/]+)\/?$/, "runs", run],
  [/^\/workloads\/?$/, "workloads", workloads],
  [/^\/workloads\/([^/]+)\/?$/, "workloads", workload],
  [/^\/durable\/?$/, "durable", durables],
  [/^\/durable\/([^/]+)\/?$/, "durable", durable],
];

const main = document.getElementById("main");
let stop = () => {};
let about = { sources: [] };

// A page draws into an element of its own: if a person has gone on before its answer is there, it
// draws where nobody looks.
async function show() {
  stop();
  stop = () => {};
  document.title = "Pyrite";
  const [match, section, page] = ROUTES.map(([pattern, ...rest]) => [
    location.pathname.match(pattern),
    ...rest,
  ]).find(([found]) => found) || [null, null, nowhere];
  navigation(section);
  const root = h("div", {}, h("p", { class: "loading" }, "Loading …"));
  main.replaceChildren(root);
  try {
    const ended = await page(root, match ? match.slice(1).map(decodeURIComponent) : [], about);
    if (root.isConnected) stop = ended || stop;
    else if (ended) ended();
  } catch (error) {
    root.replaceChildren(failed(error));
  }
}

async function nowhere() {
  throw Object.assign(new Error("No page has this address."), { status: 404 });
}

function navigation(section) {
  const kinds = new Set(about.sources.map((source) => source.kind));
  const links = [["runs", "/", "Runs"]];
  if (kinds.has("workload") || section === "workloads")
    links.push(["workloads", "/workloads", "Workloads"]);
  if (kinds.has("durable") || section === "durable") links.push(["durable", "/durable", "Durable"]);
  setContent(document.getElementById("nav"), JSON.stringify([links, section]), () =>
    links.map(([name, href, label]) =>
      h("a", { href, "aria-current": name === section ? "page" : null }, label),
    ),
  );
}

export function go(path) {
  history.pushState(null, "", path);
  scrollTo(0, 0);
  show();
  main.focus({ preventScroll: true }); // so that a screen reader goes on there
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (
    !link ||
    event.defaultPrevented ||
    event.button ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey
  )
    return;
  const href = link.getAttribute("href");
  if (!href.startsWith("/") || href.startsWith("/static") || href.startsWith("/api") || link.target)
    return;
  event.preventDefault();
  go(href);
});

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest("input, select, textarea, dialog");
  if (event.key !== "/" || writes || event.ctrlKey || event.metaKey) return;
  const box = document.querySelector('[data-shortcut="/"]');
  if (!box) return;
  event.preventDefault();
  box.focus();
});

addEventListener("popstate", show);

try {
  about = await get("/api/about");
  document.getElementById("place").textContent = [
    about.host,
    about.version && `Pyrite ${about.version}`,
  ]
    .filter(Boolean)
    .join(" · ");
} catch {
  // the page itself will say what is wrong
}
show();
