/**
 * Computes loss, log-probabilities and gradients of samples under given weights.
 *
 * R1  Weights are graph inputs and are read where they lie: whoever updates them in place does so between calls.
 * R2  Gradients of microbatches are added in their order, so the same samples give the same bits.
 * R3  One session per loss is kept; its sizes are symbolic, so it serves every batch.
 */
import { listParameters, type ModelSpec, type Weights } from "@hone/nn";
import type { PackableSample } from "@hone/rl";
import { type Feed, type Fetched, GraphSession, type SessionOptions } from "@hone/tensor";
import { comparesWithBehaviour, type LossConfig } from "./losses.ts";
import {
  flattenEntries,
  type Microbatch,
  type MicrobatchPlan,
  microbatchFeeds,
  type PackingLimits,
  planMicrobatches,
  type TrainingSample,
} from "./microbatches.ts";
import { buildForwardGraph, buildTrainingGraph, gradientOutput, INPUT, OUTPUT } from "./training-graph.ts";

const EMBEDDING = "model.embed_tokens.weight";

export type RunnerOptions = PackingLimits &
  Pick<SessionOptions, "intraOpThreads" | "isSpinning" | "profilePrefix">;

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
  /** By parameter name, in the parameter's layout. */
  readonly gradients: Record<string, Float32Array>;
}

/** A loss with the factor of the entropy bonus, 0 for none. */
export interface Objective {
  readonly loss: LossConfig;
  readonly entropyCoefficient: number;
}

export class GradientRunner {
  readonly #spec: ModelSpec;
  readonly #options: RunnerOptions;
  readonly #sessions = new Map<string, Promise<GraphSession>>();

  constructor(spec: ModelSpec, options: RunnerOptions) {
    this.#spec = spec;
    this.#options = options;
  }

  /** Log-probabilities and entropies of the trained tokens. */
  async score(weights: Weights, samples: readonly PackableSample[]): Promise<ScoredEntries> {
    const session = await this.#session("forward", () => buildForwardGraph(this.#spec));
    const plan = planMicrobatches(samples, this.#options);
    const scored = emptyScores(plan);
    for (const batch of plan.microbatches) {
      const results = await session.run(this.#feeds(weights, batch));
      takeScores(scored, batch, results);
    }
    return scored;
  }

  /** Loss and gradients of an objective over all samples together. */
  async differentiate(
    weights: Weights,
    samples: readonly TrainingSample[],
    objective: Objective,
  ): Promise<LossAndGradients> {
    const { loss, entropyCoefficient } = objective;
    const hasEntropyBonus = entropyCoefficient !== 0;
    const session = await this.#session(JSON.stringify({ loss, hasEntropyBonus }), () =>
      buildTrainingGraph(this.#spec, loss, hasEntropyBonus),
    );
    const plan = planMicrobatches(samples, this.#options);
    const scored = emptyScores(plan);
    const weight = flattenEntries(samples, "weights");
    const unused = new Float32Array(weight.length);
    const hasBehaviour = comparesWithBehaviour(loss);
    const entries = {
      behaviourLogprob: hasBehaviour ? flattenEntries(samples, "logprobs") : unused,
      advantage: hasBehaviour ? flattenEntries(samples, "advantages") : unused,
      weight,
    };
    const sums = new Map<string, Float32Array>();
    const embedding = new Float32Array(weights[EMBEDDING]!.length);
    let total = 0;
    for (const batch of plan.microbatches) {
      const feeds = { ...this.#feeds(weights, batch), ...entryFeeds(batch, entries) };
      if (hasEntropyBonus)
        feeds[INPUT.entropyWeight] = entropyFeed(batch, entries.weight, entropyCoefficient);
      const results = await session.run(feeds);
      takeScores(scored, batch, results);
      total += floats(results, OUTPUT.loss)[0]!;
      for (const { name } of listParameters(this.#spec)) {
        const gradient = results[gradientOutput(name)];
        if (gradient !== undefined) addGradient(sums, name, gradient.data as Float32Array);
      }
      addEmbeddingGradient(embedding, batch, floats(results, gradientOutput(INPUT.embedded)));
    }
    addGradient(sums, EMBEDDING, embedding);
    return { ...scored, loss: total, gradients: Object.fromEntries(sums) };
  }

  /** Frees the sessions. */
  async close(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of sessions) await (await session).release();
  }

  #session(key: string, build: () => Parameters<typeof GraphSession.create>[0]): Promise<GraphSession> {
    let session = this.#sessions.get(key);
    if (session === undefined) {
      session = GraphSession.create(build(), this.#options);
      this.#sessions.set(key, session); // R3
    }
    return session;
  }

  #feeds(weights: Weights, batch: Microbatch): Record<string, Feed> {
    const feeds = microbatchFeeds(batch, weights[EMBEDDING]!, this.#spec.vocabSize);
    for (const { name, shape } of listParameters(this.#spec)) {
      feeds[name] = { dtype: "float32", data: weights[name]!, shape };
    }
    return feeds;
  }
}

type EntryArrays = Readonly<Record<"behaviourLogprob" | "advantage" | "weight", Float32Array>>;

function entryFeeds(batch: Microbatch, entries: EntryArrays): Record<string, Feed> {
  const pick = (values: Float32Array): Feed => ({
    dtype: "float32",
    data: Float32Array.from(batch.entryIndex, (entry) => values[entry]!),
    shape: [batch.entryIndex.length],
  });
  return {
    [INPUT.behaviourLogprob]: pick(entries.behaviourLogprob),
    [INPUT.advantage]: pick(entries.advantage),
    [INPUT.weight]: pick(entries.weight),
  };
}

/** A position's entropy counts with the weights of all entries that read it. */
function entropyFeed(batch: Microbatch, weight: Float32Array, coefficient: number): Feed {
  const data = new Float32Array(batch.positions.length);
  batch.entryPosition.forEach((position, entry) => {
    data[position]! += coefficient * weight[batch.entryIndex[entry]!]!;
  });
  return { dtype: "float32", data, shape: [data.length] };
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

function takeScores(scores: Scores, batch: Microbatch, results: Record<string, Fetched>): void {
  const logprob = floats(results, OUTPUT.logprob);
  const entropy = floats(results, OUTPUT.entropy);
  batch.entryIndex.forEach((entry, at) => {
    scores.logprobs[entry] = logprob[at]!;
    scores.entropies[entry] = entropy[batch.entryPosition[at]!]!;
  });
}

function addGradient(sums: Map<string, Float32Array>, name: string, gradient: Float32Array): void {
  const sum = sums.get(name);
  if (sum === undefined) {
    sums.set(name, gradient);
    return;
  }
  for (let i = 0; i < sum.length; i++) sum[i]! += gradient[i]!;
}

/** Adds each token's gradient to its row of the table, in the order of the tokens. */
function addEmbeddingGradient(table: Float32Array, batch: Microbatch, gradient: Float32Array): void {
  const width = gradient.length / batch.tokenIds.length;
  for (let at = 0; at < batch.tokenIds.length; at++) {
    const row = batch.tokenIds[at]! * width;
    const from = at * width;
    for (let i = 0; i < width; i++) table[row + i]! += gradient[from + i]!;
  }
}

function floats(results: Record<string, Fetched>, name: string): Float32Array {
  return results[name]!.data as Float32Array;
}
