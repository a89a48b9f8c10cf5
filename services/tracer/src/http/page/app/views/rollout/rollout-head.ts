/** The head of a rollout: its figures, its group, the facts of its task, and what its agent was given and returned. */

import type { RolloutAnswer } from "../../api-types.ts";
import { type Child, h, link } from "../../dom.ts";
import { count, milliseconds, number, signed } from "../../format.ts";
import { outcomeBadge, tile } from "../parts.ts";
import { collapsedText } from "./collapsed-text.ts";

/** The title and the most important figures. */
export function rolloutHead(rollout: RolloutAnswer): Child {
  const { slot, outcome, reason, reward, advantage, runId, traceId } = rollout;
  return [
    h(
      "div",
      { class: "run-head" },
      h("h1", { class: "mono" }, slot),
      outcomeBadge(outcome),
      traceId !== "" &&
        h("a", { class: "button head-link", href: link("runs", runId, "rollouts", slot, "trace") }, "Trace"),
    ),
    reason !== "" && h("p", { class: "soft rollout-reason" }, reason),
    h(
      "dl",
      { class: "card tiles" },
      tile(
        "Reward",
        number(reward, 3),
        rollout.scores
          .map(
            ({ judge, weight, value }) =>
              `${judge} ${number(value, 3)}${weight === 1 ? "" : ` × ${number(weight, 3)}`}`,
          )
          .join(", "),
      ),
      tile(
        "Advantage",
        signed(advantage, 3),
        advantage === null
          ? "not trained, or not known"
          : rollout.figures?.["hone.turn.advantages.0"] === undefined
            ? "for each sampled token"
            : "for the episode; each turn has its own",
      ),
      tile(
        "Turns",
        count(rollout.turns.length),
        `attempt ${rollout.attempt}${rollout.numSamples > 1 ? `, in ${rollout.numSamples} samples` : ""}`,
      ),
      tile("Sampled tokens", count(rollout.sampledTokens), `of ${count(rollout.totalTokens)}`),
      tile("Time", milliseconds(rollout.durationMs), `${milliseconds(rollout.generationMs)} for the model`),
    ),
  ];
}

/** Links to the rollouts of the same task. */
export function groupStrip({ runId, group, slot }: RolloutAnswer): Child {
  if (group.length < 2) return null;
  return h(
    "nav",
    { class: "group", "aria-label": "Rollouts of the same task" },
    h("span", { class: "small faint" }, "Group"),
    group.map((member) =>
      h(
        "a",
        {
          class: "group-member",
          href: link("runs", runId, "rollouts", member.slot),
          "aria-current": member.slot === slot && "page",
          title: `${member.slot}: ${member.outcome.replaceAll("_", " ")}, reward ${number(member.reward, 3)}, advantage ${signed(member.advantage)}`,
          data: {
            tone:
              member.reward === null
                ? "none"
                : (member.advantage ?? 0) > 0
                  ? "up"
                  : (member.advantage ?? 0) < 0
                    ? "down"
                    : "even",
          },
        },
        h("span", { class: "group-index" }, member.index),
        h("span", { class: "num" }, number(member.reward, 2)),
      ),
    ),
    h(
      "span",
      { class: "small faint keys" },
      h("kbd", {}, "["),
      " ",
      h("kbd", {}, "]"),
      " go to the neighbours",
    ),
  );
}

export function rolloutFacts({ task, taskId, metrics, figures, failedAttempts }: RolloutAnswer): Child {
  const pairs: readonly (readonly [string, Child] | false)[] = [
    ["Task", taskId],
    task.environment !== "" && ["Environment", `${task.environment}, seed ${task.seed}`],
    ...Object.entries(metrics).map(([name, value]) => [name.replaceAll("_", " "), number(value, 4)] as const),
    ...Object.entries(figures ?? {})
      .filter(([name]) => ["hone.ratio.mean", "hone.ratio.max", "hone.clip.fraction"].includes(name))
      .map(([name, value]) => [name.replace("hone.", "").replaceAll(".", " "), number(value, 4)] as const),
  ];
  return [
    h(
      "dl",
      { class: "facts" },
      pairs
        .filter((pair) => pair !== false)
        .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, value))),
    ),
    failedAttempts.length > 0 &&
      h(
        "ul",
        { class: "failed-attempts small" },
        failedAttempts.map((reason, i) => h("li", {}, `Attempt ${i + 1} failed: ${reason}`)),
      ),
  ];
}

/** What judges said, in their own words; nothing where none said anything. */
export function judgesWords({ scores }: RolloutAnswer): Child {
  const said = scores.filter(({ reason }) => reason !== "");
  if (said.length === 0) return null;
  return h(
    "section",
    { class: "section", id: "judges" },
    h("div", { class: "section-head" }, h("h2", {}, "Judges")),
    h(
      "div",
      { class: "card judges-card" },
      said.map(({ judge, value, reason }) =>
        h(
          "div",
          { class: "judge-words" },
          h("h3", {}, `${judge} ${number(value, 3)}`),
          collapsedText(reason, "chat-text"),
        ),
      ),
    ),
  );
}

/** What is folded at the end of the view. */
export function rolloutDetails({ task, metadata }: RolloutAnswer): Child {
  const shown = (
    [
      ["Environment configuration", task.config],
      ["Dataset row", task.row],
      ["What the agent returned", metadata],
    ] as const
  ).filter(([, value]) => value !== null && JSON.stringify(value) !== "{}");
  return shown.map(([title, value]) =>
    h(
      "section",
      { class: "section" },
      h(
        "details",
        { class: "card" },
        h("summary", { class: "run-file-summary" }, title),
        h("pre", { class: "code", tabindex: 0 }, JSON.stringify(value, null, 2)),
      ),
    ),
  );
}
