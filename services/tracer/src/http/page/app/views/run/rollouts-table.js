/** The table of a run's rollouts, with a filter. The filter is kept in the address, so that a link to the view includes it. */

import { read } from "../../api.ts";
import { h, link, replace } from "../../dom.ts";
import { count, milliseconds, number, signed } from "../../format.ts";
import { OUTCOME_NAMES, outcomeText } from "../parts.ts";

const PAGE = 25;
const SPLITS = ["train", "eval", "warm"];
const FIELDS = ["split", "step", "task", "outcome", "minReward", "maxReward"];
/** Advantages are normalised; the bar shows values beyond three like three. */
const WIDEST_ADVANTAGE = 3;

export async function rolloutsTable({ runId, signal }) {
  const path = `/runs/${encodeURIComponent(runId)}/rollouts`;
  const body = h("tbody");
  const wrap = h("div", { class: "table-wrap" }, h("table", { class: "rollouts" }, header(), body));
  const more = h("button", { class: "button", type: "button" }, "Older rollouts");
  const moreRow = h("div", { class: "more" }, more);
  const total = h("span", { class: "small faint num" });
  const problem = h("div", { class: "notice", role: "alert", hidden: true });
  const empty = h("div", { class: "empty", hidden: true });
  const form = filterForm(() => void reload());
  const element = h(
    "section",
    { class: "section", id: "rollouts" },
    h("div", { class: "section-head" }, h("h2", {}, "Rollouts"), total),
    h("div", { class: "card" }, form, problem, wrap, empty, moreRow),
  );
  let nextBeforeId = null;
  let pages = 0;
  let asked = 0;

  const readPage = (before) => read(path, { signal, query: { ...filterOf(form), limit: PAGE, before } });

  /** Reads and shows the first page; an answer that comes after a newer request was made is ignored. */
  const loadFirst = async () => {
    const question = ++asked;
    const page = await readPage();
    if (question === asked) showFirst(page);
  };

  const showFirst = (page) => {
    pages = 1;
    nextBeforeId = page.nextBeforeId;
    const focused = document.activeElement?.closest?.(".slot-link")?.getAttribute("href");
    replace(
      body,
      page.rollouts.map((rollout) => row(runId, rollout)),
    );
    if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    wrap.hidden = page.rollouts.length === 0;
    empty.hidden = page.rollouts.length > 0;
    const isFiltered = Object.keys(filterOf(form)).length > 0;
    empty.textContent = isFiltered
      ? "No rollout matches these filters."
      : "No rollouts yet. They appear when they have been scored.";
    moreRow.hidden = nextBeforeId === null;
  };

  const reload = async () => {
    keepInAddress(filterOf(form));
    try {
      await loadFirst();
      problem.hidden = true;
    } catch (error) {
      if (signal.aborted) return;
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };

  const refreshTotal = async () => {
    const { counts } = await read(`/runs/${encodeURIComponent(runId)}/rollout-counts`, { signal });
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
      const page = await readPage(nextBeforeId);
      if (question !== asked) return;
      pages++;
      nextBeforeId = page.nextBeforeId;
      body.append(...page.rollouts.map((rollout) => row(runId, rollout)));
      moreRow.hidden = nextBeforeId === null;
    } finally {
      more.disabled = false;
    }
  });

  await Promise.all([reload(), refreshTotal()]);
  return {
    element,
    /** Shows new rollouts, unless older pages have been opened. */
    async refresh() {
      await refreshTotal();
      if (pages <= 1) await loadFirst();
    },
  };
}

function filterForm(onInput) {
  const stored = new URLSearchParams(window.location.search);
  const choice = (name, label, values) =>
    h(
      "label",
      {},
      label,
      h(
        "select",
        { name },
        h("option", { value: "" }, "any"),
        values.map((value) =>
          h("option", { value, selected: stored.get(name) === value }, value.replaceAll("_", " ")),
        ),
      ),
    );
  const figure = (name, label, step) =>
    h(
      "label",
      {},
      label,
      h("input", { type: "number", name, step, value: stored.get(name), placeholder: "any" }),
    );
  const form = h(
    "form",
    { class: "filters", "aria-label": "Filter rollouts", onsubmit: (event) => event.preventDefault() },
    choice("split", "Split", SPLITS),
    figure("step", "Step", 1),
    figure("task", "Task", 1),
    choice("outcome", "Outcome", OUTCOME_NAMES),
    figure("minReward", "Reward from", "any"),
    figure("maxReward", "to", "any"),
    h("button", { class: "button", type: "button", onclick: () => clear() }, "Clear"),
  );
  form.addEventListener("input", onInput);
  // The form's own reset would bring back the values from the address.
  const clear = () => {
    for (const name of FIELDS) form.elements[name].value = "";
    onInput();
  };
  return form;
}

function filterOf(form) {
  return Object.fromEntries(
    FIELDS.map((name) => [name, form.elements[name].value.trim()]).filter(([, value]) => value !== ""),
  );
}

function keepInAddress(filter) {
  const search = new URLSearchParams(filter).toString();
  window.history.replaceState(
    null,
    "",
    search === "" ? window.location.pathname : `${window.location.pathname}?${search}`,
  );
}

const COLUMNS = [
  ["Rollout", false],
  ["Outcome", false],
  ["Reward", true],
  ["Advantage", false],
  ["Turns", true],
  ["Tokens", true],
  ["Time", true],
  ["Task", false],
];

function header() {
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      COLUMNS.map(([text, isRight]) => h("th", { class: isRight && "right", scope: "col" }, text)),
    ),
  );
}

function row(runId, rollout) {
  const { slot, outcome, reward, advantage, turns, sampledTokens, totalTokens, durationMs, taskId, attempt } =
    rollout;
  return h(
    "tr",
    {},
    h(
      "td",
      {},
      h("a", { class: "slot-link mono", href: link("runs", runId, "rollouts", slot) }, slot),
      attempt > 1 && h("span", { class: "small faint" }, ` attempt ${attempt}`),
    ),
    h("td", {}, outcomeText(outcome)),
    h("td", { class: "right" }, number(reward, 3)),
    h("td", {}, advantageMeter(advantage)),
    h("td", { class: "right" }, turns),
    h(
      "td",
      { class: "right", title: "sampled of all" },
      count(sampledTokens),
      h("span", { class: "faint" }, ` / ${count(totalTokens)}`),
    ),
    h("td", { class: "right" }, milliseconds(durationMs)),
    h("td", { class: "mono soft" }, taskId),
  );
}

/** A bar to the left or right of the middle, with the number. */
export function advantageMeter(advantage) {
  if (advantage === null || advantage === undefined) return h("span", { class: "faint" }, "–");
  const size = Math.min(1, Math.abs(advantage) / WIDEST_ADVANTAGE) / 2;
  const isUp = advantage >= 0;
  return h(
    "span",
    { class: "meter" },
    h(
      "span",
      { class: "meter-track", "aria-hidden": "true" },
      h("span", { data: { sign: isUp ? "up" : "down" }, vars: { from: isUp ? 0.5 : 0.5 - size, size } }),
    ),
    h("span", { class: "num" }, signed(advantage)),
  );
}
