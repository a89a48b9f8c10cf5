/**
 * How many inputs fuzz tests try, and from which seed. Both can be set in the environment, to repeat a failure or to run longer.
 *
 *   HONE_FUZZ_SEED   the seed that a failure printed, or "random" for other inputs each time, as `npm run test:full` sets it.
 *                    Unset, the inputs are the same each time, so that a change does not fail because of an old problem.
 *   HONE_FUZZ_RUNS   number of inputs of each test, instead of its own smaller number
 */

import fc from "fast-check";

/** Names of the variables. */
export const FuzzVariable = { seed: "HONE_FUZZ_SEED", runs: "HONE_FUZZ_RUNS" } as const;

const DEFAULT_SEED = 1;
const RANDOM_SEED = "random";

/** @returns parameters for `fc.assert`, which prints the seed of a failure itself. */
export function fuzz(numRuns: number): { numRuns: number; seed: number } {
  const isRandom = process.env[FuzzVariable.seed] === RANDOM_SEED;
  const seed = isRandom ? Math.floor(Math.random() * 2 ** 31) : integerOf(FuzzVariable.seed);
  return { numRuns: integerOf(FuzzVariable.runs) ?? numRuns, seed: seed ?? DEFAULT_SEED };
}

/**
 * Gives a test many inputs at the same time, for cases in which each single input would need a wait.
 * @throws the test's failure, with the seed that repeats it.
 */
export async function withInputs<Input>(
  arbitrary: fc.Arbitrary<Input>,
  count: number,
  check: (inputs: Input[]) => Promise<void>,
): Promise<void> {
  const { numRuns, seed } = fuzz(count);
  try {
    await check(fc.sample(arbitrary, { numRuns, seed }));
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${message} (repeat it with ${FuzzVariable.seed}=${seed})`, { cause });
  }
}

function integerOf(name: string): number | undefined {
  const text = process.env[name];
  if (text === undefined || text === "") return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new TypeError(`${name} is "${text}"; it must be a whole number`);
}
