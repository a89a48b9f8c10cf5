/**
 * The engine on PyTorch workers: the same port as the embedded one, with the arithmetic in a group of processes.
 *
 * Packing, losses and the files of checkpoints are the same as the embedded engine's; only the arithmetic is done elsewhere.
 *
 * E1  A call that fails because the group is gone leaves this engine without one: the caller makes another engine and
 *     loads the last commit. Training never goes on from half of an update.
 * E2  Calls are made one after the other in the order in which they were asked for, their preparations included.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { MergedPlace, WeightWriter } from "@hone/checkpoint";
import { type Scores, WeightSet } from "@hone/proto-gen/training";
import {
  emptyScores,
  type PackingLimits,
  type PlannedPasses,
  packingLimits,
  planScoring,
  planUpdate,
  type ScoringOptions,
  type TrainingSample,
  takeScores,
} from "@hone/train";
import type {
  Minibatch,
  MinibatchResult,
  SampleScores,
  SavedState,
  TrainingEngine,
} from "../domain/step/training-engine.ts";
import { DEFAULT_MICROBATCH_TOKENS, DEFAULT_ROW_TOKENS, stateBytesOf } from "../engine/engine-config.ts";
import { EngineLostError } from "../engine/errors.ts";
import { imitationOf } from "../engine/imitation.ts";
import { checkTemperature, splitScores } from "../engine/split-scores.ts";
import type { FsdpEngineConfig, TorchHost } from "./fsdp-config.ts";
import { type FsdpFiles, fsdpFiles, OPTIMIZER_FOLDER, optimizerFolder } from "./fsdp-files.ts";
import { type Answer, type CallKind, TorchGroup } from "./torch-group.ts";
import {
  adamWMessage,
  floatsOf,
  lossTerm,
  microbatch,
  setupOf,
  storedTensor,
  weightFile,
} from "./worker-messages.ts";

/** Workers that take calls: a {@link TorchGroup}. */
export type WorkerGroup = Pick<TorchGroup, "call" | "close">;
export type StartGroup = (host: TorchHost, worldSize: number, signal: AbortSignal) => Promise<WorkerGroup>;

export class FsdpTrainingEngine implements TrainingEngine {
  readonly vocabSize: number;
  readonly stateBytes: number;
  readonly arithmetic: string;
  readonly #config: FsdpEngineConfig;
  readonly #host: TorchHost;
  readonly #files: FsdpFiles;
  readonly #limits: PackingLimits;
  readonly #startGroup: StartGroup;
  #group: Promise<WorkerGroup> | undefined;
  #isBaseLoaded = false;
  #last: Promise<unknown> = Promise.resolve();
  readonly #closed = new AbortController();
  #closing: Promise<void> | undefined;

  /** Starts no workers: the first call does. @param startGroup starts them */
  constructor(config: FsdpEngineConfig, host: TorchHost, startGroup: StartGroup = TorchGroup.start) {
    this.vocabSize = config.spec.vocabSize;
    this.stateBytes = stateBytesOf(config);
    const { worldSize, computeType } = config;
    this.arithmetic = `PyTorch ${host.torchVersion} ${computeType} on ${worldSize} ${host.device} workers`;
    this.#config = config;
    this.#host = host;
    this.#startGroup = startGroup;
    this.#files = fsdpFiles(config);
    this.#limits = packingLimits(config.spec, {
      maxRowTokens: config.maxRowTokens ?? DEFAULT_ROW_TOKENS,
      maxMicrobatchTokens: config.maxMicrobatchTokens ?? DEFAULT_MICROBATCH_TOKENS,
    });
  }

  initialise(): Promise<void> {
    return this.#inOrder(async () => {
      const scratch = await this.#makeStartFolder();
      try {
        await this.#loadPolicy(await this.#files.initialise(scratch), undefined);
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
    });
  }

  load(folder: string): Promise<void> {
    return this.#inOrder(async () => {
      const places = await this.#files.load(folder, !this.#isBaseLoaded);
      await this.#loadPolicy(places, await optimizerFolder(folder));
    });
  }

  loadReference(folder: string): Promise<void> {
    return this.#inOrder(async () => {
      const tensors = (await this.#files.load(folder, false)).map(storedTensor);
      await this.#call({ case: "load", value: { target: WeightSet.REFERENCE, tensors } });
    });
  }

  trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult> {
    return this.#inOrder(async () => {
      const started = performance.now();
      const { samples, terms, entropyCoefficient, temperature = 1, optimizer, maxGradNorm } = minibatch;
      const { supervised = [] } = minibatch;
      checkTemperature({ temperature });
      const objective = { terms, entropyCoefficient, temperature };
      const { head } = this.#config.spec;
      const work = planUpdate(samples, this.#limits, objective, head);
      const imitation = imitationOf(supervised);
      const beside = imitation && planUpdate(imitation.samples, this.#limits, imitation.objective, head);
      const scores = await this.#scores({
        case: "train",
        value: {
          microbatches: work.passes.map(microbatch),
          terms: terms.map(lossTerm),
          temperature,
          optimizer: adamWMessage(optimizer),
          maxGradNorm,
          supervised: beside?.passes.map(microbatch) ?? [],
        },
      });
      const { gradNorm, loss, microbatches } = scores;
      const ofSupervised = microbatches.slice(work.passes.length);
      const supervisedLogprobs =
        beside === undefined ? [] : scoresOf(beside, supervised, ofSupervised, started).logprobs;
      return { ...scoresOf(work, samples, microbatches, started), loss, gradNorm, supervisedLogprobs };
    });
  }

  resetOptimizer(): Promise<void> {
    return this.#inOrder(async () => {
      await this.#call({ case: "resetOptimizer", value: {} });
    });
  }

  logprobs(samples: readonly TrainingSample[], options: ScoringOptions = {}): Promise<SampleScores> {
    return this.#score(samples, options, WeightSet.POLICY);
  }

  referenceLogprobs(samples: readonly TrainingSample[], options: ScoringOptions = {}): Promise<SampleScores> {
    return this.#score(samples, options, WeightSet.REFERENCE);
  }

  save(folder: string): Promise<SavedState> {
    return this.#write(folder, (write) => this.#files.save(folder, write), true);
  }

  saveWeights(folder: string): Promise<SavedState> {
    return this.#write(folder, (write) => this.#files.save(folder, write), false);
  }

  exportTo(folder: string): Promise<SavedState> {
    return this.#write(folder, (write) => this.#files.exportTo(folder, write), false);
  }

  close(): Promise<void> {
    this.#closed.abort();
    this.#closing ??= (async () => {
      const group = await this.#group?.catch(() => undefined);
      await group?.close();
    })();
    return this.#closing;
  }

  #score(
    samples: readonly TrainingSample[],
    options: ScoringOptions,
    target: WeightSet,
  ): Promise<SampleScores> {
    return this.#inOrder(async () => {
      const started = performance.now();
      checkTemperature(options);
      const { temperature = 1, hasSquares = false } = options;
      const work = planScoring(samples, this.#limits, options);
      const microbatches = work.passes.map(microbatch);
      const value = { microbatches, temperature, target, hasSquares };
      const scores = await this.#scores({ case: "score", value });
      return scoresOf(work, samples, scores.microbatches, started);
    });
  }

  async #makeStartFolder(): Promise<string> {
    const { startFolder } = this.#config;
    if (startFolder === undefined) return mkdtemp(path.join(os.tmpdir(), "hone-start-"));
    await rm(startFolder, { recursive: true, force: true });
    await mkdir(startFolder, { recursive: true });
    return startFolder;
  }

  async #loadPolicy(places: readonly MergedPlace[], optimizer: string | undefined): Promise<void> {
    const tensors = places.map(storedTensor);
    const optimizerFolder = optimizer ?? "";
    await this.#call({ case: "load", value: { target: WeightSet.POLICY, tensors, optimizerFolder } });
    this.#isBaseLoaded = true;
  }

  /** @param write writes everything except tensor data, which it gives to the writer that it is passed. */
  #write(
    folder: string,
    write: (writer: WeightWriter) => Promise<SavedState>,
    isWhole: boolean,
  ): Promise<SavedState> {
    return this.#inOrder(async () => {
      let optimizerBytes = 0;
      const saved = await write(async (files) => {
        const answer = await this.#call({
          case: "save",
          value: {
            files: files.map(weightFile),
            optimizerFolder: isWhole ? path.join(folder, OPTIMIZER_FOLDER) : "",
          },
        });
        if (answer.case !== "saved") throw unexpected("save", answer);
        optimizerBytes = Number(answer.value.optimizerBytes);
        return answer.value.files.map(({ digest, bytes }) => ({ digest, bytes: Number(bytes) }));
      });
      return { ...saved, bytes: saved.bytes + optimizerBytes };
    });
  }

  async #scores(kind: CallKind): Promise<Scores> {
    const answer = await this.#call(kind);
    if (answer.case !== "scores") throw unexpected(String(kind.case), answer);
    return answer.value;
  }

  async #call(kind: CallKind): Promise<Answer> {
    if (this.#closing !== undefined) throw new EngineLostError("closed");
    this.#group ??= this.#start();
    return (await this.#group).call(kind);
  }

  async #start(): Promise<WorkerGroup> {
    const group = await this.#startGroup(this.#host, this.#config.worldSize, this.#closed.signal);
    try {
      await group.call({ case: "setup", value: setupOf(this.#config, this.#files.model) });
      return group;
    } catch (error) {
      await group.close();
      throw error;
    }
  }

  /** E2 */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const made = this.#last.then(work);
    this.#last = made.catch(() => undefined);
    return made;
  }
}

function scoresOf(
  { plan, passes }: PlannedPasses,
  samples: readonly TrainingSample[],
  found: Scores["microbatches"],
  started: number,
): SampleScores {
  const scores = emptyScores(plan);
  passes.forEach(({ batch }, i) => {
    const { score, entropy, squares } = found[i]!;
    takeScores(scores, batch, {
      score: floatsOf(score),
      entropy: floatsOf(entropy),
      squares: floatsOf(squares),
    });
  });
  return splitScores(samples, scores, started);
}

function unexpected(call: string, answer: Answer): EngineLostError {
  return new EngineLostError(`an answer of kind ${answer.case} to ${call}`);
}
