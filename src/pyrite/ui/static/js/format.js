// Numbers, times and sizes for people.

const WHOLE = new Intl.NumberFormat("en");

export const count = (n) => WHOLE.format(Math.round(n));

export function short(n) {
  if (n < 1000) return n < 10 && n % 1 ? n.toFixed(1) : String(Math.round(n));
  for (const [limit, unit] of [
    [1e6, "k"],
    [1e9, "M"],
    [1e12, "G"],
    [Infinity, "T"],
  ]) {
    if (n >= limit * 0.9995) continue;
    const value = n / (limit === Infinity ? 1e12 : limit / 1000);
    return `${value < 9.995 ? value.toFixed(1) : Math.round(value)}${unit}`;
  }
  return String(n);
}

export const rate = (n) => `${short(n || 0)}/s`;

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = n || 0;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 1e-3) return value > 0 ? `${Math.round(value * 1e6)} µs` : "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const two = (n) => String(n).padStart(2, "0");

export function clock(epoch) {
  const at = new Date(epoch * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function moment(epoch) {
  if (!epoch) return "";
  const at = new Date(epoch * 1000);
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return clock(epoch);
  const month = at.toLocaleString("en", { month: "short" });
  const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${month}${year} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export const percent = (share) =>
  `${share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
