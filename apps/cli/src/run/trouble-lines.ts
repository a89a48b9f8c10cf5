/**
 * What went wrong in the rollouts of a step or an evaluation, in lines for a terminal. Reasons are words of programs, of what
 * a model wrote among others: whatever comes over the bus becomes one bounded line without control characters.
 */

import type { RolloutTroubles } from "@hone/proto-gen/run";
import { reasonKey, reasonLine } from "@hone/rl";
import { figure } from "../format.ts";

/** Of one message: more is not to be read. */
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

/** The same in a few words, for a line that is short of room: `64 agent_failed, search fails`. */
export function troubleCounts({ outcomes, tools }: RolloutTroubles): string {
  const ended = outcomes.map(({ outcome, count }) => `${figure(count)} ${reasonLine(outcome)}`);
  const failed = tools.map(({ name }) => `tool ${reasonLine(name)} fails`);
  return [...ended, ...failed].slice(0, MAX_LINES).join(", ");
}

/** What of it was told before is not told again: the same outcome for the same reason, the same tool. */
export class TroubleMemory {
  readonly #told = new Set<string>();

  /** The troubles that are new; undefined where all were told. */
  newOf(troubles: RolloutTroubles): RolloutTroubles | undefined {
    const outcomes = troubles.outcomes.filter(({ outcome, reason }) =>
      this.#isNew(`${outcome} ${reasonKey(reason)}`),
    );
    const tools = troubles.tools.filter(({ name, error }) => this.#isNew(`tool ${name} ${reasonKey(error)}`));
    return outcomes.length === 0 && tools.length === 0 ? undefined : { ...troubles, outcomes, tools };
  }

  #isNew(key: string): boolean {
    if (this.#told.has(key)) return false;
    this.#told.add(key);
    return true;
  }
}
