// A chart of what happened when: one lane for each worker or peer, and a time axis.

import { h } from "../dom.js";
import { moment, seconds } from "../format.js";

const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
  1800, 3600, 7200, 14400, 43200, 86400,
];

// `lanes` is [[name, [{start, end, state, ...}]]]; `draw(bar, left, width)` makes the element of a
// bar, whose left edge and width are given in percent.
export function laneChart({ lanes, start, end, draw, label, absolute = false }) {
  const length = Math.max(1e-6, end - start);
  const place = (time) => (Math.max(0, Math.min(length, time - start)) / length) * 100;
  const chart = h(
    "div",
    { class: "lanes", role: "group", "aria-label": label },
    lanes.map(([name, bars]) => [
      h("div", { class: "who", title: name }, name),
      h(
        "div",
        { class: "lane" },
        bars.map((bar) => {
          const left = place(bar.start);
          return draw(bar, left, Math.max(0, place(bar.end) - left));
        }),
      ),
    ]),
    ticks(start, length, absolute),
  );
  walkable(chart);
  return chart;
}

// The tab key stops at one bar, and the arrow keys go from there: there may be thousands. Bars that
// cannot be chosen have nothing to stop at, so that the chart itself does, to be scrolled.
function walkable(chart) {
  const bars = [...chart.querySelectorAll("button")];
  if (!bars.length) {
    chart.setAttribute("tabindex", "0");
    return;
  }
  bars.forEach((bar, n) => bar.setAttribute("tabindex", n ? "-1" : "0"));
  chart.addEventListener("keydown", (event) => {
    const now = bars.indexOf(event.target);
    const next = {
      ArrowRight: bars[now + 1],
      ArrowLeft: bars[now - 1],
      ArrowDown: firstOf(event.target, "next"),
      ArrowUp: firstOf(event.target, "previous"),
      Home: bars[0],
      End: bars[bars.length - 1],
    }[event.key];
    if (!next || now < 0) return;
    event.preventDefault();
    next.focus();
  });
}

// The first bar of the lane below or above.
function firstOf(bar, way) {
  let lane = bar.parentNode;
  do lane = lane[`${way}ElementSibling`];
  while (lane && !lane.querySelector("button"));
  return lane && lane.querySelector("button");
}

function ticks(start, length, absolute) {
  const most = innerWidth < 640 ? 3 : 8;
  const step =
    STEPS.find((each) => length / each <= most) || 86400 * Math.ceil(length / most / 86400);
  const found = [];
  for (let n = 0; n * step <= length * 1.0001; n += 1) {
    const left = ((n * step) / length) * 100;
    const text = absolute ? moment(start + n * step) : seconds(n * step);
    found.push(h("span", { class: left > 94 ? "last" : null, css: { left: `${left}%` } }, text));
  }
  return h("div", { class: "ticks", "aria-hidden": "true" }, found);
}
