/**
 * Whether a run may begin: every service that it names is asked, and answers.
 *
 * A1: no answer is no refusal: the run waits, and its published state says for whom.
 * A2: a refused run leaves nothing behind: no row, no state, no file.
 * A3: admission may be cut off anywhere and done again: everything in it can be repeated.
 */

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describeError, RetryableError, retry } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { loadTokenizer, TokenizerLoadError } from "@hone/tokenizer";
import { OwnershipLostError } from "./errors.ts";
import type { RunEvents, RunRegistry, RunStateBoard } from "./ports.ts";
import type { Problem } from "./run-event.ts";
import { RunFolders } from "./run-folders.ts";
import type { RunRecord } from "./run-record.ts";
import { NO_WAIT } from "./run-status.ts";
import { publicConfigJson, statusOf } from "./run-tenure.ts";
import { WaitOwner } from "./wait.ts";

/** Asks services whether they can do their part of a run. */
export interface Validators {
  readonly services: readonly WaitOwner[];
  /** @returns what is wrong. @throws {RetryableError} when nobody answers. */
  validate(service: WaitOwner, configJson: string, signal: AbortSignal): Promise<Problem[]>;
}

export interface AdmissionDeps {
  readonly stateRoot: string;
  readonly registry: RunRegistry;
  readonly board: RunStateBoard & { remove(runId: string): Promise<void> };
  readonly events: RunEvents & {
    refused(requestSequence: number, problems: readonly Problem[]): Promise<void>;
  };
  readonly validators: Validators;
  readonly logger: Logger;
}

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;

export class Admission {
  readonly #deps: AdmissionDeps;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /** @returns whether the run may begin; when not, it is gone (A2). @throws the reason of the signal. */
  async admit(run: RunRecord, signal: AbortSignal): Promise<boolean> {
    const { registry, events, stateRoot, logger } = this.#deps;
    const folders = new RunFolders(stateRoot, run.runId);
    const problems = [
      ...(await this.#untilWritten(run, folders, signal)),
      ...(await this.#ask(run, folders, signal)),
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

  /** Waits for room on the disk, and says so. */
  #untilWritten(run: RunRecord, folders: RunFolders, signal: AbortSignal): Promise<Problem[]> {
    const { board, logger } = this.#deps;
    const since = Date.now();
    return retry(() => this.#writeTokenizer(run, folders), {
      signal,
      minDelayMs: MIN_PAUSE_MS,
      maxDelayMs: MAX_PAUSE_MS,
      onRetry: (error, attempt) => {
        if (attempt !== 1) return;
        logger.warn("a run waits for the disk", { runId: run.runId, error: describeError(error) });
        const waitingFor = `the disk (tokenizer) (${describeError(error)})`;
        const wait = { waitingFor, waitingOwner: WaitOwner.you, waitingSinceMs: since };
        board
          .publish({ ...statusOf(run, folders), ...wait })
          .catch((failure: unknown) => logger.warn("cannot publish a state", { error: failure }));
      },
    });
  }

  /** Writes the run's tokenizer to its place and checks that it can be read. */
  async #writeTokenizer(run: RunRecord, folders: RunFolders): Promise<Problem[]> {
    const { tokenizer } = run.config.model.init;
    if (typeof tokenizer === "string") throw new TypeError("the tokenizer of an admitted run is inlined");
    try {
      await folders.writeWhole(folders.tokenizer, async (folder) => {
        for (const [name, text] of Object.entries(tokenizer.files)) {
          const file = path.join(folder, path.basename(name));
          await mkdir(path.dirname(file), { recursive: true });
          await writeFile(file, text);
        }
        await loadTokenizer(folder);
      });
      return [];
    } catch (error) {
      if (!(error instanceof TokenizerLoadError)) throw error;
      const allowed = "a tokenizer.json that Hone can run, with the files beside it";
      const value = Object.keys(tokenizer.files);
      const message = `Cannot accept \`model.init.tokenizer\` as it must be ${allowed}: current value is ${JSON.stringify(value)} (${describeError(error)})`;
      return [{ key: "model.init.tokenizer", valueJson: JSON.stringify(value), allowed, message }];
    }
  }

  /** All services at once; each is asked until it answers (A1). */
  async #ask(run: RunRecord, folders: RunFolders, signal: AbortSignal): Promise<Problem[]> {
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
        retry(() => validators.validate(service, run.configJson, signal), {
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
