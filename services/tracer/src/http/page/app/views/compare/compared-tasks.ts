/** The tasks that runs have in common, and two rollouts of one of them side by side. */

import { read } from "../../api.ts";
import type { CommonTask, TaskRollout } from "../../api-types.ts";
import { type Child, h, replace } from "../../dom.ts";
import { count, number } from "../../format.ts";
import { tableHead } from "../parts.ts";
import { sideBySide } from "./side-by-side.ts";

const SPLITS = ["train", "eval"];

export function comparedTasks(runIds: readonly string[], signal: AbortSignal): HTMLElement {
  const parameters = new URLSearchParams(window.location.search);
  const split = h(
    "select",
    { "aria-label": "Split" },
    SPLITS.map((name) => h("option", { value: name, selected: parameters.get("split") === name }, name)),
  );
  const list = h("div", { class: "card table-wrap compared-tasks" });
  const detail = h("div", { "aria-live": "polite" });
  const keep = (change: Readonly<Record<string, string | undefined>>) => {
    for (const [name, value] of Object.entries(change)) {
      if (value === undefined) parameters.delete(name);
      else parameters.set(name, value);
    }
    window.history.replaceState(null, "", `?${parameters}`);
  };
  const showTask = async (taskId: string) => {
    keep({ task: taskId });
    const query = { runs: runIds.join(","), taskId };
    const { rollouts } = await read<{ readonly rollouts: readonly TaskRollout[] }>("/compare/task", {
      signal,
      query,
    });
    replace(
      detail,
      sideBySide({ taskId, rollouts, runIds, signal, chosen: (side) => parameters.get(side), keep }),
    );
  };
  const showTasks = async () => {
    const query = { runs: runIds.join(","), split: split.value };
    const { tasks } = await read<{ readonly tasks: readonly CommonTask[] }>("/compare/tasks", {
      signal,
      query,
    });
    replace(
      list,
      tasks.length === 0
        ? noTasks(runIds)
        : taskTable(tasks, runIds, (taskId) => void guarded(showTask(taskId))),
    );
  };
  const guarded = async (work: Promise<void>) => {
    try {
      await work;
    } catch (error) {
      if (!signal.aborted)
        replace(detail, h("p", { class: "notice" }, error instanceof Error ? error.message : String(error)));
    }
  };
  split.addEventListener("change", () => {
    keep({ split: split.value });
    void guarded(showTasks());
  });
  const task = parameters.get("task");
  void guarded(showTasks());
  if (task !== null) void guarded(showTask(task));
  return h(
    "section",
    { class: "section", id: "tasks" },
    h(
      "div",
      { class: "section-head" },
      h("h2", {}, runIds.length === 1 ? "Tasks of the run" : "The same tasks"),
      h("span", { class: "small faint" }, "mean reward, the largest difference first"),
      split,
    ),
    list,
    detail,
  );
}

function noTasks(runIds: readonly string[]): Child {
  return h(
    "p",
    { class: "empty" },
    runIds.length === 1
      ? "No rollouts of this split are stored."
      : "The runs have no task of this split in common.",
  );
}

function taskTable(
  tasks: readonly CommonTask[],
  runIds: readonly string[],
  onChoose: (taskId: string) => void,
): HTMLElement {
  return h(
    "table",
    {},
    tableHead([["Task"], ...runIds.map((runId) => [runId, true] as const)]),
    h(
      "tbody",
      {},
      tasks.map(({ taskId, byRun }) =>
        h(
          "tr",
          {},
          h(
            "td",
            { class: "task-cell" },
            h(
              "button",
              { class: "link-button mono", type: "button", onclick: () => onChoose(taskId) },
              taskId || "(no id)",
            ),
          ),
          runIds.map((runId) => {
            const of = byRun[runId];
            return h(
              "td",
              { class: "right" },
              of === undefined
                ? h("span", { class: "faint" }, "–")
                : [
                    number(of.reward, 3),
                    h("span", { class: "faint small" }, ` ${count(of.rollouts)} rollouts`),
                  ],
            );
          }),
        ),
      ),
    ),
  );
}
