/**
 * Whether a run may begin: every service that it names is asked, and answers.
 *
 * A1: no answer is no refusal: the run waits, and its published state says for whom.
 * A2: a refused run leaves nothing behind: no row, no state, no file.
 * A3: admission may be cut off anywhere and done again: everything in it can be repeated.
 */

import type { RunConfig } from "@hone/config";
import { describeError, RetryableError, retry } from "@hone/core";
import type { ModelConfig } from "@hone/nn";
import type { Logger } from "@hone/telemetry";
import { FolderRefusedError, OwnershipLostError } from "../errors.ts";
import type { ModelSource } from "../model/model-source.ts";
import { type PreparedModel, prepareModel } from "../model/prepare-model.ts";
import type { Problem, RunEvents } from "../report/run-event.ts";
import type { RunStateBoard } from "../report/run-status.ts";
import { NO_WAIT, type RunStatus } from "../report/run-status.ts";
import { publicConfigJson, statusOf } from "../report/status-of.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { RunRegistry } from "../run/run-registry.ts";
import { RunFolders } from "../state/run-folders.ts";

/** Asks services whether they can do their part of a run. */
export interface Validators {
  readonly services: readonly WaitOwner[];
  /** @returns what is wrong. @throws {RetryableError} when nobody answers. */
  validate(service: WaitOwner, run: RunToValidate, signal: AbortSignal): Promise<Problem[]>;
}

export interface RunToValidate {
  /** The resolved run file. */
  readonly configJson: string;
  /** config.json of its model; empty where that could not be found out. */
  readonly modelConfigJson: string;
}

export interface AdmissionDeps {
  readonly stateRoot: string;
  readonly registry: RunRegistry;
  readonly board: RunStateBoard & { remove(runId: string): Promise<void> };
  readonly events: RunEvents & {
    refused(requestSequence: number, problems: readonly Problem[]): Promise<void>;
  };
  readonly validators: Validators;
  readonly models: ModelSource;
  /** What is wrong where the run's engine is not there, or cannot train the model. */
  readonly engineProblems: (config: RunConfig, model: ModelConfig) => Promise<Problem[]>;
  readonly logger: Logger;
}

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;
const BYTES_PER_MB = 1_000_000;

export class Admission {
  readonly #deps: AdmissionDeps;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /** @returns whether the run may begin; when not, it is gone (A2). @throws the reason of the signal. */
  async admit(run: RunRecord, signal: AbortSignal): Promise<boolean> {
    const { registry, events, stateRoot, engineProblems, logger } = this.#deps;
    const folders = new RunFolders(stateRoot, run.runId);
    const prepared = await this.#untilPrepared(run, folders, signal);
    const modelConfigJson = prepared.kind === "ready" ? JSON.stringify(prepared.config) : "";
    const asked = { configJson: run.configJson, modelConfigJson };
    const problems = [
      ...(prepared.kind === "refused"
        ? prepared.problems
        : await engineProblems(run.config, prepared.config)),
      ...(await this.#ask(run, asked, folders, signal)),
    ];
    if (problems.length > 0) {
      await this.#refuse(run, folders, problems);
      return false;
    }
    await retry(
      () =>
        events.publish(
          run.runId,
          {
            kind: "accepted",
            requestSequence: run.requestSequence,
            configJson: publicConfigJson(run, folders),
          },
          "accepted",
        ),
      { signal },
    );
    if (!(await retry(() => registry.activate(run.runId, run.epoch), { signal }))) {
      throw new OwnershipLostError(run.runId, run.epoch);
    }
    logger.info("run accepted", { runId: run.runId });
    return true;
  }

  /** Waits for a download, for a hub that is away and for room on the disk, and says so. */
  async #untilPrepared(run: RunRecord, folders: RunFolders, signal: AbortSignal): Promise<PreparedModel> {
    const { board, models, logger } = this.#deps;
    const waitingSinceMs = Date.now();
    let telling: Promise<unknown> | undefined;
    // One after the other, so that the last one told is the one that stands.
    const tell = (wait: Pick<RunStatus, "waitingFor" | "waitingOwner" | "waitingSinceMs">) => {
      telling = Promise.resolve(telling)
        .then(() => board.publish({ ...statusOf(run, folders), ...wait }))
        .catch((failure: unknown) => logger.warn("cannot publish a state", { error: failure }));
    };
    const onProgress = (doneBytes: number, totalBytes: number) => {
      const [done, total] = [doneBytes, totalBytes].map((bytes) => Math.round(bytes / BYTES_PER_MB));
      const waitingFor = `the download of its model (${done} of ${total} MB)`;
      tell({ waitingFor, waitingOwner: WaitOwner.trainer, waitingSinceMs });
    };
    try {
      return await retry(() => prepareModel(run.config, folders, models, { signal, onProgress }), {
        signal,
        minDelayMs: MIN_PAUSE_MS,
        maxDelayMs: MAX_PAUSE_MS,
        onRetry: (error, attempt) => {
          const what = error instanceof FolderRefusedError ? "the disk (tokenizer)" : "its model";
          if (attempt === 1) {
            logger.warn(`a run waits for ${what}`, { runId: run.runId, error: describeError(error) });
          }
          const waitingFor = `${what} (${describeError(error)})`;
          tell({ waitingFor, waitingOwner: WaitOwner.you, waitingSinceMs });
        },
      });
    } finally {
      if (telling !== undefined) tell(NO_WAIT);
      await telling;
    }
  }

  /** All services at once; each is asked until it answers (A1). */
  async #ask(
    run: RunRecord,
    asked: RunToValidate,
    folders: RunFolders,
    signal: AbortSignal,
  ): Promise<Problem[]> {
    const { validators, board, logger } = this.#deps;
    const silent = new Set<WaitOwner>();
    const since = Date.now();
    let telling: Promise<unknown> = Promise.resolve();
    const tell = () => {
      const names = [...silent].sort();
      const [waitingOwner] = names;
      const wait =
        waitingOwner === undefined
          ? NO_WAIT
          : {
              waitingFor: `an answer of ${names.join(", ")} to the run's check`,
              waitingOwner,
              waitingSinceMs: since,
            };
      // One after the other, so that the last one told is the one that stands.
      telling = telling
        .then(() => board.publish({ ...statusOf(run, folders), ...wait }))
        .catch((failure: unknown) => logger.warn("cannot publish a state", { error: failure }));
    };
    const answers = await Promise.all(
      validators.services.map((service) =>
        retry(() => validators.validate(service, asked, signal), {
          signal,
          minDelayMs: MIN_PAUSE_MS,
          maxDelayMs: MAX_PAUSE_MS,
          isRetryable: (error) => error instanceof RetryableError,
          onRetry: (error, attempt) => {
            silent.add(service);
            if (attempt !== 1) return;
            logger.warn("a run waits for its check", {
              runId: run.runId,
              service,
              error: describeError(error),
            });
            tell();
          },
        }).finally(() => {
          if (silent.delete(service) && !signal.aborted) tell();
        }),
      ),
    );
    await telling;
    return answers.flat();
  }

  /** A2 */
  async #refuse(run: RunRecord, folders: RunFolders, problems: readonly Problem[]): Promise<void> {
    const { registry, board, events, logger } = this.#deps;
    await retry(() => events.refused(run.requestSequence, problems));
    await retry(() => board.remove(run.runId));
    await folders.removeAll();
    await retry(() => registry.remove(run.runId, run.epoch));
    logger.info("run refused", { runId: run.runId, problems: problems.map(({ message }) => message) });
  }
}
