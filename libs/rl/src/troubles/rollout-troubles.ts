/** What went otherwise than it should in rollouts that were made together, for people. */

import { Outcome, type Outcome as OutcomeName } from "@hone/core";
import type { Rollout } from "../rollout.ts";
import { reasonKey, reasonLine } from "./failure-reason.ts";

/** How many ended with an outcome other than completed, and why most of them did. */
export interface OutcomeTrouble {
  readonly outcome: OutcomeName;
  readonly count: number;
  /** The commonest reason in its own words, one line; empty = none was given. */
  readonly reason: string;
  /** How many of them gave it. */
  readonly reasonCount: number;
}

/** A tool of which every call failed. */
export interface ToolTrouble {
  readonly name: string;
  readonly calls: number;
  /** The commonest error in its own words, one line. */
  readonly error: string;
}

export interface RolloutTroubles {
  /** How many rollouts were made. */
  readonly rollouts: number;
  /** The most frequent first. */
  readonly outcomes: readonly OutcomeTrouble[];
  /** In order of their names. */
  readonly tools: readonly ToolTrouble[];
}

/** Most tools of one step: a model that makes up names of tools must not make a message of any size. */
const MAX_TOOLS = 16;

/** @returns undefined where nothing went wrong. */
export function troublesOf(rollouts: readonly Rollout[]): RolloutTroubles | undefined {
  const outcomes = outcomeTroubles(rollouts);
  const tools = toolTroubles(rollouts);
  return outcomes.length === 0 && tools.length === 0
    ? undefined
    : { rollouts: rollouts.length, outcomes, tools };
}

/**
 * Why all of the rollouts failed, where they did for one reason: by the agent's own code or by what it depends on. What is
 * one reason, {@link reasonKey} says.
 * @returns undefined where one of them ended otherwise, or for another reason, or there are none.
 */
export function uniformFailureOf(rollouts: readonly Rollout[]): OutcomeTrouble | undefined {
  const [first] = rollouts;
  if (first === undefined) return undefined;
  const key = keyOf(first);
  const isOne = rollouts.every((rollout) => FAILURES.has(rollout.outcome) && keyOf(rollout) === key);
  if (!isOne) return undefined;
  const count = rollouts.length;
  return { outcome: first.outcome, count, reason: reasonLine(first.reason ?? ""), reasonCount: count };
}

const FAILURES: ReadonlySet<OutcomeName> = new Set([Outcome.agentFailed, Outcome.infraFailed]);

function keyOf({ reason = "" }: Rollout): string {
  return reasonKey(reason);
}

function outcomeTroubles(rollouts: readonly Rollout[]): OutcomeTrouble[] {
  const byOutcome = Map.groupBy(
    rollouts.filter(({ outcome }) => outcome !== Outcome.completed),
    ({ outcome }) => outcome,
  );
  return [...byOutcome]
    .map(([outcome, ended]) => {
      const { text, count } = commonest(ended.map(({ reason = "" }) => reason));
      return { outcome, count: ended.length, reason: text, reasonCount: count };
    })
    .sort((a, b) => b.count - a.count);
}

function toolTroubles(rollouts: readonly Rollout[]): ToolTrouble[] {
  const uses = Map.groupBy(
    rollouts.flatMap(({ toolUses = [] }) => toolUses),
    ({ name }) => name,
  );
  return [...uses]
    .filter(([, each]) => each.every(({ calls, failed }) => calls > 0 && failed >= calls))
    .map(([name, each]) => ({
      name: reasonLine(name),
      calls: each.reduce((sum, { calls }) => sum + calls, 0),
      error: commonest(each.map(({ error }) => error)).text,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, MAX_TOOLS);
}

/** The text whose kind is the most frequent, in the words of its first; of two as frequent the earlier. */
function commonest(texts: readonly string[]): { text: string; count: number } {
  const kinds = [...Map.groupBy(texts, reasonKey).values()].sort((a, b) => b.length - a.length);
  const [most = []] = kinds;
  return { text: reasonLine(most[0] ?? ""), count: most.length };
}
