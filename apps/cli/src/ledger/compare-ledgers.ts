/**
 * Where two runs part: compares their settings and, row by row, what their ledgers say of each step. Two runs are equal up to a
 * version when the contents of all rows up to it are.
 */

import { runChanges } from "@hone/config";
import {
  type ChainedLeftOut,
  type ChainedRollout,
  type ChainRow,
  comparableSettings,
  type StepContent,
} from "@hone/rl";
import { optimizerOf, policyWeightsOf, type RowRest } from "./check-ledger.ts";
import type { Ledger } from "./read-ledger.ts";

/** What two runs differ in. */
export interface LedgerDifference {
  /** Settings whose values differ, each as a sentence. */
  readonly settings: readonly string[];
  /** The first step that differs; undefined = none does. */
  readonly parting: Parting | undefined;
  /** Versions that both have, and that were compared. */
  readonly compared: number;
  /** Versions that cannot be compared, as they are older than the chain in one of the two. */
  readonly unchained: number;
  /** Last versions of both. */
  readonly lengths: readonly [number, number];
}

/** The step in which two runs part, and what differs in it, the causes before what follows from them. */
export interface Parting {
  readonly version: number;
  readonly differences: readonly string[];
}

/** Rollouts of one step that are named; the others are counted. */
const MAX_NAMED = 5;
/** Characters of a value that are shown. */
const MAX_VALUE = 80;

export async function compareLedgers(one: Ledger, other: Ledger): Promise<LedgerDifference> {
  const settings = runChanges(comparableSettings(one.config), comparableSettings(other.config)).map(
    ({ key, before, after }) => `${key} is ${valueText(before)} and ${valueText(after)}`,
  );
  let parting: Parting | undefined;
  let compared = 0;
  let unchained = 0;
  for await (const [a, b] of together(one.rows, other.rows)) {
    if (a.format === 0 || b.format === 0) {
      unchained++;
      continue;
    }
    compared++;
    const differences = differencesOf(a, b);
    if (differences.length === 0) continue;
    parting = { version: a.version, differences };
    break;
  }
  return { settings, parting, compared, unchained, lengths: [one.version, other.version] };
}

/** The result as sentences. */
export function differenceLines(
  { runId: one }: Pick<Ledger, "runId">,
  { runId: other }: Pick<Ledger, "runId">,
  { settings, parting, compared, unchained, lengths }: LedgerDifference,
): string[] {
  const lines = [
    ...(settings.length === 0
      ? [`${one} and ${other} have the same settings`]
      : [`${one} and ${other} differ in their settings:`, ...settings.map((each) => `  ${each}`)]),
  ];
  if (unchained > 0)
    lines.push(`${unchained} versions cannot be compared: rows of earlier releases have no chain`);
  if (parting !== undefined) {
    const { version, differences } = parting;
    lines.push(
      version === 0 ? "they part before step 1, in version 0:" : `they part in step ${version}:`,
      ...differences.map((each) => `  ${each}`),
    );
  } else if (compared > 0) {
    lines.push(`all ${compared} versions that both have are the same`);
  } else if (unchained === 0) {
    lines.push("they have no version in common");
  }
  const [a, b] = lengths;
  if (parting === undefined && a !== b)
    lines.push(`${one} has come to version ${a}, ${other} to version ${b}`);
  return lines;
}

/** Rows of equal versions; those that only one of the two has are passed over. */
async function* together(
  one: AsyncIterable<ChainRow>,
  other: AsyncIterable<ChainRow>,
): AsyncGenerator<readonly [ChainRow, ChainRow]> {
  const [left, right] = [one[Symbol.asyncIterator](), other[Symbol.asyncIterator]()];
  let [a, b] = [await left.next(), await right.next()];
  while (a.done !== true && b.done !== true) {
    if (a.value.version === b.value.version) {
      yield [a.value, b.value];
      [a, b] = [await left.next(), await right.next()];
    } else if (a.value.version < b.value.version) a = await left.next();
    else b = await right.next();
  }
}

function differencesOf(a: ChainRow, b: ChainRow): string[] {
  const [one, other] = [a, b].map(({ contentJson }) => JSON.parse(contentJson) as StepContent) as [
    StepContent,
    StepContent,
  ];
  // A replay that goes on from a kept state begins with a version that it did not train.
  const isBeginning = a.version > 0 && (a.previous === "" || b.previous === "");
  const differences = isBeginning
    ? beginningDifferences(one, other)
    : a.contentJson === b.contentJson
      ? []
      : contentDifferences(one, other);
  const [files, others] = [a, b].map(({ restJson }) => (JSON.parse(restJson) as RowRest).files) as [
    RowRest["files"],
    RowRest["files"],
  ];
  differences.push(...policyDifferences(files, others));
  const [optimizer, otherOptimizer] = [optimizerOf(files), optimizerOf(others)];
  if (
    optimizer !== "" &&
    otherOptimizer !== "" &&
    optimizer !== otherOptimizer &&
    one.after === other.after
  ) {
    differences.push("the optimizer after the step differs");
  }
  return differences;
}

/** The run's further policies whose weights differ; the contents of rows speak of its own alone. */
function policyDifferences(files: RowRest["files"], others: RowRest["files"]): string[] {
  const weights = policyWeightsOf(others);
  return [...policyWeightsOf(files)].flatMap(([policy, digest]) => {
    const found = weights.get(policy);
    const differs = found !== undefined && found !== digest;
    return differs ? [`the weights of the policy ${policy} after it differ`] : [];
  });
}

function beginningDifferences(one: StepContent, other: StepContent): string[] {
  return [
    ...(one.tokenizer === other.tokenizer ? [] : ["the tokenizer differs"]),
    ...(one.after === other.after ? [] : ["the weights after it differ"]),
  ];
}

/** Everything that follows from settings alone is left to the settings' own part: they differ from the beginning on. */
function contentDifferences(one: StepContent, other: StepContent): string[] {
  return [
    ...(one.tokenizer === other.tokenizer ? [] : ["the tokenizer differs"]),
    ...(one.arithmetic === other.arithmetic
      ? []
      : [`the arithmetic of the engine is ${valueText(one.arithmetic)} and ${valueText(other.arithmetic)}`]),
    ...(one.before === other.before ? [] : ["the weights before it differ"]),
    ...leftOutDifferences(one.leftOut, other.leftOut),
    ...rolloutDifferences(one.trained, other.trained),
    ...(one.after === other.after ? [] : ["the weights after it differ"]),
  ];
}

function leftOutDifferences(one: readonly ChainedLeftOut[], other: readonly ChainedLeftOut[]): string[] {
  const others = new Map(other.map((each) => [each.slot, each]));
  const ones = new Set(one.map(({ slot }) => slot));
  return named([
    ...one.flatMap(({ slot, outcome, why }) => {
      const found = others.get(slot);
      if (found === undefined) return [`rollout ${slot} was left out (${why}, ${outcome}) in the first only`];
      if (found.outcome === outcome && found.why === why) return [];
      return [`rollout ${slot} was left out as ${why}, ${outcome} and as ${found.why}, ${found.outcome}`];
    }),
    ...other.flatMap(({ slot, outcome, why }) =>
      ones.has(slot) ? [] : [`rollout ${slot} was left out (${why}, ${outcome}) in the second only`],
    ),
  ]);
}

function rolloutDifferences(one: readonly ChainedRollout[], other: readonly ChainedRollout[]): string[] {
  const others = new Map(other.map((each) => [each.slot, each]));
  const ones = new Set(one.map(({ slot }) => slot));
  return named([
    ...one.flatMap((rollout) => {
      const found = others.get(rollout.slot);
      if (found === undefined) return [`rollout ${rollout.slot} was trained in the first only`];
      const parts = partsThatDiffer(rollout, found);
      return parts.length === 0 ? [] : [`rollout ${rollout.slot}: ${parts.join(", ")}`];
    }),
    ...other.flatMap(({ slot }) =>
      ones.has(slot) ? [] : [`rollout ${slot} was trained in the second only`],
    ),
  ]);
}

/** Causes only: other tokens have other log-probabilities, and another reward another advantage. */
function partsThatDiffer(one: ChainedRollout, other: ChainedRollout): string[] {
  if (one.prompt !== other.prompt) return ["its model was shown other tokens"];
  const parts: string[] = [];
  if (one.tokens !== other.tokens) parts.push("its model sampled other tokens");
  else if (one.logprobs !== other.logprobs) parts.push("its tokens have other log-probabilities");
  if (one.outcome !== other.outcome) parts.push(`its outcome is ${one.outcome} and ${other.outcome}`);
  if (one.reward !== other.reward) parts.push(`its reward is ${one.reward} and ${other.reward}`);
  if (parts.length > 0) return parts;
  const [a, b] = [one, other].map(({ advantage, turnAdvantages, tokenAdvantages, tokenReturns }) =>
    JSON.stringify([advantage, turnAdvantages, tokenAdvantages, tokenReturns]),
  );
  if (a !== b) return [`its advantage is ${one.advantage} and ${other.advantage}`];
  return one.lowestVersion === other.lowestVersion && one.highestVersion === other.highestVersion
    ? []
    : ["its tokens are of other versions"];
}

function named(all: readonly string[]): string[] {
  if (all.length <= MAX_NAMED) return [...all];
  return [...all.slice(0, MAX_NAMED), `… and ${all.length - MAX_NAMED} more rollouts`];
}

function valueText(value: unknown): string {
  if (value === undefined) return "absent";
  const text = JSON.stringify(value);
  return text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE)}…`;
}
