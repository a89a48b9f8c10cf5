/** One turn of a rollout, as a chat and token by token, and the choices of what of it is shown and how tokens are coloured. */

import type { RolloutAnswer, TokenView, TurnView } from "../../api-types.ts";
import { h, replace } from "../../dom.ts";
import { number, signed } from "../../format.ts";
import { chatMessages } from "./chat-messages.ts";
import { ColorBy, colorLegend } from "./tokens.ts";
import { ownInfo, turnPlace } from "./turn-place.ts";

/** Makes the strip of tokens; its label is read out. */
export type Strip = (tokens: readonly TokenView[], label: string) => HTMLElement;

export function turnCard(turn: TurnView, rollout: RolloutAnswer, strip: Strip): HTMLElement {
  const { index, reward, judged, info, finishReason, responseText, promptText, tokens, chat } = turn;
  // The environment's value is shown as the turn's reward already.
  const given = judged.filter(({ judge, value }) => value !== 0 && judge !== "environment");
  const advantage = rollout.figures?.[`hone.turn.advantages.${index}`];
  const isInvalid =
    typeof info === "object" &&
    info !== null &&
    ["isValid", "action_is_valid"].some((name) => Reflect.get(info, name) === false);
  return h(
    "section",
    { class: "card turn", id: `turn-${index}`, data: { turn: index }, "aria-label": `Turn ${index + 1}` },
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
      chatMessages(chat),
      h(
        "div",
        { class: "turn-tokens" },
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
    ),
  );
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The choice of how sampled tokens are coloured. It is stored as an attribute of the turns, which the style sheet reads. */
export function colorChoice(turns: HTMLElement, rollout: RolloutAnswer): HTMLElement {
  const options: readonly (readonly [ColorBy, string, boolean])[] = [
    [ColorBy.advantage, "Advantage", rollout.advantage === null],
    [ColorBy.logprob, "Logprob", false],
    [ColorBy.mask, "Mask", false],
  ];
  const legend = h("span", { class: "color-legend small" });
  const choose = (value: string | undefined) => {
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

/** What of the turns is shown; the style sheet reads it from an attribute of the turns. */
export const TURN_VIEWS = ["both", "chat", "tokens"] as const;
export type TurnViewName = (typeof TURN_VIEWS)[number];

const VIEW_NAMES: Readonly<Record<TurnViewName, string>> = { both: "Both", chat: "Chat", tokens: "Tokens" };

/** The choice between chat, tokens and both. */
export function viewChoice(chosen: TurnViewName, onChoose: (view: TurnViewName) => void): HTMLElement {
  return h(
    "fieldset",
    { class: "color-choice view-choice" },
    h("legend", { class: "small faint" }, "Show"),
    TURN_VIEWS.map((view) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "turn-view",
          value: view,
          checked: view === chosen,
          onchange: () => onChoose(view),
        }),
        h("span", {}, VIEW_NAMES[view]),
      ),
    ),
  );
}
