/** Shows in which training row (sample) a turn's tokens are, and why a session's call began a new one. */

import type { RolloutAnswer, TurnView } from "../../api-types.ts";
import { type Child, h } from "../../dom.ts";

/** Explanations of the values of `drift` in a turn's info; docs/sessions.md has the same table. */
const DRIFTS: Readonly<Record<string, string>> = {
  branch: "The call continues from an earlier point of the conversation.",
  edited: "A message was changed, or the call contains an answer that the model never gave.",
  compacted: "The call is shorter than the one it continues: messages were dropped or summarised.",
  template:
    "The call continues the conversation, but the chat template renders earlier messages differently.",
  tools: "The call continues the conversation, but offers other tools.",
  unrelated: "The call has nothing in common with earlier calls except its beginning.",
};

/** The elements beside a turn that show its sample and its drift; null where there is one sample and no drift. */
export function turnPlace(
  turn: TurnView,
  { turns, numSamples }: Pick<RolloutAnswer, "turns" | "numSamples">,
): Child {
  const drift = driftOf(turn);
  if (numSamples < 2 && drift === null && turn.sample < numSamples) return null;
  const begins = !turns.some(({ sample, index }) => sample === turn.sample && index < turn.index);
  const place =
    turn.sample >= numSamples ? "in no sample" : `${begins ? "begins" : "continues"} sample ${turn.sample}`;
  return [
    h("span", { class: "small faint turn-place" }, place),
    drift !== null &&
      h("span", { class: "badge", data: { tone: "warn" }, title: DRIFTS[drift] ?? false }, `drift: ${drift}`),
  ];
}

/** The entries of a turn's info except its drift. */
export function ownInfo({ info }: Pick<TurnView, "info">): readonly (readonly [string, unknown])[] {
  if (info === null || info === undefined) return [];
  if (typeof info !== "object") return [["info", info]];
  return Object.entries(info).filter(([name]) => name !== "drift");
}

function driftOf({ info }: Pick<TurnView, "info">): string | null {
  const drift: unknown = typeof info === "object" && info !== null ? Reflect.get(info, "drift") : null;
  return typeof drift === "string" ? drift : null;
}
