/** In which training row (sample) a turn's tokens stand, and why a session's call began a new one. */

import { h } from "../dom.js";

/** By `drift` of a turn's info; docs/sessions.md has the table. */
const DRIFTS = {
  branch: "It goes on from an earlier point of the conversation.",
  edited: "A message was changed, or an answer stands in it that the model never gave.",
  compacted: "It is shorter than what it goes back to: messages were dropped or summed up.",
  template: "It goes on, but the chat template shows earlier messages in another way.",
  tools: "It goes on, but shows other tools.",
  unrelated: "It has nothing in common with earlier calls beyond how it begins.",
};

/** What the page says of them beside a turn; where there is one sample and no drift, nothing. */
export function turnPlace(turn, { turns, numSamples }) {
  const drift = driftOf(turn);
  if (numSamples < 2 && drift === null && turn.sample < numSamples) return null;
  const begins = !turns.some(({ sample, index }) => sample === turn.sample && index < turn.index);
  const place =
    turn.sample >= numSamples ? "in no sample" : `${begins ? "begins" : "goes on in"} sample ${turn.sample}`;
  return [
    h("span", { class: "small faint turn-place" }, place),
    drift !== null &&
      h("span", { class: "badge", data: { tone: "warn" }, title: DRIFTS[drift] ?? false }, `drift: ${drift}`),
  ];
}

/** What a turn says of itself beside its drift. */
export function ownInfo({ info }) {
  if (info === null) return [];
  if (typeof info !== "object") return [["info", info]];
  return Object.entries(info).filter(([name]) => name !== "drift");
}

function driftOf({ info }) {
  return typeof info?.drift === "string" ? info.drift : null;
}
