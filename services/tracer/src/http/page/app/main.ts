/** The entry point, which chooses the view by the address. A view draws into `#view` and stops when its signal aborts. */

import { ApiError } from "./api.ts";
import { type Child, h, replace } from "./dom.ts";
import { showHealth } from "./health.ts";
import { setUpTheme } from "./theme.ts";
import type { Trail, ViewContext } from "./view.ts";
import { compareView } from "./views/compare/compare.ts";
import { rolloutView } from "./views/rollout/rollout.ts";
import { runView } from "./views/run/run.ts";
import { runsView } from "./views/runs.ts";
import { searchView } from "./views/search.ts";
import { traceView } from "./views/trace.ts";
import { waitingView } from "./views/waiting.ts";

interface Route {
  readonly pattern: RegExp;
  readonly view: (context: ViewContext) => Promise<void>;
  readonly names: readonly string[];
}

const ROUTES: readonly Route[] = [
  { pattern: /^\/$/, view: runsView, names: [] },
  { pattern: /^\/compare$/, view: compareView, names: [] },
  { pattern: /^\/search$/, view: searchView, names: [] },
  { pattern: /^\/runs\/([^/]+)$/, view: runView, names: ["run"] },
  { pattern: /^\/runs\/([^/]+)\/waiting\/([^/]+)$/, view: waitingView, names: ["run", "slot"] },
  { pattern: /^\/runs\/([^/]+)\/rollouts\/([^/]+)$/, view: rolloutView, names: ["run", "slot"] },
  { pattern: /^\/runs\/([^/]+)\/rollouts\/([^/]+)\/trace$/, view: traceView, names: ["run", "slot"] },
  { pattern: /^\/traces\/([^/]+)$/, view: traceView, names: ["trace"] },
];

const root = elementOf("view");
const crumbs = elementOf("crumbs");
let current: AbortController | undefined;

/** Draws the view that belongs to the address. */
async function show(): Promise<void> {
  current?.abort();
  current = new AbortController();
  const { signal } = current;
  const { pathname } = window.location;
  const route = ROUTES.find(({ pattern }) => pattern.test(pathname));
  if (route === undefined) {
    setPlace("Not found", []);
    replace(root, emptyState("Not found", `There is no page at the address ${pathname}.`));
    return;
  }
  const [, ...values] = route.pattern.exec(pathname) ?? [];
  const params = Object.fromEntries(
    route.names.map((name, i) => [name, decodeURIComponent(values[i] ?? "")]),
  );
  replace(root, skeleton());
  try {
    await route.view({ root, params, signal, setPlace, navigate });
  } catch (error) {
    if (signal.aborted) return;
    replace(root, failure(error));
  }
}

/** Sets the window's title and the breadcrumb. @param trail pairs of text and address; the last has no address. */
function setPlace(title: string, trail: Trail): void {
  document.title = title === "" ? "Hone" : `${title} · Hone`;
  replace(
    crumbs,
    trail.map(([text, href]) =>
      href === undefined ? h("span", { "aria-current": "page" }, text) : h("a", { href }, text),
    ),
  );
}

/** Goes to another address of this page. */
function navigate(href: string): void {
  window.history.pushState(null, "", href);
  window.scrollTo(0, 0);
  // Before the view is drawn, as it may give the focus to one of its fields.
  root.focus({ preventScroll: true });
  void show();
}

function emptyState(title: string, text: string): Child {
  return h(
    "div",
    { class: "card empty" },
    h("h2", {}, title),
    h("p", {}, text),
    h("p", {}, h("a", { href: "/" }, "All runs")),
  );
}

function failure(error: unknown): Child {
  if (error instanceof ApiError && error.status === 404) return emptyState("Not stored", error.message);
  if (error instanceof ApiError && error.status === 410) return emptyState("No longer kept", error.message);
  const text = error instanceof ApiError ? error.message : "This view could not be drawn.";
  if (!(error instanceof ApiError)) console.error(error);
  return h(
    "div",
    { class: "notice", role: "alert" },
    h("span", {}, text),
    h("button", { class: "button", type: "button", onclick: () => void show() }, "Try again"),
  );
}

function skeleton(): Child {
  return h(
    "div",
    { "aria-busy": "true", "aria-label": "Loading" },
    h("div", { class: "skeleton", vars: { height: "2.2rem" } }),
    h("div", { class: "section skeleton", vars: { height: "18rem" } }),
  );
}

document.addEventListener("click", (event) => {
  const anchor = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[href]") : null;
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (anchor === null || !isPlain || event.defaultPrevented || anchor.target !== "") return;
  const url = new URL(anchor.href);
  const isElsewhere = url.origin !== window.location.origin || url.pathname.startsWith("/api/");
  // The browser itself handles links to a fragment of the same page.
  if (isElsewhere || (url.hash !== "" && url.pathname === window.location.pathname)) return;
  event.preventDefault();
  navigate(url.pathname + url.search);
});
window.addEventListener("popstate", () => void show());

setUpTheme(elementOf("theme"));
showHealth(elementOf("health"));
void show();

/** An element of index.html. */
function elementOf(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return element;
}
