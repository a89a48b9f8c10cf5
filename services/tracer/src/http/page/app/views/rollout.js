/** The view of one rollout, turn by turn and token by token. */

import { read } from "../api.ts";
import { h, link, replace } from "../dom.ts";
import { count, milliseconds, number, signed } from "../format.ts";
import { episodePlayer } from "./episode-player.js";
import { outcomeBadge } from "./parts.js";
import { attachRecords } from "./token-record.js";
import { ColorBy, colorLegend, tokenCard, tokenStrip } from "./tokens.js";
import { ownInfo, turnPlace } from "./turn-place.js";

export async function rolloutView({ root, params, signal, setPlace, navigate }) {
  const { run: runId, slot } = params;
  const runHref = link("runs", runId);
  setPlace(slot, [[runId, runHref], [slot]]);
  const rollout = await read(`/runs/${encodeURIComponent(runId)}/rollouts/${encodeURIComponent(slot)}`, {
    signal,
  });
  attachRecords(runId, rollout, signal).catch(reportError);
  const card = tokenCard();
  const turns = h("div", {
    class: "turns",
    data: { color: rollout.advantage === null ? ColorBy.logprob : ColorBy.advantage },
  });
  const strip = (tokens, label) => tokenStrip(tokens, { label, card });
  replace(
    turns,
    rollout.turns.map((turn) => turnCard(turn, rollout, strip)),
    rollout.tails.map(({ sample, tokens }) =>
      h(
        "section",
        { class: "card turn" },
        h(
          "div",
          { class: "turn-side" },
          h("h3", {}, "After the last turn"),
          h("span", { class: "small faint" }, `sample ${sample}`),
        ),
        h("div", { class: "turn-main" }, strip(tokens, `tokens after the last turn of sample ${sample}`)),
      ),
    ),
  );
  replace(
    root,
    head(rollout, runHref),
    groupStrip(runId, rollout),
    facts(rollout),
    episodePlayer(runId, rollout, signal),
    h(
      "section",
      { class: "section" },
      h("div", { class: "section-head turns-head" }, h("h2", {}, "Turns"), colorChoice(turns, rollout)),
      rollout.turns.length === 0
        ? h(
            "div",
            { class: "card empty" },
            h("p", {}, rollout.reason || "The rollout ended before its first turn."),
          )
        : turns,
    ),
    details(rollout),
    card.element,
  );
  moveByKeys(signal, runId, rollout, navigate);
}

function head(rollout) {
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

function tile(name, value, note) {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, h("small", {}, note || "\u00a0")));
}

/** Links to the rollouts of the same task. */
function groupStrip(runId, { group, slot }) {
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

function facts({ task, taskId, metrics, figures, failedAttempts }) {
  const pairs = [
    ["Task", taskId],
    task.environment !== "" && ["Environment", `${task.environment}, seed ${task.seed}`],
    ...Object.entries(metrics).map(([name, value]) => [name.replaceAll("_", " "), number(value, 4)]),
    ...Object.entries(figures ?? {})
      .filter(([name]) => ["hone.ratio.mean", "hone.ratio.max", "hone.clip.fraction"].includes(name))
      .map(([name, value]) => [name.replace("hone.", "").replaceAll(".", " "), number(value, 4)]),
  ].filter(Boolean);
  return [
    h(
      "dl",
      { class: "facts" },
      pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, value))),
    ),
    failedAttempts.length > 0 &&
      h(
        "ul",
        { class: "failed-attempts small" },
        failedAttempts.map((reason, i) => h("li", {}, `Attempt ${i + 1} failed: ${reason}`)),
      ),
  ];
}

function turnCard(turn, rollout, strip) {
  const { index, reward, judged, info, finishReason, responseText, promptText, tokens } = turn;
  // The environment's value is shown as the turn's reward already.
  const given = judged.filter(({ judge, value }) => value !== 0 && judge !== "environment");
  const advantage = rollout.figures?.[`hone.turn.advantages.${index}`];
  const isInvalid =
    typeof info === "object" && info !== null && (info.isValid === false || info.action_is_valid === false);
  return h(
    "section",
    { class: "card turn", id: `turn-${index}`, "aria-label": `Turn ${index + 1}` },
    h(
      "div",
      { class: "turn-side" },
      h("h3", {}, `Turn ${index + 1}`),
      turnPlace(turn, rollout),
      reward !== null &&
        reward !== 0 &&
        h(
          "div",
          { class: "turn-reward", data: { tone: reward > 0 ? "good" : reward < 0 ? "bad" : "plain" } },
          `reward ${number(reward, 3)}`,
        ),
      given.map(({ judge, value }) =>
        h(
          "div",
          { class: "turn-reward", data: { tone: value > 0 ? "good" : "bad" } },
          `${judge} ${number(value, 3)}`,
        ),
      ),
      advantage !== undefined &&
        h(
          "div",
          { class: "small soft", title: "for each token sampled in this turn" },
          `advantage ${signed(advantage, 3)}`,
        ),
      h(
        "dl",
        { class: "turn-info" },
        ownInfo(turn).map(([name, value]) => [
          h("dt", {}, name),
          h(
            "dd",
            { data: { tone: name.toLowerCase().includes("valid") && value === false ? "bad" : "plain" } },
            plain(value),
          ),
        ]),
      ),
      finishReason !== "stop" && h("span", { class: "badge", data: { tone: "warn" } }, finishReason),
      isInvalid && h("span", { class: "badge", data: { tone: "bad" } }, "invalid answer"),
    ),
    h(
      "div",
      { class: "turn-main" },
      tokens.length > 0
        ? strip(tokens, `Tokens of turn ${index + 1}`)
        : h("pre", { class: "turn-text" }, promptText, responseText),
      h(
        "details",
        { class: "turn-texts small" },
        h("summary", {}, "As text"),
        h(
          "pre",
          { class: "turn-text" },
          h("span", { class: "soft" }, promptText),
          h("mark", {}, responseText),
        ),
      ),
    ),
  );
}

function plain(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The choice of how sampled tokens are coloured. It is stored as an attribute of the turns, which the style sheet reads. */
function colorChoice(turns, rollout) {
  const options = [
    [ColorBy.advantage, "Advantage", rollout.advantage === null],
    [ColorBy.logprob, "Logprob", false],
    [ColorBy.mask, "Mask", false],
  ];
  const legend = h("span", { class: "color-legend small" });
  const choose = (value) => {
    turns.dataset.color = value;
    replace(legend, colorLegend(value));
  };
  choose(turns.dataset.color);
  return h(
    "fieldset",
    { class: "color-choice" },
    h("legend", { class: "small faint" }, "Colour by"),
    options.map(([value, label, isDisabled]) =>
      h(
        "label",
        {
          title:
            isDisabled &&
            "The advantage is not known: the rollout was not trained, or its train span did not arrive",
        },
        h("input", {
          type: "radio",
          name: "color",
          value,
          checked: turns.dataset.color === value,
          disabled: isDisabled,
          onchange: () => choose(value),
        }),
        h("span", {}, label),
      ),
    ),
    legend,
  );
}

function details({ task, metadata }) {
  const shown = [
    ["Environment configuration", task.config],
    ["Dataset row", task.row],
    ["What the agent returned", metadata],
  ].filter(([, value]) => value !== null && JSON.stringify(value) !== "{}");
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

/** Makes the keys `[` and `]` go to the neighbours in the group. */
function moveByKeys(signal, runId, { group, slot }, navigate) {
  const at = group.findIndex((member) => member.slot === slot);
  document.addEventListener(
    "keydown",
    (event) => {
      const move = { "[": -1, "]": 1 }[event.key];
      if (move === undefined || event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement)
        return;
      const next = group[at + move];
      if (next !== undefined) navigate(link("runs", runId, "rollouts", next.slot));
    },
    { signal },
  );
}
