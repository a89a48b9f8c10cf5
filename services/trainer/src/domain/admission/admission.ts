/**
 * Decides whether a run may begin: every service that the run needs is asked, and must agree.
 *
 * A1: a missing answer is not a refusal: the run waits, and its published state says for whom.
 * A2: a refused run leaves nothing behind: no row, no state, no file.
 * A3: admission may be interrupted anywhere and done again: everything in it can be repeated.
 */

import type { RunConfig } from "@hone/config";
import { describeError, RetryableError, retry } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { FolderRefusedError, OwnershipLostError } from "../errors.ts";
import type { ModelSource } from "../model/model-source.ts";
import { type PreparedModel, prepareModel, type ReadyModels } from "../model/prepare-model.ts";
import type { Problem, RunEvents } from "../report/run-event.ts";
import type { RunStateBoard } from "../report/run-status.ts";
import { NO_WAIT, type RunStatus } from "../report/run-status.ts";
import { publicConfigJson, statusOf } from "../report/status-of.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { RunRegistry } from "../run/run-registry.ts";
import { RunFolders } from "../state/run-folders.ts";
import { replayProblems } from "./check-replay.ts";

/** Asks services whether they can do their part of a run. */
export interface Validators {
  readonly services: readonly WaitOwner[];
  /** @returns the problems that the service found. @throws {RetryableError} when it does not answer. */
  validate(service: WaitOwner, run: RunToValidate, signal: AbortSignal): Promise<Problem[]>;
}

export interface RunToValidate {
  /** The resolved run file. */
  readonly configJson: string;
  /** config.json of the run's model; empty where it could not be determined. */
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
  /** The problems when this trainer lacks the run's engine, or when the engine cannot train the model. */
  readonly engineProblems: (config: RunConfig, models: ReadyModels) => Promise<Problem[]>;
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

  /** @returns whether the run may begin; otherwise it has been removed (A2). @throws the reason of the signal. */
  async admit(run: RunRecord, signal: AbortSignal): Promise<boolean> {
    const { registry, events, stateRoot, engineProblems, logger } = this.#deps;
    const folders = new RunFolders(stateRoot, run.runId);
    const prepared = await this.#untilPrepared(run, folders, signal);
    const modelConfigJson = prepared.kind === "ready" ? JSON.stringify(prepared.config) : "";
    const asked = { configJson: run.configJson, modelConfigJson };
    const problems = [
      ...(prepared.kind === "refused" ? prepared.problems : await engineProblems(run.config, prepared)),
      ...(await retry(() => replayProblems(run.config, folders), { signal })),
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

  /** Prepares the model, waiting for its download, for the hub and for room on the disk; the state says so. */
  async #untilPrepared(run: RunRecord, folders: RunFolders, signal: AbortSignal): Promise<PreparedModel> {
    const { board, models, logger } = this.#deps;
    const waitingSinceMs = Date.now();
    let publishing: Promise<unknown> | undefined;
    // One after the other, so that the last one sent is the one that stays published.
    const publish = (wait: Pick<RunStatus, "waitingFor" | "waitingOwner" | "waitingSinceMs">) => {
      publishing = Promise.resolve(publishing)
        .then(() => board.publish({ ...statusOf(run, folders), ...wait }))
        .catch((failure: unknown) => logger.warn("could not publish a state", { error: failure }));
    };
    const onProgress = (doneBytes: number, totalBytes: number) => {
      const [done, total] = [doneBytes, totalBytes].map((bytes) => Math.round(bytes / BYTES_PER_MB));
      const waitingFor = `the download of its model (${done} of ${total} MB)`;
      publish({ waitingFor, waitingOwner: WaitOwner.trainer, waitingSinceMs });
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
          publish({ waitingFor, waitingOwner: WaitOwner.you, waitingSinceMs });
        },
      });
    } finally {
      if (publishing !== undefined) publish(NO_WAIT);
      await publishing;
    }
  }

  /** Asks all services at once, each until it answers (A1). */
  async #ask(
    run: RunRecord,
    asked: RunToValidate,
    folders: RunFolders,
    signal: AbortSignal,
  ): Promise<Problem[]> {
    const { validators, board, logger } = this.#deps;
    const silent = new Set<WaitOwner>();
    const since = Date.now();
    let publishing: Promise<unknown> = Promise.resolve();
    const publish = () => {
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
      // One after the other, so that the last one sent is the one that stays published.
      publishing = publishing
        .then(() => board.publish({ ...statusOf(run, folders), ...wait }))
        .catch((failure: unknown) => logger.warn("could not publish a state", { error: failure }));
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
            publish();
          },
        }).finally(() => {
          if (silent.delete(service) && !signal.aborted) publish();
        }),
      ),
    );
    await publishing;
    return answers.flat();
  }

  /** Refuses a run and removes everything of it (A2). */
  async #refuse(run: RunRecord, folders: RunFolders, problems: readonly Problem[]): Promise<void> {
    const { registry, board, events, logger } = this.#deps;
    await retry(() => events.refused(run.requestSequence, problems));
    await retry(() => board.remove(run.runId));
    await folders.removeAll();
    await retry(() => registry.remove(run.runId, run.epoch));
    logger.info("run refused", { runId: run.runId, problems: problems.map(({ message }) => message) });
  }
}
