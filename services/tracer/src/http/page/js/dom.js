/**
 * Makes elements. Text becomes text nodes and values become attributes, never markup, so the output of models and the
 * content of run files cannot become part of the page's structure.
 */

const SVG = "http://www.w3.org/2000/svg";

/** Makes an HTML element. `props` holds attributes, `on…` listeners, `vars` (custom properties) and `data`; null and false are left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an SVG element; see `h`. */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2).toLowerCase(), value);
    else if (key === "vars") setVars(element, value);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, String(value));
  }
  append(element, children);
  return element;
}

/** Appends a child or children; lists are flattened, null, undefined and false are left out. */
export function append(element, children) {
  for (const child of [children].flat(Number.POSITIVE_INFINITY)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces all children by new ones. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Sets custom properties through the object model, as the policy forbids style attributes. */
export function setVars(element, vars) {
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(`--${name}`, String(value));
}

/** Makes a path of this page from its parts. */
export function link(...parts) {
  return `/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}
