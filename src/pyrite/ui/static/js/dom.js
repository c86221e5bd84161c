// Makes elements. What is not an element becomes text, so that a name that a user has chosen can
// never become markup.

export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") setStyle(element, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(isShown).map(asNode));
  return element;
}

const isShown = (child) => child !== null && child !== undefined && child !== false;
const asNode = (child) => (child instanceof Node ? child : document.createTextNode(String(child)));

// The policy of the page forbids style attributes; the properties may be set.
export function setStyle(element, properties) {
  for (const [name, value] of Object.entries(properties)) element.style.setProperty(name, value);
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Replaces what is in an element, but only if its key is another one than the last time: so what a
// person has focused or selected stays as long as nothing has changed. If what had the focus is made
// anew, the new one gets it.
export function setContent(element, key, make) {
  if (element.contentKey === key) return;
  element.contentKey = key;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const called = focused && focused !== element ? nameOf(focused) : null;
  element.replaceChildren(...[make()].flat(Infinity).filter(isShown).map(asNode));
  if (called === null) return;
  const again = [...element.querySelectorAll(focused.tagName)].find(
    (each) => nameOf(each) === called,
  );
  if (again) again.focus({ preventScroll: true });
}

// Without numbers: these may have changed.
const nameOf = (element) =>
  (element.dataset.job || element.getAttribute("aria-label") || element.textContent)
    .replace(/\d[\d.,]*/g, "#");

export function setState(element, state) {
  const wanted = `s-${String(state).toLowerCase()}`;
  for (const each of [...element.classList]) {
    if (each.startsWith("s-") && each !== wanted) element.classList.remove(each);
  }
  element.classList.add(wanted);
}
