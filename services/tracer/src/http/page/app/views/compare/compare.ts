/**
 * The view that compares runs: their curves over each other, the settings that differ, and what they did with the same task, across
 * versions and runs. What is compared stands in the address.
 */

import { ApiError, read, runPath, searchOf } from "../../api.ts";
import type { ListedRun, RunAnswer } from "../../api-types.ts";
import { type Child, h, replace } from "../../dom.ts";
import type { ViewContext } from "../../view.ts";
import { growingSeries } from "../run/series.ts";
import { type ComparedRun, comparedCurves } from "./compared-curves.ts";
import { comparedTasks } from "./compared-tasks.ts";
import { settingsTable } from "./settings-diff.ts";

/** As many as there are colours; the API takes no more. */
const MAX_RUNS = 8;

export async function compareView({ root, signal, setPlace, navigate }: ViewContext): Promise<void> {
  setPlace("Compare", [["Compare"]]);
  const parameters = new URLSearchParams(window.location.search);
  const wanted = [
    ...new Set((parameters.get("runs") ?? "").split(",").filter((runId) => runId !== "")),
  ].slice(0, MAX_RUNS);
  // Asked for at once, as the answers do not depend on one another.
  const [{ runs: known }, ...loaded] = await Promise.all([
    read<{ readonly runs: readonly ListedRun[] }>("/runs", { signal }),
    ...wanted.map((runId) => loadRun(runId, signal)),
  ]);
  const go = (runIds: readonly string[]) =>
    navigate(`/compare${runIds.length === 0 ? "" : `?${searchOf({ runs: runIds.join(",") })}`}`);
  const head = [
    h("div", { class: "section-head" }, h("h1", {}, "Compare runs")),
    runChooser(wanted, known, go),
  ];
  if (wanted.length === 0) {
    replace(
      root,
      head,
      h(
        "div",
        { class: "card empty" },
        h("p", {}, "Choose the runs to compare. One alone shows its tasks across its versions."),
      ),
    );
    return;
  }
  const missing = wanted.filter((_, index) => loaded[index] === undefined);
  const compared = loaded.filter((run) => run !== undefined);
  replace(
    root,
    head,
    missing.map((runId) => h("p", { class: "notice" }, `${runId} is not stored.`)),
    compared.length > 0 && [
      comparedCurves(compared),
      h(
        "section",
        { class: "section", id: "settings" },
        h("div", { class: "section-head" }, h("h2", {}, "Settings that differ")),
        settingsTable(
          compared.map(({ runId }) => runId),
          compared.map(({ config }) => config),
        ),
      ),
      comparedTasks(
        compared.map(({ runId }) => runId),
        signal,
      ),
    ],
  );
}

async function loadRun(runId: string, signal: AbortSignal): Promise<ComparedRun | undefined> {
  const series = growingSeries(runId, signal);
  try {
    const [run] = await Promise.all([read<RunAnswer>(runPath(runId), { signal }), series.readMore()]);
    return { runId, config: run.config, evaluations: run.evaluations, series: series.value };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return undefined;
    throw error;
  }
}

function runChooser(
  chosen: readonly string[],
  known: readonly ListedRun[],
  go: (runIds: readonly string[]) => void,
): Child {
  const rest = known.filter(({ runId }) => !chosen.includes(runId));
  const add = h(
    "select",
    { "aria-label": "Add a run", disabled: chosen.length >= MAX_RUNS || rest.length === 0 },
    h("option", { value: "" }, "Add a run …"),
    rest.map(({ runId }) => h("option", { value: runId }, runId)),
  );
  add.addEventListener("change", () => {
    if (add.value !== "") go([...chosen, add.value]);
  });
  return h(
    "div",
    { class: "compared-runs" },
    chosen.map((runId, index) =>
      h(
        "span",
        { class: `badge compared-run curve-${index + 1}` },
        h("span", { class: "swatch swatch-line" }),
        h("a", { href: `/runs/${encodeURIComponent(runId)}` }, runId),
        h(
          "button",
          {
            class: "link-button",
            type: "button",
            "aria-label": `Leave out ${runId}`,
            onclick: () => go(chosen.filter((other) => other !== runId)),
          },
          "✕",
        ),
      ),
    ),
    add,
  );
}
