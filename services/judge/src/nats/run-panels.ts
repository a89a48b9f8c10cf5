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
import { judgesIn, type RewardRules, rewardRulesIn } from "./decode-judges.ts";
import { Panels } from "./panels.ts";

/** More than the number of runs that are active at the same time, with the parts of their tasks. */
const MAX_RUNS = 256;

/** What a run's file says about the judging of the rollouts of one part of its tasks. */
export interface RunRules extends RewardRules {
  readonly judgesJson: string;
}

export class RunPanels extends Panels {
  readonly #bucket: Bucket<RunState>;
  readonly #known = new Map<string, Promise<RunRules>>();

  private constructor(bucket: Bucket<RunState>, parts: JudgeParts) {
    super(parts);
    this.#bucket = bucket;
  }

  static async open(bus: Bus, parts: JudgeParts): Promise<RunPanels> {
    return new RunPanels(await openBucket(bus, BucketName.runState, RunStateSchema), parts);
  }

  /**
   * Gives the panel of a run, or of the part of its tasks that an episode is of.
   * @throws {UnknownRunError} for a run without a state, or the error with which a judge cannot be made.
   * @throws {BusUnavailableError} when the bus does not answer.
   */
  async ofRun(runId: string, part: string): Promise<Panel> {
    return this.of((await this.rulesOf(runId, part)).judgesJson);
  }

  /** Gives what a run's file says about the judging of its rollouts. The errors are those of `ofRun`. */
  async rulesOf(runId: string, part: string): Promise<RunRules> {
    const key = `${runId}/${part}`;
    const rules = this.#known.get(key) ?? this.#read(runId, part);
    // Marks it as the most recently used (J1).
    this.#known.delete(key);
    this.#known.set(key, rules);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_RUNS) break;
      this.#known.delete(oldest);
    }
    try {
      return await rules;
    } catch (error) {
      if (this.#known.get(key) === rules) this.#known.delete(key);
      throw error;
    }
  }

  async #read(runId: string, part: string): Promise<RunRules> {
    const state = (await this.#bucket.get(runId))?.value;
    if (state === undefined) {
      throw new UnknownRunError(runId);
    }
    const { configJson } = state;
    return {
      judgesJson: JSON.stringify(judgesIn(configJson, part) ?? null),
      ...rewardRulesIn(configJson, part),
    };
  }
}
