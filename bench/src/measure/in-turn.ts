/** Measures several things in turn, each once a round, so that a busy moment affects all of them. */

import { delay } from "@hone/core";
import type { BenchSettings } from "../section.ts";

/** Pause in which sockets, exporters and garbage collection settle, so that they do not slow down the next round. */
const PAUSE_MS = 500;
/** Rounds that are not counted: after three rounds of 10,000 calls all code is compiled. */
const WARM_UP_ROUNDS = 3;
const QUICK_WARM_UP_ROUNDS = 1;

type Things = Readonly<Record<string, () => Promise<number>>>;

/** @returns the values of each thing, in the order of the rounds. */
export async function measureInTurn<Measured extends Partial<Things>>(
  things: Measured,
  { rounds, isQuick }: Pick<BenchSettings, "rounds" | "isQuick">,
  warmUpRounds = isQuick ? QUICK_WARM_UP_ROUNDS : WARM_UP_ROUNDS,
): Promise<{ [Name in keyof Measured]: number[] }> {
  const values = new Map<string, number[]>();
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const [name, measure] of Object.entries(things as Things)) {
      await delay(PAUSE_MS);
      const value = await measure();
      if (round >= 0) values.set(name, [...(values.get(name) ?? []), value]);
    }
  }
  return Object.fromEntries(values) as { [Name in keyof Measured]: number[] };
}
