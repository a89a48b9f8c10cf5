/** Measuring things in turn: round after round, each thing once a round, so that a busy moment meets them all. */

import { delay } from "@hone/core";
import type { BenchSettings } from "../section.ts";

/** Lets sockets, exporters and garbage settle, so that a round does not pay for the one before. */
const PAUSE_MS = 500;
/** Rounds that are not counted: after three of 10,000 calls the compiler has nothing left to do. */
const WARM_UP_ROUNDS = 3;
const QUICK_WARM_UP_ROUNDS = 1;

type Things = Readonly<Record<string, () => Promise<number>>>;

/** @returns for each thing its values, in the order of the rounds. */
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
