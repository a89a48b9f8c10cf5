/**
 * Computes loss, scores (log-probabilities, or the values of a critic) and gradients of samples for given weights.
 *
 * R1  Weights are read in place, so they may be updated in place only between calls, and not between {@link GradientRunner.prepare} and
 *     the next gradients. With adapters, those of the model itself must not change: they are quantized once.
 * R2  Microbatches depend only on the samples, and their gradients are added in order, so the same samples give the same bits
 *     on any number of threads.
 */
import {
  allocateQuantized,
  type EightBitTraining,
  type LoraSpec,
  listFed,
  type ModelSpec,
  type QuantizedMatrices,
  WeightQuantizer,
  type Weights,
} from "@hone/nn";
import { MAX_QUANTIZED_TOKENS, type MaskedTokens } from "@hone/rl";
import type { SessionOptions } from "@hone/tensor";
import type { Microbatch, PackingLimits, TrainingSample } from "./batches/microbatch.ts";
import { type PassResult, PassRunner } from "./batches/pass-runner.ts";
import { PassThreads } from "./batches/pass-threads.ts";
import {
  emptyScores,
  type Objective,
  type Pass,
  packingLimits,
  planScoring,
  planUpdate,
  type ScoredEntries,
  type ScoringOptions,
  takeScores,
} from "./batches/plan-passes.ts";
import { TrainingInputError } from "./errors.ts";
import { ThreadSharing, usualRowPieces } from "./graph/training-memory.ts";
import { UpdateThreads } from "./update/update-threads.ts";

export interface RunnerOptions extends Omit<PackingLimits, "microbatchMultiple" | "rowCost"> {
  /** Number of threads that compute; default 1, the calling thread. */
  readonly threads?: number;
  /** How threads share the work; default by microbatches, which requires weights in shared memory. The bits are the same. */
  readonly sharing?: ThreadSharing;
  /** Adapters that are trained instead of the model; their tensors are among the weights. Default none. */
  readonly lora?: LoraSpec | undefined;
  /** Number of logit values that the head computes at a time, which limits their memory; default in head-loss.ts. */
  readonly headChunkValues?: number;
  /** Number of pieces of a row for attention (packed-attention.ts); the default depends on the model. */
  readonly rowPieces?: number;
  /** Number of layers whose activations are recomputed instead of kept, which saves memory but takes time; default 0. */
  readonly recomputedLayers?: number;
  /** Memory that a training session reserves before its first pass, see `TrainingPlan`; default 0. */
  readonly reservedBytes?: number;
  /** Threads that add up the gradients of microbatches; default the calling thread. The caller must close them. */
  readonly updates?: UpdateThreads;
  /** Computes products in eight bits. @default float32 */
  readonly eightBits?: EightBitTraining | undefined;
  /** Options of the graph sessions. */
  readonly session?: Omit<SessionOptions, "intraOpThreads">;
}

/** Samples that the same update learns from, with another objective. */
export interface SamplesBeside {
  readonly samples: readonly TrainingSample[];
  readonly objective: Objective;
}

export interface LossAndGradients extends ScoredEntries {
  readonly loss: number;
  /** Scores of the samples beside; absent = there were none. */
  readonly beside?: ScoredEntries;
  /** Gradients by the names of the trained parameters, in the layout of the parameters. */
  readonly gradients: Record<string, Float32Array>;
}

export class GradientRunner {
  readonly #spec: ModelSpec;
  readonly #limits: PackingLimits;
  readonly #updates: UpdateThreads;
  /** What the last call quantized of its weights, and what quantizes them. */
  readonly #quantized: QuantizedMatrices | undefined;
  readonly #quantizer: WeightQuantizer | undefined;
  readonly #hasQuantizedGradients: boolean;
  readonly #hasAdapters: boolean;
  /** The weights of the last call; it does not keep them in memory. */
  #quantizedOf: WeakRef<Weights> | undefined;
  /** Whether these have not changed since (R1). */
  #isPrepared = false;
  readonly #executor: PassRunner | PassThreads;

  constructor(spec: ModelSpec, options: RunnerOptions) {
    const { threads = 1, sharing = ThreadSharing.microbatches, lora, session = {} } = options;
    const model = { spec, lora };
    this.#spec = spec;
    this.#hasAdapters = lora !== undefined;
    const rowPieces = options.rowPieces ?? usualRowPieces(spec);
    this.#limits = { ...packingLimits(spec, options), minRowTokens: rowPieces };
    this.#updates = options.updates ?? new UpdateThreads(1);
    const maxTokens = Math.max(options.maxRowTokens, options.maxMicrobatchTokens);
    const { headChunkValues, recomputedLayers = 0, reservedBytes = 0 } = options;
    const { eightBits } = options;
    this.#hasQuantizedGradients = eightBits?.hasGradients ?? false;
    if (eightBits !== undefined) {
      const fed = listFed(spec, eightBits);
      this.#quantized = allocateQuantized(fed, eightBits.type, (bytes) => new SharedArrayBuffer(bytes));
      this.#quantizer = new WeightQuantizer(this.#quantized, fed);
    }
    const bounds = { maxTokens, headChunkValues, rowPieces, recomputedLayers, reservedBytes, eightBits };
    this.#executor =
      threads === 1 || sharing === ThreadSharing.operators
        ? new PassRunner(model, {
            ...bounds,
            session: { ...session, intraOpThreads: threads },
          })
        : new PassThreads(model, { ...bounds, session }, threads);
  }

  /** Does what the next calls for these weights would begin with, for a caller that has time before them. */
  async prepare(weights: Weights): Promise<void> {
    if (this.#quantizer === undefined || this.#isQuantized(weights)) return;
    await this.#quantizeAll(this.#quantizer, weights, true);
    this.#isPrepared = true;
  }

  /** Computes log-probabilities and entropies of the trained tokens at a temperature, or with a value head their values. */
  async score(
    weights: Weights,
    samples: readonly MaskedTokens[],
    options: ScoringOptions = {},
  ): Promise<ScoredEntries> {
    const { plan, passes } = planScoring(samples, this.#limits, options);
    const scored = emptyScores(plan);
    for await (const { batch, result } of this.#run(weights, passes)) takeScores(scored, batch, result);
    return scored;
  }

  /**
   * Computes loss and gradients of an objective over all samples together.
   * @param beside samples with an objective of their own, whose loss is added; default none.
   * @throws TrainingInputError as {@link planUpdate}, and if a sample is too long for gradients in eight bits.
   */
  async differentiate(
    weights: Weights,
    samples: readonly TrainingSample[],
    objective: Objective,
    beside?: SamplesBeside,
  ): Promise<LossAndGradients> {
    const parts = [planUpdate(samples, this.#limits, objective, this.#spec.head)];
    if (beside !== undefined) {
      parts.push(planUpdate(beside.samples, this.#limits, beside.objective, this.#spec.head));
    }
    const scored = parts.map(({ plan }) => emptyScores(plan));
    const partOf = new Map(parts.flatMap(({ passes }, part) => passes.map(({ batch }) => [batch, part])));
    const gradients: Record<string, Float32Array> = {};
    let loss = 0;
    const passes = parts.flatMap((part) => part.passes);
    if (this.#hasQuantizedGradients) for (const { batch } of passes) requireSummable(batch);
    for await (const { batch, result } of this.#run(weights, passes)) {
      takeScores(scored[partOf.get(batch)!]!, batch, result);
      loss += result.loss;
      await this.#updates.add(gradients, result.gradients); // R2
    }
    return { ...scored[0]!, loss, gradients, ...(scored[1] !== undefined && { beside: scored[1] }) };
  }

  /** Frees sessions and threads. */
  async close(): Promise<void> {
    await this.#executor.close();
    await this.#quantizer?.[Symbol.asyncDispose]();
  }

  async *#run(
    weights: Weights,
    passes: readonly Pass[],
  ): AsyncGenerator<{ batch: Microbatch; result: PassResult }> {
    const quantized = this.#quantized;
    await this.#quantize(weights, passes);
    const read = { weights, quantized };
    if (this.#executor instanceof PassRunner) {
      for (const pass of passes) yield { batch: pass.batch, result: await this.#executor.run(read, pass) };
      return;
    }
    let at = 0;
    for await (const result of this.#executor.run(read, passes)) yield { batch: passes[at++]!.batch, result };
  }

  /** Quantizes what the passes read of the weights. */
  async #quantize(weights: Weights, passes: readonly Pass[]): Promise<void> {
    if (this.#quantizer === undefined) return;
    const isScoring = passes.every(({ objective }) => objective === undefined);
    const isDone = this.#isQuantized(weights);
    if (!isScoring) this.#isPrepared = false;
    if (!isDone) await this.#quantizeAll(this.#quantizer, weights, this.#hasAdapters || !isScoring);
  }

  /** R1 */
  #isQuantized(weights: Weights): boolean {
    return (this.#hasAdapters || this.#isPrepared) && this.#quantizedOf?.deref() === weights;
  }

  async #quantizeAll(quantizer: WeightQuantizer, weights: Weights, hasChannels: boolean): Promise<void> {
    this.#quantizedOf = undefined;
    this.#isPrepared = false;
    await quantizer.takeAll(this.#spec, weights, hasChannels);
    this.#quantizedOf = new WeakRef(weights);
  }
}

/** A pass is longer than a microbatch may be only if it is a single row. */
function requireSummable({ tokenIds }: Microbatch): void {
  if (tokenIds.length <= MAX_QUANTIZED_TOKENS) return;
  throw new TrainingInputError(
    `a sample needs a pass of ${tokenIds.length} tokens, and gradients in eight bits can be added up over at most ${MAX_QUANTIZED_TOKENS}: train without quantizedGradients, or shorten the context`,
  );
}
