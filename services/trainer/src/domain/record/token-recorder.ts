/**
 * Records what each trained token of a step added to the gradient, from the numbers that the engine returned for its updates.
 *
 * R1: it reads what training made, after the update, and changes nothing: no bit of the weights depends on it.
 * R2: sums count every trained token; token by token only chosen rollouts are kept (choose-rollouts.ts).
 * R3: the gradient that it speaks of is that of the loss's terms by the tokens' log-probabilities. The entropy bonus, the samples
 *     that are imitated and a critic are not in it.
 */

import type { RunConfig } from "@hone/config";
import {
  type CreditedRollout,
  groupsOf,
  type PolicyObjective,
  placeOfSample,
  type Rollout,
  rolloutTokenCount,
  type Sample,
  sampledTokenCount,
  slopesOfTerms,
  TokenCut,
  tokenFigures,
} from "@hone/rl";
import { clipFactor } from "@hone/train";
import { learningRoles } from "../learners/lessons.ts";
import type { MinibatchResult } from "../step/training-engine.ts";
import type { PlannedMinibatch, PlannedSample } from "../step/training-plan.ts";
import { advantageColumns, columnOf } from "./advantage-columns.ts";
import { chooseRollouts } from "./choose-rollouts.ts";
import type { PolicyTokens, RolloutTokens, TokenPass, UpdateGradient } from "./rollout-tokens.ts";
import { type RolloutSums, topShares } from "./top-shares.ts";

/** An update that was made. */
export interface RecordedUpdate {
  readonly epoch: number;
  readonly minibatch: number;
  readonly samples: readonly PlannedSample[];
  readonly result: MinibatchResult;
  readonly objective: PolicyObjective;
  /** Per sample [N] which tokens the loss chose. */
  readonly selected: readonly Float32Array[] | undefined;
  readonly reference: ReadonlyMap<Sample, Float32Array> | undefined;
}

/** Updates of which the record says something one by one. */
const MAX_UPDATES = 256;

/** A pass whose samples come one after the other. */
type GrowingPass = { -readonly [K in keyof TokenPass]: TokenPass[K] } & { cuts: TokenCut[] };

/**
 * Makes the recorder of what one policy learns in a step; undefined where the run file wants no record.
 * @param run as the policy's steps see it.
 * @param policy undefined = the run's own.
 */
export function openTokenRecorder(
  { config }: { readonly config: RunConfig },
  policy: string | undefined,
): TokenRecorder | undefined {
  return config.trainer.tokenRecord.tokensPerStep > 0 ? new TokenRecorder(config, policy) : undefined;
}

export class TokenRecorder {
  readonly #config: RunConfig;
  readonly #policy: string | undefined;
  readonly #sums = new Map<CreditedRollout, RolloutSums>();
  readonly #kept = new Map<CreditedRollout, KeptRollout>();
  readonly #updates: UpdateGradient[] = [];
  readonly #cuts: Partial<Record<TokenCut, number>> = {};
  #updateCount = 0;

  constructor(config: RunConfig, policy?: string) {
    this.#config = config;
    this.#policy = policy;
  }

  /** Chooses what is kept. @param plan of the step, before its first update. */
  begin(plan: readonly PlannedMinibatch[]): void {
    const { seed, trainer } = this.#config;
    const rollouts = [...new Set(plan.flatMap(({ samples }) => samples.map(({ credited }) => credited)))];
    // The step's tokens are shared evenly among the policies that learn.
    const limit = Math.floor(trainer.tokenRecord.tokensPerStep / learningRoles(this.#config).length);
    for (const credited of chooseRollouts(rollouts, { seed, limit, epochs: trainer.epochs })) {
      this.#kept.set(credited, { columns: new Map(), passes: new Map() });
    }
  }

  /** Notes an update (R1). */
  add(update: RecordedUpdate): void {
    const { samples, result, epoch, minibatch } = update;
    let pull = 0;
    let tokens = 0;
    samples.forEach((planned, i) => {
      const found = this.#numbersOf(update, planned, i);
      pull += this.#addSums(planned, found);
      tokens += found.pulls.length;
      const kept = this.#kept.get(planned.credited);
      if (kept !== undefined) keep(kept, update, planned, found);
    });
    if (this.#updateCount++ >= MAX_UPDATES) return;
    const { loss, gradNorm } = result;
    const scaledBy = clipFactor(gradNorm, this.#config.trainer.optimizer.maxGradNorm);
    this.#updates.push({ epoch, minibatch, loss, gradNorm, scaledBy, tokens, pull });
  }

  /** What the commit of the step stores of the policy. */
  finish(): PolicyTokens {
    const rollouts = [...this.#kept].flatMap(([credited, kept]) => finished(credited, kept) ?? []);
    const counts = [...this.#sums.keys()].map(({ rollout }) => rolloutTokenCount(rollout));
    return {
      policy: this.#policy,
      gradient: {
        updates: this.#updates,
        updateCount: this.#updateCount,
        rollouts: counts.length,
        tokens: counts.reduce((sum, count) => sum + count, 0),
        recordedRollouts: rollouts.length,
        recordedTokens: rollouts.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
        cuts: this.#cuts,
        ...topShares(this.#sums),
      },
      rollouts,
      maxBytes: this.#config.trainer.tokenRecord.maxBytes,
    };
  }

  /** The numbers of a sample's tokens in an update. */
  #numbersOf(update: RecordedUpdate, planned: PlannedSample, index: number): SampleNumbers {
    const { result, objective, selected, reference } = update;
    const { sample, credited, advantages, oldLogprobs, weights, corrections } = planned;
    const logprobs = result.logprobs[index]!;
    const referenceLogprob = reference?.get(sample);
    const groups = objective.group && groupsOf([sample], objective.group);
    const inputs = {
      behaviourLogprob: oldLogprobs,
      advantage: advantages,
      reward: new Float64Array(logprobs.length).fill(credited.reward),
      ...(selected !== undefined && { selected: selected[index]! }),
      ...(referenceLogprob !== undefined && { referenceLogprob }),
    };
    const figures = tokenFigures(logprobs, inputs, groups);
    const [ofLoss, ofKl] = slopesOfTerms(objective.terms, { figures, weights, groups });
    const { temperature } = this.#config.rollout.sampling;
    const coefficients = ofKl === undefined ? ofLoss! : ofLoss!.map((value, token) => value + ofKl[token]!);
    return {
      logprobs,
      ratios: Float64Array.from(figures, ({ groupRatio }) => groupRatio),
      coefficients,
      klCoefficients: ofKl,
      pulls: coefficients.map(
        (value, token) => (value * (1 - Math.exp(Math.min(0, logprobs[token]!)))) / temperature,
      ),
      cuts: figures.map((token, at) => (corrections?.[at] === 0 ? TokenCut.rejected : objective.cut(token))),
    };
  }

  /** @returns the sum of |pull|. */
  #addSums(
    { credited, sample }: PlannedSample,
    { pulls, coefficients, ratios, cuts }: SampleNumbers,
  ): number {
    const { samples } = credited.rollout;
    const sums = this.#sums.get(credited) ?? samplesOfSums(credited);
    this.#sums.set(credited, sums);
    const place = sums.samples[samples.indexOf(sample)]!;
    let sum = 0;
    pulls.forEach((pull, token) => {
      const size = Math.abs(pull);
      sum += size;
      place.pulls[token] = place.pulls[token]! + size;
      const cut = cuts[token]!;
      this.#cuts[cut] = (this.#cuts[cut] ?? 0) + 1;
    });
    place.last = { coefficients, ratios, cuts };
    sums.pull += sum;
    return sum;
  }
}

interface SampleNumbers {
  readonly logprobs: Float32Array;
  readonly ratios: Float64Array;
  readonly coefficients: Float64Array;
  readonly klCoefficients: Float64Array | undefined;
  readonly pulls: Float64Array;
  readonly cuts: readonly TokenCut[];
}

/** A rollout that is kept. */
interface KeptRollout {
  /** What does not change from epoch to epoch, by sample. */
  readonly columns: Map<Sample, PlannedSample & { readonly referenceLogprobs: Float32Array | undefined }>;
  /** By epoch and sample. */
  readonly passes: Map<number, Map<Sample, { readonly minibatch: number; readonly numbers: SampleNumbers }>>;
}

function samplesOfSums({ rollout }: CreditedRollout): RolloutSums {
  return {
    pull: 0,
    samples: rollout.samples.map((sample) => ({
      pulls: new Float64Array(sampledTokenCount(sample)),
      last: undefined,
    })),
  };
}

function keep(
  { columns, passes }: KeptRollout,
  { epoch, minibatch, reference }: RecordedUpdate,
  planned: PlannedSample,
  numbers: SampleNumbers,
): void {
  const { sample } = planned;
  columns.set(sample, { ...planned, referenceLogprobs: reference?.get(sample) });
  const ofEpoch = passes.get(epoch) ?? new Map();
  passes.set(epoch, ofEpoch.set(sample, { minibatch, numbers }));
}

/** The record of a rollout, of those of its samples that were trained; undefined where no update trained one. */
function finished(credited: CreditedRollout, { columns, passes }: KeptRollout): RolloutTokens | undefined {
  const { rollout, reward } = credited;
  const samples = rollout.samples.filter((sample) => columns.has(sample));
  if (samples.length === 0) return undefined;
  const planned = samples.map((sample) => columns.get(sample)!);
  const behaviourLogprobs = joined(samples.map(({ logprobs }) => logprobs));
  const oldLogprobs = joined(planned.map((each) => each.oldLogprobs));
  const places = samples.map(({ lossMask }) => positionsOf(lossMask));
  return {
    slot: rollout.slot,
    role: rollout.role,
    reward,
    ...advantageColumns(credited, trainedPlaces(rollout.samples, columns)),
    sampleTokens: sampleTokensOf(rollout, columns),
    tokenIds: Uint32Array.from(samples.flatMap(({ tokenIds }, i) => places[i]!.map((at) => tokenIds[at]!))),
    positions: Uint32Array.from(places.flat()),
    behaviourLogprobs,
    oldLogprobs: planned.every(({ sample, oldLogprobs: old }) => old === sample.logprobs)
      ? undefined
      : oldLogprobs,
    referenceLogprobs: planned.every(({ referenceLogprobs }) => referenceLogprobs !== undefined)
      ? joined(planned.map(({ referenceLogprobs }) => referenceLogprobs!))
      : undefined,
    advantages: columnOf(joined(planned.map(({ advantages }) => advantages))),
    weights: columnOf(joined(planned.map(({ weights }) => weights))),
    corrections: planned.every(({ corrections }) => corrections !== undefined)
      ? columnOf(joined(planned.map(({ corrections }) => corrections!)))
      : undefined,
    passes: [...passes].map(([epoch, ofEpoch]) => passOf(epoch, samples, ofEpoch)),
  };
}

function passOf(
  epoch: number,
  samples: readonly Sample[],
  found: ReadonlyMap<Sample, { readonly minibatch: number; readonly numbers: SampleNumbers }>,
): TokenPass {
  const parts = samples.flatMap((sample) => found.get(sample) ?? []);
  const numbers = parts.map((part) => part.numbers);
  const pass: GrowingPass = {
    epoch,
    minibatch: parts[0]?.minibatch ?? 0,
    logprobs: joined(numbers.map(({ logprobs }) => logprobs)),
    ratios: joined(numbers.map(({ ratios }) => ratios)),
    coefficients: joined(numbers.map(({ coefficients }) => coefficients)),
    pulls: joined(numbers.map(({ pulls }) => pulls)),
    cuts: numbers.flatMap(({ cuts }) => cuts),
  };
  if (numbers.every(({ klCoefficients }) => klCoefficients !== undefined)) {
    pass.klCoefficients = joined(numbers.map(({ klCoefficients }) => klCoefficients!));
  }
  return pass;
}

/** [N] numbers of samples one after the other. */
function joined(parts: readonly ArrayLike<number>[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** How many tokens each sample of the whole rollout has in the record; samples of other roles have none. */
function sampleTokensOf(rollout: Rollout, trained: ReadonlyMap<Sample, unknown>): number[] {
  const { samples } = rollout;
  const counts = Array<number>(samples.length === 0 ? 0 : placeOfSample(rollout, samples.length - 1) + 1);
  counts.fill(0);
  samples.forEach((sample, index) => {
    if (trained.has(sample)) counts[placeOfSample(rollout, index)] = sampledTokenCount(sample);
  });
  return counts;
}

function positionsOf(lossMask: Uint8Array): number[] {
  return Array.from(lossMask.keys()).filter((at) => lossMask[at] === 1);
}

/** Which of the rollout's sampled tokens are in samples that were trained; undefined = all. */
function trainedPlaces(
  samples: readonly Sample[],
  trained: ReadonlyMap<Sample, unknown>,
): readonly number[] | undefined {
  if (samples.every((sample) => trained.has(sample))) return undefined;
  let next = 0;
  return samples.flatMap((sample) => {
    const places = Array.from({ length: sampledTokenCount(sample) }, () => next++);
    return trained.has(sample) ? places : [];
  });
}
