/**
 * Plans the passes of an engine from samples and an objective, and collects their scores. All training engines share this
 * code, no matter how they compute the passes.
 *
 * Letters as in training-graph.ts.
 */
import type { ModelHead, ModelSpec } from "@hone/nn";
import {
  groupsOf,
  HeadScore,
  inputsOf,
  isGroupInput,
  type LossName,
  type LossTerm,
  type MaskedTokens,
  renumber,
  scoreOf,
  type TokenInput,
  termProblem,
} from "@hone/rl";
import { TrainingInputError } from "../errors.ts";
import { isLargeModel } from "../graph/training-memory.ts";
import {
  flattenEntries,
  type Microbatch,
  type MicrobatchPlan,
  type PackingLimits,
  planMicrobatches,
  SMALL_MODEL_MICROBATCHES,
  type TrainingSample,
} from "./microbatch.ts";
import { rowCostOf } from "./row-length.ts";

/** The inputs of the loss by name, each [E]. */
export type EntryInputs = Readonly<Partial<Record<TokenInput, Float32Array>>>;

/** The loss that is differentiated: its terms and their inputs for each entry of the microbatch. */
export interface PassObjective {
  readonly terms: readonly LossTerm<LossName>[];
  /** The inputs that the terms read. */
  readonly inputs: EntryInputs;
  /** [E] */
  readonly weight: Float32Array;
  /** [U] factor of each position's entropy; undefined for no bonus. */
  readonly entropyWeight: Float32Array | undefined;
}

/** A microbatch to run; without an objective, it is only scored. */
export interface Pass {
  readonly batch: Microbatch;
  /** The logits are divided by this. */
  readonly temperature: number;
  readonly objective: PassObjective | undefined;
  /** Whether the sums of squared probabilities are wanted; only of a pass without an objective. */
  readonly hasSquares: boolean;
}

/** What samples are scored with. */
export interface ScoringOptions {
  /** The logits are divided by this. @default 1 */
  readonly temperature?: number;
  /** Whether the sums of squared probabilities are wanted. @default false */
  readonly hasSquares?: boolean;
}

/** The objective that an update minimises. */
export interface Objective {
  /** Terms that are added up for each token. */
  readonly terms: readonly LossTerm<LossName>[];
  /** Factor of the entropy bonus; 0 for none. */
  readonly entropyCoefficient: number;
  /** Temperature at which the tokens were sampled and to which all log-probabilities refer; default 1. */
  readonly temperature?: number;
}

/** Scores of the N trained tokens of all samples under the weights, in the order of (sample, token). */
export interface ScoredEntries {
  /** [N] log-probabilities, or with a value head values. */
  readonly scores: Float32Array;
  /** [N] entropy of the distribution at each token, in nats; 0 with a value head. */
  readonly entropies: Float32Array;
  /** [N] sum over the vocabulary of p^2 at each token; 0 where they were not asked for. */
  readonly squares: Float32Array;
  /** Number of tokens that would be computed for separate sequences. */
  readonly sampleTokenCount: number;
  /** Number of computed tokens, without padding. */
  readonly packedTokenCount: number;
  /** Number of computed tokens, with padding. */
  readonly paddedTokenCount: number;
}

/** The passes of one call of an engine. */
export interface PlannedPasses {
  readonly plan: MicrobatchPlan;
  readonly passes: readonly Pass[];
}

/** Packing limits that suit a model. */
export function packingLimits(
  spec: ModelSpec,
  limits: Pick<PackingLimits, "maxRowTokens" | "maxMicrobatchTokens">,
): PackingLimits {
  return isLargeModel(spec)
    ? { rowCost: rowCostOf(spec), ...limits }
    : { ...limits, microbatchMultiple: SMALL_MODEL_MICROBATCHES };
}

/** Plans the passes that score samples. */
export function planScoring(
  samples: readonly MaskedTokens[],
  limits: PackingLimits,
  { temperature = 1, hasSquares = false }: ScoringOptions,
): PlannedPasses {
  const plan = planMicrobatches(samples, limits);
  const passes = plan.microbatches.map(
    (batch): Pass => ({ batch, temperature, objective: undefined, hasSquares }),
  );
  return { plan, passes };
}

/**
 * Plans the passes of one update.
 * @param head that of the model.
 * @throws TrainingInputError if a term has constants outside their range or is not a function of what the head computes, or a
 *   sample lacks inputs that a term reads.
 */
export function planUpdate(
  samples: readonly TrainingSample[],
  limits: PackingLimits,
  objective: Objective,
  head: ModelHead,
): PlannedPasses {
  const score = head === "value" ? HeadScore.value : HeadScore.logprob;
  for (const term of objective.terms) {
    const problem = termProblem(term);
    if (problem !== undefined) throw new TrainingInputError(`no engine can compute the loss: ${problem}`);
    if (scoreOf(term.name) === score) continue;
    throw new TrainingInputError(
      `the loss "${term.name}" is a function of a ${scoreOf(term.name)}, but the model has a ${head} head`,
    );
  }
  const entries = entryArrays(samples, objective);
  const plan = planMicrobatches(samples, limits);
  return { plan, passes: plan.microbatches.map((batch) => passOf(batch, entries, objective)) };
}

type Scores = { -readonly [K in keyof ScoredEntries]: ScoredEntries[K] };

/** Empty scores for a plan; {@link takeScores} fills them. */
export function emptyScores({ packed }: MicrobatchPlan): Scores {
  return {
    scores: new Float32Array(packed.entryTarget.length),
    entropies: new Float32Array(packed.entryTarget.length),
    squares: new Float32Array(packed.entryTarget.length),
    sampleTokenCount: packed.sampleTokenCount,
    packedTokenCount: packed.packedTokenCount,
    paddedTokenCount: packed.tokenIds.length,
  };
}

/** What a pass found of its entries [E] and positions [U]; what it was not asked for is empty. */
export interface PassScores {
  /** [E] log-probabilities, or with a value head values. */
  readonly score: Float32Array;
  /** [U] */
  readonly entropy: Float32Array;
  /** [U] */
  readonly squares: Float32Array;
}

/** Copies the results of a microbatch to the places of its entries. */
export function takeScores(scores: Scores, batch: Microbatch, result: PassScores): void {
  batch.entryIndex.forEach((entry, at) => {
    const position = batch.entryPosition[at]!;
    scores.scores[entry] = result.score[at]!;
    scores.entropies[entry] = result.entropy[position] ?? 0;
    scores.squares[entry] = result.squares[position] ?? 0;
  });
}

interface EntryArrays {
  readonly inputs: EntryInputs;
  readonly weight: Float32Array;
}

function entryArrays(samples: readonly TrainingSample[], { terms }: Objective): EntryArrays {
  return {
    weight: flattenEntries(samples, "weights", ({ weights }) => weights),
    inputs: Object.fromEntries(
      inputsOf(terms).map((name) => [
        name,
        isGroupInput(name)
          ? groupsOf(samples, name)
          : flattenEntries(samples, name, ({ inputs }) => inputs?.[name]),
      ]),
    ),
  };
}

/**
 * Numbers of groups are those of this microbatch. A group never spans microbatches: packing puts all tokens of a sample into
 * one row, and a microbatch is made of whole rows.
 */
function passOf(batch: Microbatch, entries: EntryArrays, objective: Objective): Pass {
  const pick = (values: Float32Array) => Float32Array.from(batch.entryIndex, (entry) => values[entry]!);
  const weight = pick(entries.weight);
  return {
    batch,
    temperature: objective.temperature ?? 1,
    hasSquares: false,
    objective: {
      terms: objective.terms,
      inputs: Object.fromEntries(
        Object.entries(entries.inputs).map(([name, values]) => [
          name,
          isGroupInput(name as TokenInput) ? renumber(pick(values)) : pick(values),
        ]),
      ),
      weight,
      entropyWeight:
        objective.entropyCoefficient === 0
          ? undefined
          : positionWeights(batch, weight, objective.entropyCoefficient),
    },
  };
}

/** The weight of a position's entropy is the sum of the weights of all entries that read the position. */
function positionWeights(batch: Microbatch, weight: Float32Array, coefficient: number): Float32Array {
  const weights = new Float32Array(batch.positions.length);
  batch.entryPosition.forEach((position, entry) => {
    weights[position]! += coefficient * weight[entry]!;
  });
  return weights;
}
