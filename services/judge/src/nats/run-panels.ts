/**
 * The judges of a run, as the trainer published them with its state.
 *
 * Whoever makes an episode does not say who judges it: agent-rollout runs agents' code, and one that was taken over would
 * choose a judge or a weight. Only the trainer writes a run's state (bus-rights.ts in libs/messaging).
 *
 * J1: a run's file never changes, so its state is read once; at most MAX_RUNS are kept, the least recently used one goes.
 * J2: a run's first episode may be there a moment before its state is: it comes again.
 */

import { RetryableError } from "@hone/core";
import { type Bucket, BucketName, type Bus, openBucket } from "@hone/messaging";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { JudgeParts } from "../domain/judge-parts.ts";
import type { Panel } from "../domain/panel.ts";
import { judgesIn } from "./decode-judges.ts";
import { Panels } from "./panels.ts";

/** More than the runs whose episodes come at the same time. */
const MAX_RUNS = 64;

/** The trainer says nothing of a run (J2). */
export class UnknownRunError extends RetryableError {
  constructor(runId: string) {
    super(
      "UNKNOWN_RUN",
      `The episode was not judged because the trainer has published no state of its run ${runId.slice(0, 80)}.`,
    );
  }
}

export class RunPanels extends Panels {
  readonly #bucket: Bucket<RunState>;
  readonly #known = new Map<string, Promise<string>>();

  private constructor(bucket: Bucket<RunState>, parts: JudgeParts) {
    super(parts);
    this.#bucket = bucket;
  }

  static async open(bus: Bus, parts: JudgeParts): Promise<RunPanels> {
    return new RunPanels(await openBucket(bus, BucketName.runState, RunStateSchema), parts);
  }

  /**
   * The panel of a run.
   * @throws {UnknownRunError} for a run that the trainer says nothing of, or whatever keeps a judge from being made.
   * @throws {BusUnavailableError} when the bus does not answer.
   */
  async ofRun(runId: string): Promise<Panel> {
    return this.of(await this.#judgesOf(runId));
  }

  /** As JSON. */
  async #judgesOf(runId: string): Promise<string> {
    const judges = this.#known.get(runId) ?? this.#read(runId);
    // Moves it to the young end (J1).
    this.#known.delete(runId);
    this.#known.set(runId, judges);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_RUNS) break;
      this.#known.delete(oldest);
    }
    try {
      return await judges;
    } catch (error) {
      if (this.#known.get(runId) === judges) this.#known.delete(runId);
      throw error;
    }
  }

  async #read(runId: string): Promise<string> {
    const state = (await this.#bucket.get(runId))?.value;
    if (state === undefined) {
      throw new UnknownRunError(runId);
    }
    return JSON.stringify(judgesIn(state.configJson) ?? null);
  }
}
