// Which of the keys that an edge tells are worth a look. It is the rule of
// pyrite/watching/heavy_keys.py, where the reasons are.

const FEWEST_ITEMS = 200;
const WELL_ABOVE = 2;
const MOST_TOLD = 5;
const LARGEST_UNTOLD = 0.01;

export function notableKeys(vertex) {
  const edges = new Map();
  for (const key of vertex.heaviest_keys) {
    if (!edges.has(key.edge)) edges.set(key.edge, []);
    edges.get(key.edge).push(key);
  }
  return [...edges.values()].filter((keys) => isNotable(keys, vertex.processor_count)).flat();
}

function isNotable(keys, processorCount) {
  const shares = keys.map((key) => key.share);
  const heaviest = keys.reduce((best, key) => (key.share > best.share ? key : best));
  if (heaviest.share <= 0 || heaviest.count < FEWEST_ITEMS * heaviest.share) return false;
  if (keys.length === 1 && heaviest.share > 1 - LARGEST_UNTOLD) return processorCount > 1;
  const untold = keys.length >= MOST_TOLD ? Math.min(...shares) : LARGEST_UNTOLD;
  const told = shares.reduce((sum, share) => sum + share, 0);
  const others = keys.length - 1 + Math.max(0, 1 - told) / Math.max(untold, 1e-9);
  return heaviest.share * others > WELL_ABOVE * (1 - heaviest.share);
}
