/** Pause, resume and cancel of a run: the same requests as those of the command line, after a question. */

import { canWrite } from "../../access.ts";
import { runPath, send } from "../../api.ts";
import type { RunAnswer } from "../../api-types.ts";
import { confirmed, type Question } from "../../confirm-dialog.ts";
import { h, replace } from "../../dom.ts";

const QUESTIONS: Readonly<Record<string, (run: string) => Question>> = {
  pause: (run) => ({
    title: `Pause ${run}?`,
    text: "The run ends its current step and then waits until somebody resumes it.",
    action: "Pause",
  }),
  resume: (run) => ({
    title: `Resume ${run}?`,
    text: "The run goes on from its last committed step.",
    action: "Resume",
  }),
  cancel: (run) => ({
    title: `Cancel ${run}?`,
    text: "The run ends now and cannot be resumed. What it has committed, its checkpoints and its rollouts stay.",
    action: "Cancel the run",
    isDangerous: true,
  }),
};
const LABELS: Readonly<Record<string, string>> = { pause: "Pause", resume: "Resume", cancel: "Cancel" };

export interface RunActions {
  readonly element: HTMLElement;
  update(run: RunAnswer): void;
}

export function runActions(runId: string): RunActions {
  const buttons = h("span", { class: "run-buttons" });
  const told = h("p", { class: "small soft", role: "status" });
  const compare = h("a", { class: "button", href: `/compare?runs=${encodeURIComponent(runId)}` }, "Compare");
  const element = h("div", { class: "run-actions" }, compare, buttons, told);
  let shown = "";

  const act = async (action: string) => {
    const question = QUESTIONS[action]?.(runId);
    if (question === undefined || !(await confirmed(question))) return;
    told.textContent = "…";
    try {
      await send("POST", runPath(runId, "control"), { action });
      told.textContent = `${LABELS[action]} was requested.`;
    } catch (error) {
      told.textContent = error instanceof Error ? error.message : String(error);
    }
  };

  return {
    element,
    update({ phase }) {
      const actions = actionsOf(phase);
      if (actions.join() === shown) return;
      shown = actions.join();
      void canWrite().then((mayWrite) =>
        replace(
          buttons,
          mayWrite &&
            actions.map((action) =>
              h(
                "button",
                { class: "button", type: "button", onclick: () => void act(action) },
                LABELS[action],
              ),
            ),
        ),
      );
    },
  };
}

function actionsOf(phase: string): readonly string[] {
  if (phase === "completed" || phase === "cancelled") return [];
  if (phase === "failed") return ["resume"];
  return phase === "paused" ? ["resume", "cancel"] : ["pause", "cancel"];
}
