/** A list of rollouts, of one run or of all: filtered, searched, and sorted by the heads of its columns. */

import { type Query, read, runPath, searchOf } from "../../api.ts";
import type { ListedRollout } from "../../api-types.ts";
import { h, replace } from "../../dom.ts";
import { count } from "../../format.ts";
import { rolloutFilter } from "./rollout-filter.ts";
import { rolloutRow } from "./rollout-row.ts";

const PAGE = 25;
/** Heads of the columns: text, name of the sort, whether the column is aligned to the right. */
const COLUMNS = [
  ["Rollout", "rollout", false],
  ["Outcome", "outcome", false],
  ["Reward", "reward", true],
  ["Advantage", "advantage", false],
  ["Turns", "turns", true],
  ["Tokens", "tokens", true],
  ["Time", "time", true],
  ["Task", "task", false],
] as const;

interface ListAnswer {
  readonly rollouts: readonly ListedRollout[];
  readonly nextBeforeId: number | null;
  readonly nextOffset: number | null;
}

interface CountsAnswer {
  readonly counts: ReadonlyArray<{ readonly outcome: string; readonly count: number }>;
}

export interface RolloutsTableOptions {
  /** Undefined = of all runs. */
  readonly runId: string | undefined;
  readonly signal: AbortSignal;
}

export interface RolloutsTable {
  readonly element: HTMLElement;
  /** Resolves when the first page is shown. */
  readonly ready: Promise<void>;
  /** Shows new rollouts, unless older pages have been opened. */
  refresh(): Promise<void>;
  /** Counts the run's rollouts. */
  refreshTotal(): Promise<void>;
}

export function rolloutsTable({ runId, signal }: RolloutsTableOptions): RolloutsTable {
  const path = runId === undefined ? "/rollouts" : runPath(runId, "rollouts");
  const body = h("tbody");
  const head = sortHead(runId === undefined, () => void reload());
  const wrap = h("div", { class: "table-wrap" }, h("table", { class: "rollouts" }, head.element, body));
  const more = h("button", { class: "button", type: "button" }, "More rollouts");
  const moreRow = h("div", { class: "more" }, more);
  const total = h("span", { class: "small faint num" });
  const problem = h("div", { class: "notice", role: "alert", hidden: true });
  const empty = h("div", { class: "empty", hidden: true });
  const filter = rolloutFilter(() => void reload());
  const element = h(
    "section",
    { class: "section", id: "rollouts" },
    h("div", { class: "section-head" }, h("h2", {}, "Rollouts"), total),
    h("div", { class: "card" }, filter.element, problem, wrap, empty, moreRow),
  );
  let next: Query | undefined;
  let pages = 0;
  let asked = 0;

  const query = (): Query => ({ ...filter.values(), ...head.values() });
  const readPage = (from: Query = {}) =>
    read<ListAnswer>(path, { signal, query: { ...query(), limit: PAGE, ...from } });
  const rowsOf = ({ rollouts }: ListAnswer) =>
    rollouts.map((rollout) => rolloutRow(rollout, runId === undefined));
  const setNext = ({ nextBeforeId, nextOffset }: ListAnswer) => {
    next =
      nextBeforeId !== null
        ? { before: nextBeforeId }
        : nextOffset !== null
          ? { offset: nextOffset }
          : undefined;
    moreRow.hidden = next === undefined;
  };

  /** Reads and shows the first page; an answer that comes after a newer request was made is ignored. */
  const loadFirst = async () => {
    const question = ++asked;
    const page = await readPage();
    if (question !== asked) return;
    pages = 1;
    setNext(page);
    const focused = document.activeElement?.closest(".slot-link")?.getAttribute("href");
    replace(body, rowsOf(page));
    if (focused)
      body.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    wrap.hidden = page.rollouts.length === 0;
    empty.hidden = page.rollouts.length > 0;
    empty.textContent =
      searchOf(filter.values()) !== ""
        ? "No rollout matches these filters."
        : "No rollouts yet. They appear when they have been scored.";
  };

  /** Shows the first page, or why there is none, such as a search that is refused. */
  const show = async () => {
    try {
      await loadFirst();
      problem.hidden = true;
    } catch (error) {
      if (signal.aborted) return;
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  };
  const reload = () => {
    keepInAddress(query());
    return show();
  };

  const refreshTotal = async () => {
    if (runId === undefined) return;
    const { counts } = await read<CountsAnswer>(runPath(runId, "rollout-counts"), { signal });
    const sum = counts.reduce((all, each) => all + each.count, 0);
    const left = counts
      .filter(({ outcome }) => outcome === "infra_failed")
      .reduce((all, each) => all + each.count, 0);
    total.textContent =
      sum === 0
        ? ""
        : `${count(sum)} stored${left > 0 ? `, ${count(left)} of them failed outside the agent` : ""}`;
  };

  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      const question = ++asked;
      const page = await readPage(next);
      if (question !== asked) return;
      pages++;
      setNext(page);
      const known = body.rows.length;
      const rows = h("tbody", {}, rowsOf(page));
      body.append(...rows.children);
      // The button may be gone, so the focus goes on to the first new rollout.
      body.rows[known]?.querySelector<HTMLElement>(".slot-link")?.focus({ preventScroll: true });
    } finally {
      more.disabled = false;
    }
  });

  const shown = reload();
  return {
    element,
    ready: shown,
    async refresh() {
      if (pages <= 1) await show();
    },
    refreshTotal,
  };
}

interface SortHead {
  readonly element: HTMLElement;
  values(): Query;
}

/** The heads of the columns as buttons: once for the largest first, again for the smallest, and again for the newest. */
function sortHead(isOfAllRuns: boolean, onChange: () => void): SortHead {
  const stored = new URLSearchParams(window.location.search);
  let sort = COLUMNS.map(([, name]) => name).find((name) => name === stored.get("sort"));
  let isAscending = stored.get("order") === "asc";
  const heads = COLUMNS.map(([text, name, isRight]) => {
    const button = h("button", { class: "sort-button", type: "button" }, text);
    button.addEventListener("click", () => {
      if (sort !== name) [sort, isAscending] = [name, false];
      else if (!isAscending) isAscending = true;
      else [sort, isAscending] = [undefined, false];
      show();
      onChange();
    });
    return { name, cell: h("th", { class: isRight && "right", scope: "col" }, button) };
  });
  const show = () => {
    for (const { name, cell } of heads) {
      if (name === sort) cell.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    }
  };
  show();
  return {
    element: h(
      "thead",
      {},
      h(
        "tr",
        {},
        isOfAllRuns && h("th", { scope: "col" }, "Run"),
        heads.map(({ cell }) => cell),
      ),
    ),
    values: () => (sort === undefined ? {} : { sort, order: isAscending ? "asc" : undefined }),
  };
}

function keepInAddress(query: Query): void {
  const search = searchOf(query);
  window.history.replaceState(null, "", search === "" ? window.location.pathname : `?${search}`);
}
