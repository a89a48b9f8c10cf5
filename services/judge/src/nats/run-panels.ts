/**
 * The judges of a run, which the trainer publishes with the run's state.
 *
 * The maker of an episode must not choose its judges: agent-rollout runs agents' code, and a compromised one could choose a
 * judge or a weight. Only the trainer may write a run's state (bus-rights.ts in libs/messaging).
 *
 * J1: a run's file never changes, so its state is read once. At most MAX_RUNS are kept, and the least recently used is dropped.
 * J2: a run's first episode may come a moment before its state; the episode is then delivered again.
 */

import { type Bucket, BucketName, type Bus, openBucket } from "@hone/messaging";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { JudgeParts } from "../domain/judge-parts.ts";
import type { Panel } from "../domain/panel.ts";
import { UnknownRunError } from "../errors.ts";
import { judgesIn } from "./decode-judges.ts";
import { Panels } from "./panels.ts";

/** More than the number of runs that are active at the same time. */
const MAX_RUNS = 64;

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
   * Gives the panel of a run.
   * @throws {UnknownRunError} for a run without a state, or the error with which a judge cannot be made.
   * @throws {BusUnavailableError} when the bus does not answer.
   */
  async ofRun(runId: string): Promise<Panel> {
    return this.of(await this.#judgesOf(runId));
  }

  /** Gives the run's judges as JSON. */
  async #judgesOf(runId: string): Promise<string> {
    const judges = this.#known.get(runId) ?? this.#read(runId);
    // Marks it as the most recently used (J1).
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
