/**
 * Computes loss, log-probabilities and gradients of samples under given weights.
 *
 * R1  Weights are read where they lie: whoever updates them in place does so between calls.
 * R2  Microbatches are a function of the samples, and their gradients are added in their order: the same samples
 *     give the same bits on any number of threads.
 */
import type { LoraSpec, ModelSpec, Weights } from "@hone/nn";
import type { MaskedTokens } from "@hone/rl";
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
  takeScores,
} from "./batches/plan-passes.ts";
import { ThreadSharing, usualRowPieces } from "./graph/training-memory.ts";
import { UpdateThreads } from "./update/update-threads.ts";

export interface RunnerOptions extends Omit<PackingLimits, "microbatchMultiple" | "rowCost"> {
  /** Threads that compute; default 1, the calling one. */
  readonly threads?: number;
  /** What the threads share; default microbatches, which need weights in shared memory. The bits are the same. */
  readonly sharing?: ThreadSharing;
  /** Adapters that are trained instead of the model, and lie among its weights; default none. */
  readonly lora?: LoraSpec | undefined;
  /** Values of the logits that the head makes at a time, which bounds their memory; default as head-loss.ts says. */
  readonly headChunkValues?: number;
  /** Pieces of the rows that attention goes through one after the other (packed-attention.ts); default by the model. */
  readonly rowPieces?: number;
  /** Layers whose activations are computed again instead of kept, which takes time and saves memory; default 0. */
  readonly recomputedLayers?: number;
  /** What a training session takes before its first pass, see `TrainingPlan`; default 0. */
  readonly reservedBytes?: number;
  /** Threads that add up the gradients of microbatches; default the calling one. They stay the caller's. */
  readonly updates?: UpdateThreads;
  /** Options of the graph sessions. */
  readonly session?: Omit<SessionOptions, "intraOpThreads">;
}

export interface LossAndGradients extends ScoredEntries {
  readonly loss: number;
  /** By name of the parameters that are trained, in their layout. */
  readonly gradients: Record<string, Float32Array>;
}

export class GradientRunner {
  readonly #limits: PackingLimits;
  readonly #updates: UpdateThreads;
  readonly #executor: PassRunner | PassThreads;

  constructor(spec: ModelSpec, options: RunnerOptions) {
    const { threads = 1, sharing = ThreadSharing.microbatches, lora, session = {} } = options;
    const model = { spec, lora };
    const rowPieces = options.rowPieces ?? usualRowPieces(spec);
    this.#limits = { ...packingLimits(spec, options), minRowTokens: rowPieces };
    this.#updates = options.updates ?? new UpdateThreads(1);
    const maxTokens = Math.max(options.maxRowTokens, options.maxMicrobatchTokens);
    const { headChunkValues, recomputedLayers = 0, reservedBytes = 0 } = options;
    const bounds = { maxTokens, headChunkValues, rowPieces, recomputedLayers, reservedBytes };
    this.#executor =
      threads === 1 || sharing === ThreadSharing.operators
        ? new PassRunner(model, {
            ...bounds,
            session: { ...session, intraOpThreads: threads },
          })
        : new PassThreads(model, { ...bounds, session }, threads);
  }

  /** Log-probabilities and entropies of the trained tokens at a temperature. */
  async score(weights: Weights, samples: readonly MaskedTokens[], temperature = 1): Promise<ScoredEntries> {
    const { plan, passes } = planScoring(samples, this.#limits, temperature);
    const scored = emptyScores(plan);
    for await (const { batch, result } of this.#run(weights, passes)) takeScores(scored, batch, result);
    return scored;
  }

  /** Loss and gradients of an objective over all samples together. */
  async differentiate(
    weights: Weights,
    samples: readonly TrainingSample[],
    objective: Objective,
  ): Promise<LossAndGradients> {
    const { plan, passes } = planUpdate(samples, this.#limits, objective);
    const scored = emptyScores(plan);
    const gradients: Record<string, Float32Array> = {};
    let loss = 0;
    for await (const { batch, result } of this.#run(weights, passes)) {
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
    passes: readonly Pass[],
  ): AsyncGenerator<{ batch: Microbatch; result: PassResult }> {
    if (this.#executor instanceof PassRunner) {
      for (const pass of passes) yield { batch: pass.batch, result: await this.#executor.run(weights, pass) };
      return;
    }
    let at = 0;
    for await (const result of this.#executor.run(weights, passes))
      yield { batch: passes[at++]!.batch, result };
  }
}
