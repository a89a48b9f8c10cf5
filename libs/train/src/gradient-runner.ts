/**
 * Computes loss, log-probabilities and gradients of samples under given weights.
 *
 * R1  Weights are read where they lie: whoever updates them in place does so between calls.
 * R2  Microbatches are a function of the samples, and their gradients are added in their order: the same samples
 *     give the same bits on any number of threads.
 */
import type { LoraSpec, ModelSpec, Weights } from "@hone/nn";
import type { PackableSample } from "@hone/rl";
import type { SessionOptions } from "@hone/tensor";
import type { KlConfig } from "./kl.ts";
import { comparesWithBehaviour, type LossConfig } from "./losses.ts";
import { MicrobatchPool } from "./microbatch-pool.ts";
import { type MicrobatchJob, type MicrobatchResult, MicrobatchRunner } from "./microbatch-runner.ts";
import {
  flattenEntries,
  type Microbatch,
  type MicrobatchPlan,
  type PackingLimits,
  planMicrobatches,
  SMALL_MODEL_MICROBATCHES,
  type TrainingSample,
} from "./microbatches.ts";
import { rowCostOf } from "./row-length.ts";
import { isLargeModel, ThreadSharing } from "./training-memory.ts";
import { UpdateThreads } from "./update-threads.ts";

export interface RunnerOptions extends Omit<PackingLimits, "microbatchMultiple" | "rowCost"> {
  /** Threads that compute; default 1, the calling one. */
  readonly threads?: number;
  /** What the threads share; default microbatches, which need weights in shared memory. The bits are the same. */
  readonly sharing?: ThreadSharing;
  /** Adapters that are trained instead of the model, and lie among its weights; default none. */
  readonly lora?: LoraSpec | undefined;
  /** Values of the logits that the head makes at a time, which bounds their memory; default as head-loss.ts says. */
  readonly headChunkValues?: number;
  /** Layers whose activations are computed again instead of kept, which takes time and saves memory; default 0. */
  readonly recomputedLayers?: number;
  /** Threads that add up the gradients of microbatches; default the calling one. They stay the caller's. */
  readonly updates?: UpdateThreads;
  /** Options of the graph sessions. */
  readonly session?: Omit<SessionOptions, "intraOpThreads">;
}

/** The trained tokens of all samples under the weights, in order of (sample, token). N in all. */
export interface ScoredEntries {
  /** [N] */
  readonly logprobs: Float32Array;
  /** [N] entropy of the distribution that the token was scored under, in nats. */
  readonly entropies: Float32Array;
  /** Tokens of the samples, as separate sequences would compute them. */
  readonly sampleTokenCount: number;
  /** Tokens computed, without padding. */
  readonly packedTokenCount: number;
  /** Tokens computed, with padding. */
  readonly paddedTokenCount: number;
}

export interface LossAndGradients extends ScoredEntries {
  readonly loss: number;
  /** By name of the parameters that are trained, in their layout. */
  readonly gradients: Record<string, Float32Array>;
}

/** A loss with the factor of the entropy bonus, 0 for none. */
export interface Objective {
  readonly loss: LossConfig;
  readonly entropyCoefficient: number;
  /** Distance from the reference policy that is added to the loss; default none. */
  readonly kl?: KlConfig | undefined;
  /** Temperature that the tokens were sampled at, which all log-probabilities refer to; default 1. */
  readonly temperature?: number;
}

export class GradientRunner {
  readonly #limits: PackingLimits;
  readonly #updates: UpdateThreads;
  readonly #executor: MicrobatchRunner | MicrobatchPool;

  constructor(spec: ModelSpec, options: RunnerOptions) {
    const { threads = 1, sharing = ThreadSharing.microbatches, lora, session = {} } = options;
    const model = { spec, lora };
    this.#limits = isLargeModel(spec)
      ? { rowCost: rowCostOf(spec), ...options }
      : { ...options, microbatchMultiple: SMALL_MODEL_MICROBATCHES };
    this.#updates = options.updates ?? new UpdateThreads(1);
    const maxTokens = Math.max(options.maxRowTokens, options.maxMicrobatchTokens);
    const { headChunkValues, recomputedLayers = 0 } = options;
    const bounds = { maxTokens, headChunkValues, recomputedLayers };
    this.#executor =
      threads === 1 || sharing === ThreadSharing.operators
        ? new MicrobatchRunner(model, {
            ...bounds,
            session: { ...session, intraOpThreads: threads },
          })
        : new MicrobatchPool(model, { ...bounds, session }, threads);
  }

  /** Log-probabilities and entropies of the trained tokens at a temperature. */
  async score(weights: Weights, samples: readonly PackableSample[], temperature = 1): Promise<ScoredEntries> {
    const plan = planMicrobatches(samples, this.#limits);
    const jobs = plan.microbatches.map(
      (batch): MicrobatchJob => ({ batch, temperature, objective: undefined }),
    );
    const scored = emptyScores(plan);
    for await (const { batch, result } of this.#run(weights, jobs)) takeScores(scored, batch, result);
    return scored;
  }

  /** Loss and gradients of an objective over all samples together. */
  async differentiate(
    weights: Weights,
    samples: readonly TrainingSample[],
    objective: Objective,
  ): Promise<LossAndGradients> {
    const entries = entryArrays(samples, objective);
    const plan = planMicrobatches(samples, this.#limits);
    const jobs = plan.microbatches.map((batch) => jobOf(batch, entries, objective));
    const scored = emptyScores(plan);
    const gradients: Record<string, Float32Array> = {};
    let loss = 0;
    for await (const { batch, result } of this.#run(weights, jobs)) {
      takeScores(scored, batch, result);
      loss += result.loss;
      await this.#updates.add(gradients, result.gradients); // R2
    }
    return { ...scored, loss, gradients };
  }

  /** Frees sessions and threads. */
  async close(): Promise<void> {
    await this.#executor.close();
  }

  async *#run(
    weights: Weights,
    jobs: readonly MicrobatchJob[],
  ): AsyncGenerator<{ batch: Microbatch; result: MicrobatchResult }> {
    if (this.#executor instanceof MicrobatchRunner) {
      for (const job of jobs) yield { batch: job.batch, result: await this.#executor.run(weights, job) };
      return;
    }
    let at = 0;
    for await (const result of this.#executor.run(weights, jobs)) yield { batch: jobs[at++]!.batch, result };
  }
}

interface EntryArrays {
  readonly behaviourLogprob: Float32Array;
  readonly advantage: Float32Array;
  readonly weight: Float32Array;
  readonly referenceLogprob: Float32Array | undefined;
}

function entryArrays(samples: readonly TrainingSample[], { loss, kl }: Objective): EntryArrays {
  const weight = flattenEntries(samples, "weights");
  const referenceLogprob = kl === undefined ? undefined : flattenEntries(samples, "referenceLogprobs");
  if (!comparesWithBehaviour(loss)) {
    const unused = new Float32Array(weight.length);
    return { behaviourLogprob: unused, advantage: unused, weight, referenceLogprob };
  }
  return {
    referenceLogprob,
    behaviourLogprob: flattenEntries(samples, "logprobs"),
    advantage: flattenEntries(samples, "advantages"),
    weight,
  };
}

function jobOf(batch: Microbatch, entries: EntryArrays, objective: Objective): MicrobatchJob {
  const pick = (values: Float32Array) => Float32Array.from(batch.entryIndex, (entry) => values[entry]!);
  const weight = pick(entries.weight);
  return {
    batch,
    temperature: objective.temperature ?? 1,
    objective: {
      loss: objective.loss,
      behaviourLogprob: pick(entries.behaviourLogprob),
      advantage: pick(entries.advantage),
      weight,
      kl: objective.kl,
      referenceLogprob: entries.referenceLogprob === undefined ? undefined : pick(entries.referenceLogprob),
      entropyWeight:
        objective.entropyCoefficient === 0
          ? undefined
          : positionWeights(batch, weight, objective.entropyCoefficient),
    },
  };
}

/** A position's entropy counts with the weights of all entries that read it. */
function positionWeights(batch: Microbatch, weight: Float32Array, coefficient: number): Float32Array {
  const weights = new Float32Array(batch.positions.length);
  batch.entryPosition.forEach((position, entry) => {
    weights[position]! += coefficient * weight[entry]!;
  });
  return weights;
}

type Scores = { -readonly [K in keyof ScoredEntries]: ScoredEntries[K] };

function emptyScores({ packed }: MicrobatchPlan): Scores {
  return {
    logprobs: new Float32Array(packed.entryTarget.length),
    entropies: new Float32Array(packed.entryTarget.length),
    sampleTokenCount: packed.sampleTokenCount,
    packedTokenCount: packed.packedTokenCount,
    paddedTokenCount: packed.tokenIds.length,
  };
}

function takeScores(scores: Scores, batch: Microbatch, result: MicrobatchResult): void {
  batch.entryIndex.forEach((entry, at) => {
    scores.logprobs[entry] = result.logprob[at]!;
    scores.entropies[entry] = result.entropy[batch.entryPosition[at]!]!;
  });
}
