// A small chart of two rates over time.

import { h, s } from "../dom.js";
import { rate } from "../format.js";

const WIDTH = 300;
const HEIGHT = 56;

// `series` is [[label, class, numbers]].
export function spark(times, series) {
  if (times.length < 2)
    return h("p", { class: "note" }, "Rates are shown as soon as there are two.");
  const most = Math.max(1e-9, ...series.flatMap(([, , values]) => values));
  const [first, last] = [times[0], times[times.length - 1]];
  const x = (t) => ((t - first) / Math.max(1e-9, last - first)) * WIDTH;
  const y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 6);
  const lines = series.map(([label, kind, values]) => {
    const points = values.map((value, n) => `${x(times[n]).toFixed(1)} ${y(value).toFixed(1)}`);
    const line = `M${points.join("L")}`;
    return s(
      "g",
      { class: kind },
      s("title", {}, label),
      s("path", { class: "area", d: `${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}z` }),
      s("path", { d: line }),
    );
  });
  const now = series
    .map(([label, , values]) => `${label} ${rate(values[values.length - 1])}`)
    .join(", ");
  return [
    s(
      "svg",
      {
        class: "spark",
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": now,
      },
      lines,
    ),
    h(
      "div",
      { class: "spark-keys" },
      series.map(([label, kind, values]) =>
        h("span", { class: kind }, h("i"), `${label} ${rate(values[values.length - 1])}`),
      ),
      h("span", {}, `most ${rate(most)}`),
    ),
  ];
}
