/**
 * Makes elements. Text becomes text nodes and values become attributes, never markup, so the output of models and the
 * content of run files cannot become part of the page's structure. Characters that would act on the text around them, such as
 * those that turn its direction, are shown by their number.
 */

import { plainText } from "./format.ts";

/** What an element may contain; lists are flattened, and null, undefined and false are left out. */
export type Child = Node | string | number | bigint | boolean | null | undefined | readonly Child[];

/** Attributes, `on…` listeners, `vars` (custom properties) and `data`; null and false are left out. */
export interface Props {
  readonly vars?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

const SVG = "http://www.w3.org/2000/svg";
/** Attributes whose values are addresses; only those of this page are made. */
const ADDRESSES: ReadonlySet<string> = new Set(["href", "src", "action", "formaction"]);
/** Attributes that are shown or read out. */
const TEXTS: ReadonlySet<string> = new Set(["title", "alt", "aria-label", "placeholder"]);
/** Addresses of this page, fragments, the web, and pictures as data. No `javascript:` or other scheme that acts. */
const SAFE_ADDRESS = /^(\/(?!\/)|#|https?:\/\/|data:image\/(png|svg\+xml)[;,])/;

/** Makes an HTML element. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), props, children);
}

/** Makes an SVG element; see `h`. */
export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill<Made extends HTMLElement | SVGElement>(
  element: Made,
  { vars, data, ...props }: Props,
  children: readonly Child[],
): Made {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2).toLowerCase(), value as EventListener);
    else if (ADDRESSES.has(key) && !SAFE_ADDRESS.test(String(value))) continue;
    else
      element.setAttribute(
        key,
        value === true ? "" : TEXTS.has(key) ? plainText(String(value)) : String(value),
      );
  }
  if (vars !== undefined) setVars(element, vars);
  for (const [name, value] of Object.entries(data ?? {})) {
    if (value !== undefined && value !== null) element.dataset[name] = String(value);
  }
  append(element, children);
  return element;
}

/** Appends children. */
export function append(element: Element, children: Child): void {
  if (children === null || children === undefined || children === false) return;
  if (isList(children)) for (const child of children) append(element, child);
  else element.append(children instanceof Node ? children : plainText(String(children)));
}

function isList(child: Child): child is readonly Child[] {
  return Array.isArray(child);
}

/** Replaces all children by new ones. */
export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** Sets custom properties through the object model, as the policy forbids style attributes. */
export function setVars(element: HTMLElement | SVGElement, vars: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(`--${name}`, String(value));
}

/** Makes a path of this page from its parts. */
export function link(...parts: string[]): string {
  return `/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}
