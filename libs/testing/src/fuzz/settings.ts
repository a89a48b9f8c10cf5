/**
 * How long fuzz tests look, and from which seed: of the environment, so that a failure can be repeated and a night used.
 *
 *   HONE_FUZZ_SEED   repeats what a failure printed; "random" looks elsewhere each time, as `npm run test:full` does.
 *                    Unset, the inputs are the same each time: a change is not held up by what it did not bring.
 *   HONE_FUZZ_RUNS   inputs of each test, in place of its own modest number
 */

import fc from "fast-check";

/** Names of the variables. */
export const FuzzVariable = { seed: "HONE_FUZZ_SEED", runs: "HONE_FUZZ_RUNS" } as const;

const DEFAULT_SEED = 1;
const RANDOM_SEED = "random";

/** Parameters for `fc.assert`, which prints the seed of a failure itself. */
export function fuzz(numRuns: number): { numRuns: number; seed: number } {
  const isRandom = process.env[FuzzVariable.seed] === RANDOM_SEED;
  const seed = isRandom ? Math.floor(Math.random() * 2 ** 31) : integerOf(FuzzVariable.seed);
  return { numRuns: integerOf(FuzzVariable.runs) ?? numRuns, seed: seed ?? DEFAULT_SEED };
}

/**
 * Gives a test many inputs at once, for edges where one input at a time would mean one wait each.
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
