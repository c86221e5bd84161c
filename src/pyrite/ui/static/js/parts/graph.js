// A graph from the server that can be moved, zoomed, folded and walked through with the keyboard.

import { getText } from "../api.js";
import { h, s, setState, setText } from "../dom.js";

const LARGEST = 4;
const LARGEST_AT_FIRST = 1.15;
const SMALLEST_FIT = 0.6;
const SMALLEST_TEXT = 0.7; // at less than this, text cannot be read
const MOST_MOVING = 60;

// Of the states of the members of a group, the one that a person should know first.
const FIRST = ["crashed", "failed", "timeout", "running", "assigned", "blocked", "cancelled"];

export class Graph {
  constructor({ path, label, onChoose }) {
    this.path = path;
    this.onChoose = onChoose;
    this.unfold = new Set();
    this.vertices = new Map();
    this.edges = [];
    this.groupOf = new Map();
    this.chosen = null;
    this.moved = false;
    this.view = h("div", { class: "graph-view", role: "group", "aria-label": label });
    this.folding = h("button", { type: "button", class: "wide", hidden: true });
    this.folding.addEventListener("click", () => this.toggleAll());
    this.tools = h(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "Graph" },
      this.folding,
      tool("−", "Zoom out (-)", () => this.zoom(1 / 1.3)),
      tool("+", "Zoom in (+)", () => this.zoom(1.3)),
      tool("Fit", "Fit all of it (0)", () => this.fit(true)),
    );
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.resized = new ResizeObserver(() => this.svg && (this.moved ? this.apply() : this.fit()));
    this.resized.observe(this.view);
  }

  stop() {
    this.resized.disconnect();
  }

  async load() {
    const query = [...this.unfold].map((name) => `unfold=${encodeURIComponent(name)}`).join("&");
    const text = await getText(query ? `${this.path}?${query}` : this.path);
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (parsed.nodeName !== "svg") throw new Error("The server sent a graph that cannot be read.");
    this.svg = document.importNode(parsed, true);
    const [x, y, width, height] = this.svg.getAttribute("viewBox").split(/[ ,]+/).map(Number);
    this.whole = { x, y, width, height };
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    this.svg.setAttribute("role", "group");
    this.vertices = new Map();
    this.groupOf = new Map();
    for (const element of this.svg.querySelectorAll(".vertex")) {
      const name = element.dataset.vertex;
      const members = element.dataset.members ? JSON.parse(element.dataset.members) : null;
      const box = element.querySelector(".box");
      this.vertices.set(name, {
        element,
        members,
        rate: element.querySelector(".rate"),
        shares: element.querySelector(".shares"),
        place: ["x", "y", "width", "height"].map((key) => Number(box.getAttribute(key))),
      });
      for (const member of members || []) this.groupOf.set(member, name);
    }
    this.stopAt(this.svg.querySelector(".vertex"));
    this.edges = [...this.svg.querySelectorAll(".edge")].map((element) => ({
      element,
      source: element.dataset.source,
      destination: element.dataset.destination,
      level: element.querySelector(".level"),
      track: element.querySelector(".track"),
    }));
    this.svg.classList.toggle("calm", this.edges.length > MOST_MOVING);
    const hasGroups = this.groupOf.size > 0;
    this.folding.hidden = !hasGroups && this.unfold.size === 0;
    setText(this.folding, hasGroups ? "Unfold all" : "Fold");
    this.listen();
    this.view.replaceChildren(this.svg);
    this.moved = false;
    this.fit();
    if (this.chosen !== null && !this.boxOf(this.chosen)) this.onChoose(null);
    else this.choose(this.chosen);
    if (this.repaint) this.repaint();
  }

  // The tab key stops at one vertex, and the arrow keys go from there: there may be hundreds.
  stopAt(vertex) {
    for (const { element } of this.vertices.values())
      element.setAttribute("tabindex", element === vertex ? "0" : "-1");
  }

  async toggleAll() {
    if (this.groupOf.size > 0) this.unfold = new Set(["*"]);
    else this.unfold.clear();
    await this.load();
  }

  async open(group) {
    this.unfold.add(group);
    await this.load();
  }

  // What stands for a vertex in the graph: its box, or that of its group.
  boxOf(name) {
    return this.vertices.has(name) ? name : this.groupOf.get(name);
  }

  // `stateOf(name)` gives the state of a vertex; `textOf(names)` the line below its name.
  paint(stateOf, textOf) {
    for (const [name, { element, members, rate, shares }] of this.vertices) {
      const names = members || [name];
      const counts = {};
      for (const each of names) {
        const state = String(stateOf(each) || "waiting").toLowerCase();
        counts[state] = (counts[state] || 0) + 1;
      }
      const state = together(counts);
      const text = textOf(names);
      setState(element, state);
      if (rate) setText(rate, text);
      element.setAttribute("aria-label", [...new Set([name, text, state])].join(", "));
      if (shares && members) drawShares(shares, counts, names.length);
    }
  }

  // `fillOf` is a map from "source\0destination" of the boxes to {fill, capacity, moves}.
  paintEdges(fillOf) {
    for (const { element, source, destination, level, track } of this.edges) {
      const found = fillOf.get(`${source}\0${destination}`);
      const share = found && found.capacity ? Math.min(1, found.fill / found.capacity) : 0;
      element.classList.toggle("moving", Boolean(found && found.moves));
      element.classList.toggle("filled", share >= 0.05);
      element.classList.toggle("full", share > 0.85);
      if (!level) continue;
      level.setAttribute("width", (share * Number(track.getAttribute("width"))).toFixed(1));
      const title = element.querySelector("title");
      if (element.plainTitle === undefined) element.plainTitle = title.textContent;
      setText(
        title,
        found && found.capacity
          ? `${element.plainTitle}\n${found.fill} of ${found.capacity} items wait`
          : element.plainTitle,
      );
    }
  }

  choose(name) {
    this.chosen = name;
    const box = name === null ? null : this.boxOf(name);
    for (const [each, { element }] of this.vertices) {
      element.classList.toggle("chosen", each === box);
      element.setAttribute("aria-pressed", String(each === box));
    }
    if (!this.svg) return;
    this.svg.classList.toggle("has-chosen", Boolean(box));
    for (const { element, source, destination } of this.edges) {
      element.classList.toggle("near", Boolean(box) && (source === box || destination === box));
    }
  }

  // The focus goes to a vertex, as when its details are closed.
  focus(name) {
    const found = this.vertices.get(this.boxOf(name));
    if (!found) return;
    this.stopAt(found.element);
    found.element.focus({ preventScroll: true });
  }

  // Moves the graph until a vertex is in sight.
  show(name) {
    const found = this.vertices.get(this.boxOf(name));
    if (!found) return;
    const [x, y, width, height] = found.place;
    const seen = this.seen;
    if (
      x >= seen.x &&
      y >= seen.y &&
      x + width <= seen.x + seen.width &&
      y + height <= seen.y + seen.height
    )
      return;
    seen.x = x + width / 2 - seen.width / 2;
    seen.y = y + height / 2 - seen.height / 2;
    this.moved = true;
    this.apply();
  }

  fit(whole = false) {
    const available = this.view.clientWidth || 600;
    const { x, y, width, height } = this.whole;
    const scale = Math.min(LARGEST_AT_FIRST, available / width);
    const shownHeight = this.heightFor(height * Math.max(scale, SMALLEST_TEXT));
    this.view.style.setProperty("height", `${Math.round(shownHeight)}px`);
    let now = Math.min(scale, shownHeight / height);
    if (!whole && now < SMALLEST_FIT) now = SMALLEST_TEXT; // rather a part that can be read
    const seen = { width: available / now, height: shownHeight / now };
    seen.x = x + width / 2 - seen.width / 2;
    seen.y = seen.height >= height ? y + height / 2 - seen.height / 2 : y;
    this.seen = seen;
    this.moved = whole;
    this.apply();
  }

  // On a wide window the details stand beside the graph, so its height is always the same.
  heightFor(natural) {
    const most = Math.max(300, Math.min(innerHeight * 0.62, 820));
    return innerWidth > 1000 ? most : Math.min(most, Math.max(200, natural));
  }

  apply() {
    if (!this.view.clientWidth) return; // it is not in the page any more
    const { x, y, width } = this.seen;
    const scale = this.view.clientWidth / width;
    this.seen.height = this.view.clientHeight / scale;
    this.svg.setAttribute(
      "viewBox",
      [x, y, width, this.seen.height].map((n) => n.toFixed(1)).join(" "),
    );
  }

  zoom(factor, at = null) {
    const { clientWidth: width, clientHeight: height } = this.view;
    const scale = width / this.seen.width;
    const least =
      Math.min(SMALLEST_TEXT, width / this.whole.width, height / this.whole.height) * 0.9;
    const next = Math.min(LARGEST, Math.max(least, scale * factor));
    const [px, py] = at || [width / 2, height / 2];
    const [ux, uy] = [this.seen.x + px / scale, this.seen.y + py / scale];
    this.seen.width = width / next;
    this.seen.height = height / next;
    this.seen.x = ux - px / next;
    this.seen.y = uy - py / next;
    this.moved = true;
    this.apply();
  }

  listen() {
    const { svg } = this;
    let from = null;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      from = { x: event.clientX, y: event.clientY, seen: { ...this.seen }, moved: false };
    });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < 5) return;
      if (!from.moved) {
        from.moved = true;
        svg.setPointerCapture(event.pointerId);
        svg.classList.add("held");
      }
      const scale = this.view.clientWidth / this.seen.width;
      this.seen.x = from.seen.x - dx / scale;
      this.seen.y = from.seen.y - dy / scale;
      this.moved = true;
      this.apply();
    });
    const end = () => {
      svg.classList.remove("held");
      this.dragged = Boolean(from && from.moved);
      from = null;
    };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("click", (event) => {
      if (this.dragged) return;
      const vertex = event.target.closest(".vertex");
      this.onChoose(vertex ? vertex.dataset.vertex : null);
    });
    svg.addEventListener("dblclick", (event) => {
      const vertex = event.target.closest(".group");
      if (vertex) this.open(vertex.dataset.vertex);
    });
    svg.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the page
        event.preventDefault();
        const box = this.view.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * 0.004), [
          event.clientX - box.left,
          event.clientY - box.top,
        ]);
      },
      { passive: false },
    );
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const vertex = event.target.closest(".vertex");
    const handled = {
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.fit(true),
      Enter: () => vertex && this.onChoose(vertex.dataset.vertex),
      " ": () => vertex && this.onChoose(vertex.dataset.vertex),
      ArrowDown: () => this.step(vertex, 0, 1),
      ArrowUp: () => this.step(vertex, 0, -1),
      ArrowLeft: () => this.step(vertex, -1, 0),
      ArrowRight: () => this.step(vertex, 1, 0),
    }[event.key];
    if (!handled) return;
    event.preventDefault();
    handled();
  }

  // The nearest vertex in a direction gets the focus.
  step(vertex, dx, dy) {
    if (!vertex) return;
    const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
    const [x, y] = middle(this.vertices.get(vertex.dataset.vertex).place);
    let best = null;
    for (const [name, { element, place }] of this.vertices) {
      const [ox, oy] = middle(place);
      const along = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      const cost = along + 2.5 * aside;
      if (along > 4 && (!best || cost < best.cost)) best = { cost, element, name };
    }
    if (!best) return;
    this.stopAt(best.element);
    best.element.focus({ preventScroll: true });
    this.show(best.name);
  }
}

function tool(sign, title, act) {
  return h("button", { type: "button", title, "aria-label": title, onclick: act }, sign);
}

function together(counts) {
  const states = Object.keys(counts);
  if (states.length === 1) return states[0];
  const found = FIRST.find((state) => counts[state]);
  if (found) return found;
  return states.every((state) => ["done", "skipped", "completed"].includes(state))
    ? "completed"
    : "running";
}

function drawShares(shares, counts, total) {
  const key = JSON.stringify(counts);
  if (shares.drawn === key) return;
  shares.drawn = key;
  const width = Number(shares.dataset.width);
  let x = Number(shares.dataset.x);
  const wide = Object.entries(counts).map(([state, n]) => [state, Math.max(n / total, 0.03)]);
  const sum = wide.reduce((all, [, part]) => all + part, 0); // one of a thousand is seen, too
  const parts = wide.sort().map(([state, part]) => {
    const share = (width * part) / sum;
    const shown = s("rect", {
      class: `s-${state}`,
      x,
      y: shares.dataset.y,
      width: share,
      height: 5,
    });
    x += share;
    return shown;
  });
  shares.replaceChildren(...parts);
}
