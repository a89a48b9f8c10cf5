/**
 * Lines for a terminal about what went wrong in the rollouts of a step or an evaluation. A reason may be text that a model
 * wrote, so each reason becomes one line of limited length without control characters.
 */

import type { RolloutTroubles } from "@hone/proto-gen/run";
import { reasonKey, reasonLine } from "@hone/rl";
import { figure } from "../../format.ts";

/** Most lines of one message, so that it stays readable. */
const MAX_LINES = 24;

/** `64 of 80 agent_failed: …` for each outcome, `all 12 calls of the tool search failed: …` for each tool. */
export function troubleLines({ rollouts, outcomes, tools }: RolloutTroubles): string[] {
  const ended = outcomes.map(({ outcome, count, reason, reasonCount }) => {
    const why = reasonLine(reason);
    const share = reasonCount < count ? ` (${figure(reasonCount)} of them)` : "";
    return `${figure(count)} of ${figure(rollouts)} ${reasonLine(outcome)}${why === "" ? "" : `: ${why}${share}`}`;
  });
  const failed = tools.map(
    ({ name, calls, error }) =>
      `all ${figure(calls)} calls of the tool ${reasonLine(name)} failed: ${reasonLine(error)}`,
  );
  return [...ended, ...failed].slice(0, MAX_LINES);
}

/** A short form for the live line: `64 agent_failed, tool search fails`. */
export function troubleCounts({ outcomes, tools }: RolloutTroubles): string {
  const ended = outcomes.map(({ outcome, count }) => `${figure(count)} ${reasonLine(outcome)}`);
  const failed = tools.map(({ name }) => `tool ${reasonLine(name)} fails`);
  return [...ended, ...failed].slice(0, MAX_LINES).join(", ");
}

/** Remembers which troubles were printed: outcomes with their reasons, and tools. */
export class TroubleMemory {
  readonly #known = new Set<string>();

  /** The troubles that were not printed before; undefined if there are none. */
  newOf(troubles: RolloutTroubles): RolloutTroubles | undefined {
    const outcomes = troubles.outcomes.filter(({ outcome, reason }) =>
      this.#isNew(`${outcome} ${reasonKey(reason)}`),
    );
    const tools = troubles.tools.filter(({ name, error }) => this.#isNew(`tool ${name} ${reasonKey(error)}`));
    return outcomes.length === 0 && tools.length === 0 ? undefined : { ...troubles, outcomes, tools };
  }

  #isNew(key: string): boolean {
    if (this.#known.has(key)) return false;
    this.#known.add(key);
    return true;
  }
}
